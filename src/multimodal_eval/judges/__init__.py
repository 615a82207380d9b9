"""Judges: models that are asked what an answer is worth."""
