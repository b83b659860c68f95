"""Reliability requirements from what people can see: visual change, thresholds, checks."""
