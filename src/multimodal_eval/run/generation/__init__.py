"""Generation as a step of the run: after reading, before fitting."""
