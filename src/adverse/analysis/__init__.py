"""The quick right half: from a run folder to its results, a pure function that takes seconds."""
