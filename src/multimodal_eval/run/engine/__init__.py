"""Engines that process the parts of a run: this machine, or a Ray cluster."""
