"""Models that encode images and texts in the same vector space."""
