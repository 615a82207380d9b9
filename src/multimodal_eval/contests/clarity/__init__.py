"""CLARITY: multi-annotator classification of how clearly questions are answered."""
