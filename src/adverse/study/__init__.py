"""The slow left half: a study file becomes a plan, the plan becomes detections in a run folder."""
