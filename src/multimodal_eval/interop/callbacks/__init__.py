"""Scores with intervals in a training loop, logged to the tracker that is active."""
