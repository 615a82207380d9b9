"""Tests of multimodal_eval.contests.shared_task."""
