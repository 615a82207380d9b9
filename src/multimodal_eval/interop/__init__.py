"""Doors to other programs: the pycocoevalcap drop-in, callbacks of training loops."""
