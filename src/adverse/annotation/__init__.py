"""Annotation: boxes with ids, and where people are, put on the frames of a log by a person with help."""
