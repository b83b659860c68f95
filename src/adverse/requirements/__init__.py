"""What a system is held to: requirements of what people tolerate, rules of a run, and verdicts."""
