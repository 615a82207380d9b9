"""Images that are identified by their content and opened late, a few dozen at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from multimodal_eval.core.errors import ImageError

if TYPE_CHECKING:
    from PIL import Image

THREADS = 16
KEY_BYTES = 16

T = TypeVar("T")


@dataclass
class LazyImage:
    """An image that is not open yet. `key` identifies its content; `fault` says why it cannot be opened.

    `received` is what the encoder's `receive` returned, if another process has opened and prepared the image. `file`
    returns the content of a usual JPEG file whose width and height are wanted, and None for any other image.
    """

    key: bytes
    open: Callable[[], Image.Image]
    fault: str | None = None
    received: Any = None
    file: Callable[[Callable[[int, int], bool]], bytes | None] = lambda _: None


def image_key(content: bytes) -> bytes:
    """Identifies the content of an image. Processors have instructions for SHA-256, which make it the fastest hash."""
    return sha256(content).digest()[:KEY_BYTES]


def cached_content(key: bytes) -> bytes:
    """What identifies an image in the cache of a model, which also has texts."""
    return b"image:" + key


def open_in_groups(
    images: Sequence[LazyImage], prepare: Callable[[LazyImage], T], *, group_size: int
) -> Iterator[tuple[list[int], list[T]]]:
    """Yield groups of positions and prepared images. Images that cannot be opened are left out.

    Threads open the next group while the caller uses the current one, so at most two groups are in memory, apart from
    the images that another process has opened. What it prepared is dropped from an image when its group is yielded.
    """
    from multimodal_eval.core.machine import cores

    def work(image: LazyImage) -> T | None:
        try:
            return prepare(image)
        except ImageError as fault:
            image.fault = str(fault)
            return None

    starts = range(0, len(images), group_size)
    threads = min(THREADS, cores()) if any(image.received is None for image in images) else 1
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[list[Future[T | None] | LazyImage]] = deque()
        for start in starts:
            group = images[start : start + group_size]
            ahead.append([pool.submit(work, image) if image.received is None else image for image in group])
            if len(ahead) == 2:
                yield _finished(ahead.popleft(), start - group_size)
        if ahead:
            yield _finished(ahead.popleft(), starts[-1])


def _finished(group: list[Future[T | None] | LazyImage], start: int) -> tuple[list[int], list[T]]:
    results = [(start + offset, _result(image)) for offset, image in enumerate(group)]
    prepared = [(position, result) for position, result in results if result is not None]
    return [position for position, _ in prepared], [result for _, result in prepared]


def _result(image: Future[T | None] | LazyImage) -> T | None:
    if isinstance(image, LazyImage):
        prepared: T | None = image.received
        image.received = None
        return prepared
    return image.result()
