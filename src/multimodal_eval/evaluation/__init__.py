"""Metrics (one file each), their registry, the tasks and their composites."""
