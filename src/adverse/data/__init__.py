"""Data formats: one file each, every one a function under @dataset that returns a Dataset."""
