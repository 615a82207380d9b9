"""Tests of multimodal_eval.clarity."""
