"""File formats of weights, and graphs built over them."""
