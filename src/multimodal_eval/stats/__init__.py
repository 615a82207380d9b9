"""Statistics on arrays: standard errors, intervals, influence values."""
