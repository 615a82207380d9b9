"""Tests of multimodal_eval.contests.codabench."""
