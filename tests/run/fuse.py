from __future__ import annotations

from multimodal_eval.run.engine.base import Inline


class StoppedError(Exception):
    pass


class Fuse(Inline):
    """Works on so many items, then breaks as a killed process would."""

    def __init__(self, items):
        self.left = items

    def map(self, worker, work, items):
        for item in items:
            if self.left == 0:
                raise StoppedError
            self.left -= 1
            yield getattr(worker, work)(item)
