"""The steps of a run, in the order of `run.runner.steps_of`."""
