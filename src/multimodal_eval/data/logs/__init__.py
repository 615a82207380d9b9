"""Logs of other evaluation harnesses, read as samples with the scores that the harness gave."""
