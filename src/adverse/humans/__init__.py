"""What people tolerate: the experiment in the browser, their answers, and thresholds from them."""
