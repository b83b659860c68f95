"""Context levels: from detections to per-log outcomes of safety and efficiency."""
