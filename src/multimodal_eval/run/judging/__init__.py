"""Judging as a step of a run: the questions of all judges, asked and stored before scoring."""
