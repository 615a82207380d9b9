"""Samples and answers in notebooks, which need the media of the report; `display.results` finds these functions."""
