"""One module per provider of models."""
