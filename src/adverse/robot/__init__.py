"""From detections to what the robot does: where they are, whether they are in the way, how it drives."""
