"""Depth maps: where they are valid, and what to do where they are not."""
