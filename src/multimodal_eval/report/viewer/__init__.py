"""The runs of a folder in a browser: a small server that only reads."""
