"""Dependency parses of English captions: the parser's weights, its word features, and repaired parses."""
