"""Models that compute the probabilities of the tokens of a text."""
