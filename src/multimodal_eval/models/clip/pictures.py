"""Pictures on their way into a model: known by their content, opened late, a few dozen at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from multimodal_eval.core.errors import ImageError

if TYPE_CHECKING:
    from PIL import Image

THREADS = 16

T = TypeVar("T")


@dataclass
class Picture:
    """A picture that has not been opened yet. `key` tells its content; `fault` says why it could not be opened."""

    key: bytes
    open: Callable[[], Image.Image]
    fault: str | None = None


def opened(
    pictures: Sequence[Picture], prepare: Callable[[Image.Image], T], *, at_once: int
) -> Iterator[tuple[list[int], list[T]]]:
    """Groups of positions and prepared pictures, those left out that could not be opened.

    While a group is used the next one is being opened by threads: at most two groups are in memory.
    """
    from multimodal_eval.core.machine import cores

    def work(picture: Picture) -> T | None:
        try:
            return prepare(picture.open())
        except ImageError as fault:
            picture.fault = str(fault)
            return None

    starts = range(0, len(pictures), at_once)
    with ThreadPoolExecutor(min(THREADS, cores())) as pool:
        ahead: deque[list[Future[T | None]]] = deque()
        for start in starts:
            ahead.append([pool.submit(work, picture) for picture in pictures[start : start + at_once]])
            if len(ahead) == 2:
                yield _finished(ahead.popleft(), start - at_once)
        if ahead:
            yield _finished(ahead.popleft(), starts[-1])


def _finished(group: list[Future[T | None]], start: int) -> tuple[list[int], list[T]]:
    results = [(start + place, future.result()) for place, future in enumerate(group)]
    kept = [(position, result) for position, result in results if result is not None]
    return [position for position, _ in kept], [result for _, result in kept]
