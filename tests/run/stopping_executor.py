from __future__ import annotations

from multimodal_eval.run.engine.base import Inline


class StoppedError(Exception):
    pass


class StoppingExecutor(Inline):
    """Processes a number of items, then stops like a killed process."""

    def __init__(self, items):
        self.items_left = items

    def map(self, step, phase):
        for item in phase.items:
            if self.items_left == 0:
                raise StoppedError
            self.items_left -= 1
            yield getattr(step, phase.work)(item)
