"""Attacks on everything that reads input we do not trust: see `campaign.py`, and `python -m tests.hostile --help`."""
