"""Where the parts of a run are worked on. An executor offers one call: a worker's method over many items, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from multimodal_eval.run.part import Worker

Work = Literal["fit", "merge", "score", "probe", "score_again"]
IN_OTHER_PROCESSES: tuple[Work, ...] = ("probe", "score_again")  # asked for only where processes die
AHEAD = 2  # parts a worker that are on their way or wait to be taken: enough to keep all busy
Item = TypeVar("Item")
Future = TypeVar("Future")


class Executor(Protocol):
    """Works on parts, somewhere."""

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item, results in the order of the items.

        An item whose work brings its process down, whenever it is tried, gives a `Died`.
        """


@dataclass(frozen=True)
class Died:
    """The process that did this work was gone before it was done."""

    reason: str


class Inline:
    """One after the other, in this thread."""

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item."""
        return map(getattr(worker, work), items)


def in_order(
    submit: Callable[[Item], Future], result: Callable[[Item, Future], Any], items: Iterable[Item], window: int
) -> Iterator[Any]:
    """Results in the order of the items, with at most `window` of them on their way: what is done waits for nobody."""
    waiting: deque[tuple[Item, Future]] = deque()
    for item in items:
        waiting.append((item, submit(item)))
        if len(waiting) >= window:
            yield result(*waiting.popleft())
    while waiting:
        yield result(*waiting.popleft())
