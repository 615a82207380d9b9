"""CLARITY: how clearly are questions answered, and by which technique evaded? Labels, scoring, early stopping."""
