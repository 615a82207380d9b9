"""Images that are identified by their content and opened late, a few dozen at a time."""

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
class LazyImage:
    """An image that is not open yet. `key` identifies its content; `fault` says why it cannot be opened."""

    key: bytes
    open: Callable[[], Image.Image]
    fault: str | None = None


def open_in_groups(
    images: Sequence[LazyImage], prepare: Callable[[Image.Image], T], *, group_size: int
) -> Iterator[tuple[list[int], list[T]]]:
    """Yield groups of positions and prepared images. Images that cannot be opened are left out.

    Threads open the next group while the caller uses the current one, so at most two groups are in memory.
    """
    from multimodal_eval.core.machine import cores

    def work(image: LazyImage) -> T | None:
        try:
            return prepare(image.open())
        except ImageError as fault:
            image.fault = str(fault)
            return None

    starts = range(0, len(images), group_size)
    with ThreadPoolExecutor(min(THREADS, cores())) as pool:
        ahead: deque[list[Future[T | None]]] = deque()
        for start in starts:
            ahead.append([pool.submit(work, image) for image in images[start : start + group_size]])
            if len(ahead) == 2:
                yield _finished(ahead.popleft(), start - group_size)
        if ahead:
            yield _finished(ahead.popleft(), starts[-1])


def _finished(group: list[Future[T | None]], start: int) -> tuple[list[int], list[T]]:
    results = [(start + offset, future.result()) for offset, future in enumerate(group)]
    prepared = [(position, result) for position, result in results if result is not None]
    return [position for position, _ in prepared], [result for _, result in prepared]
