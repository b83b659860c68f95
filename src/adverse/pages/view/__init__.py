"""The explorer: a finished run in the browser, frame by frame and threshold by threshold."""
