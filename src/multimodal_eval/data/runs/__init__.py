"""The run folder: samples, scores and results on disk."""
