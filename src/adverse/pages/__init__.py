"""Pages that need a local server: the explorer, the human study, the review of failures."""
