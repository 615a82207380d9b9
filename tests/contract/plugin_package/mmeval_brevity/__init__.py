"""A package of somebody else with two metrics, written for 0.1."""
