"""Tests of multimodal_eval.contests.evalai."""
