"""An engine that stops a run, like a killed process."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from multimodal_eval import Engine


class StoppedError(Exception):
    pass


@dataclass(frozen=True)
class Given(Engine):
    """An engine with an executor of a test."""

    given: Any = None

    def executor(self, plan):
        return nullcontext(self.given)


class StoppingExecutor:
    """Processes a number of items, then stops."""

    workers = 1

    def __init__(self, items):
        self.items_left = items

    def map(self, step, phase):
        for item in phase.items:
            if self.items_left == 0:
                raise StoppedError
            self.items_left -= 1
            yield getattr(step, phase.work)(item)


def stopping(items):
    """An engine that processes a number of items, then stops."""
    return Given(given=StoppingExecutor(items))
