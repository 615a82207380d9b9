"""The peers of who_measures_what.py: their environments, one runner per peer, our side, and the tables."""
