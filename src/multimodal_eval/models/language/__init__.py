"""Models that give the tokens of a text their probabilities."""
