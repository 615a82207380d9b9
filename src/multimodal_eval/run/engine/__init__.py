"""Where the parts of a run are worked on: this machine, or a Ray cluster."""
