"""A small read-only server that shows the runs of a folder in a browser."""
