"""The parts that come next: a scorer that reads files can start to read them while earlier parts are scored."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.media.policy import policy_of, using

SAMPLES_AHEAD = 512  # beside those of the parts that are being scored


@dataclass
class Upcoming:
    """The parts that this process scores, ascending, and the samples of those that were announced."""

    parts: list[int] = field(default_factory=list)
    _next: int = 0  # the first one that was not announced
    _batches: dict[int, Batch] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock, repr=False)

    def add(self, parts: Sequence[int]) -> None:
        """Add the parts that come after those that are known."""
        with self._lock:
            self.parts += [part for part in parts if not self.parts or part > self.parts[-1]]

    def batch(self, part: int, read: Callable[[int], Batch], expect: Callable[[Batch], None]) -> Batch:
        """The samples of a part that is scored now. It and the parts after it are announced with `expect`."""
        with self._lock:
            place = bisect_left(self.parts, part)
            while self._next < len(self.parts) and (self._next <= place or self._ahead_of(part) < SAMPLES_AHEAD):
                number = self.parts[self._next]
                self._next += 1
                self._batches[number] = read(number)
                expect(self._batches[number])
            batch = self._batches.pop(part, None)
        return read(part) if batch is None else batch

    def _ahead_of(self, part: int) -> int:
        """The number of samples that were announced and are not scored yet, apart from those of the part."""
        return sum(len(batch) for number, batch in self._batches.items() if number != part)


def announce_to(expecting: Sequence[tuple[Metric, Any]], config: RunConfig, batch: Batch) -> None:
    """Tell scorers with `expect` about the samples that they will get."""
    with using(policy_of(config)):
        for metric, scorer in expecting:
            scorer.expect(batch.take(rows_to_score(metric, batch, config.patterns)))
