"""One file per metric; the file name is the metric name."""
