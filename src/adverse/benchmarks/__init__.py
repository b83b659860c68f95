"""The numbers that the literature compares systems by."""
