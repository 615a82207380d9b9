"""The images of samples, identified by their content before a model opens them.

Vectors are cached under a key computed from an image's content, so the decoded image must have exactly that content.
Therefore downloads are kept instead of being requested again, and a file that changed in between is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from os import PathLike
from tempfile import SpooledTemporaryFile
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.media.content import is_url
from multimodal_eval.media.images import image_bytes, load_image_any
from multimodal_eval.media.policy import MediaPolicy, current_policy
from multimodal_eval.models.clip.lazy_images import LazyImage, image_key

if TYPE_CHECKING:
    from PIL import Image

READ_AT_ONCE = 8  # files or URLs; each may be as large as the policy allows
IN_MEMORY = 32 << 20  # bytes that a spool holds before it writes a temporary file


class Spool:
    """Stores content from any thread until it is closed, in memory or in one temporary file."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 - closed with the spool
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def keep(self, content: bytes) -> Callable[[], bytes]:
        """Store the content; the returned function reads it back."""
        with self._lock:
            start = self._file.seek(0, 2)
            self._file.write(content)
        return partial(self._read, start, len(content))

    def _read(self, start: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)


@contextmanager
def images_of(sources: Sequence[Any]) -> Iterator[list[LazyImage]]:
    """One image per source, to be opened inside the block, or its `fault`. Equal names are read once."""
    policy = current_policy()  # threads do not inherit the context
    with Spool() as spool:
        read = partial(_image, policy=policy, spool=spool)
        names = list(dict.fromkeys(source for source in sources if isinstance(source, str | PathLike)))
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            named = dict(zip(names, pool.map(read, names), strict=True))
        yield [named[source] if isinstance(source, str | PathLike) else read(source) for source in sources]


def _image(source: Any, *, policy: MediaPolicy, spool: Spool) -> LazyImage:
    load = partial(load_image_any, source, policy=policy)
    try:
        content = image_bytes(source, policy=policy)
    except ImageError as fault:
        return LazyImage(b"", load, str(fault))
    key = image_key(content)
    if not isinstance(source, str | PathLike):  # already in memory
        return LazyImage(key, load)
    if is_url(source):
        return LazyImage(key, partial(_opened, source, key, spool.keep(content), policy))
    return LazyImage(key, opened_again(source, key, policy))


def opened_again(source: Any, key: bytes, policy: MediaPolicy) -> Callable[[], Image.Image]:
    """A function that reads a local image once more and opens it. It refuses other content than that of the key."""
    return partial(_opened, source, key, partial(image_bytes, source, policy=policy), policy)


def _opened(source: Any, key: bytes, reread: Callable[[], bytes], policy: MediaPolicy) -> Image.Image:
    content = reread()
    if image_key(content) != key:
        raise ImageError(f"{shorten(str(source))} changed while it was being read")
    return load_image_any(content, policy=policy)
