"""Images that wait for a decoding process, and what this process does with their bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from threading import Event
from typing import TYPE_CHECKING, Any

from multimodal_eval.evaluation.decoding.worker import Decoded, Job

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Line:
    """Images for one encoder: what the processes do, and what this process does with the bytes.

    `receive` copies the bytes of equally large images, of shape (images, height, width, channels), out of the shared
    memory, and returns what it made of each. `pin` is called once with the memory of each process.
    """

    job: Job
    receive: Callable[[Any], Sequence[Any]]
    pin: Callable[[Any], None] | None = None


@dataclass(eq=False, slots=True)
class Ticket:
    """An image that was submitted. `key` is empty if it could not be decoded by a process, for whatever reason."""

    submitted: Submitted
    source: Any
    key: bytes = b""
    fault: str | None = None
    received: Any = None
    failure: BaseException | None = None  # of `receive`
    is_finished: bool = False
    is_dropped: bool = False
    deaths: int = 0  # of processes that had this image, alone or with others


class Submitted:
    """Images that were submitted together."""

    def __init__(self, line: Line, sources: Iterable[Any]) -> None:
        self.line = line
        self.tickets = [Ticket(self, source) for source in sources]
        self._left = len(self.tickets)
        self._is_done = Event()
        self.count_down(0)

    def wait(self) -> list[Ticket]:
        """Wait until the images are decoded. Raises what `receive` raised."""
        self._is_done.wait()
        for ticket in self.tickets:
            if ticket.failure is not None:
                raise ticket.failure
        return self.tickets

    def drop(self) -> None:
        """Forget the images: those that are not decoded yet are not decoded any more."""
        for ticket in self.tickets:
            ticket.is_dropped = True
            ticket.received = None

    def count_down(self, finished: int) -> None:
        """Note that some images are finished."""
        self._left -= finished
        if not self._left:
            self._is_done.set()


def finish(tickets: Iterable[Ticket]) -> None:
    """Note that images are decoded, refused or given up."""
    counts: Counter[Submitted] = Counter()
    for ticket in tickets:
        ticket.is_finished = True
        counts[ticket.submitted] += 1
    for submitted, count in counts.items():
        submitted.count_down(count)


def take(memory: Pixels, decoded: Sequence[tuple[Ticket, Decoded]]) -> None:
    """Take the results out of the shared memory; equally large images that are next to each other at once."""
    for ticket, result in decoded:
        ticket.key, ticket.fault = result.key, result.fault
    wanted = [(ticket, result) for ticket, result in decoded if not ticket.is_dropped]
    for group in _neighbours([(ticket, result) for ticket, result in wanted if result.shape is not None]):
        (_, first), count = group[0], len(group)
        assert first.shape is not None
        place = slice(first.start, first.start + count * prod(first.shape))
        _receive([ticket for ticket, _ in group], memory[place].reshape(count, *first.shape))
    for ticket, result in wanted:
        if result.pixels is not None:
            _receive([ticket], result.pixels[None])


def _receive(tickets: list[Ticket], pixels: Any) -> None:
    try:
        for ticket, received in zip(tickets, tickets[0].submitted.line.receive(pixels), strict=True):
            ticket.received = received
            if ticket.is_dropped:  # by another thread, a moment ago
                ticket.received = None
    except Exception as failure:  # noqa: BLE001 - whoever waits for the images raises it
        for ticket in tickets:
            ticket.failure = failure


def _neighbours(placed: list[tuple[Ticket, Decoded]]) -> list[list[tuple[Ticket, Decoded]]]:
    """Groups of results of the same shape without a gap between their bytes."""
    groups: list[list[tuple[Ticket, Decoded]]] = []
    end, shape = -1, None
    for ticket, result in placed:
        if result.start != end or result.shape != shape:
            groups.append([])
        groups[-1].append((ticket, result))
        shape = result.shape
        assert shape is not None
        end = result.start + prod(shape)
    return groups
