"""Models that encode sentences as vectors."""
