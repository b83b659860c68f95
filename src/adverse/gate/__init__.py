"""Is a run good enough? Rules, and verdicts from intervals."""
