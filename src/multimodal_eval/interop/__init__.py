"""Interfaces to other programs: the pycocoevalcap drop-in, callbacks for training loops."""
