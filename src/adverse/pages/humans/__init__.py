"""The experiment in the browser: what people see, and what they say it is."""
