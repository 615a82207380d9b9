"""Models that put images and texts into one space."""
