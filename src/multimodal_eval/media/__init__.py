"""Pictures: the only place that opens media."""
