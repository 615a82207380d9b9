"""Models that give a sentence a vector."""
