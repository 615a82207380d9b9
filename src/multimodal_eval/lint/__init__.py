"""Warnings about a run: facts of each sample, then findings over all of them. No score is changed."""
