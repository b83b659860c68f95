"""Bad inputs, each through the real command line."""
