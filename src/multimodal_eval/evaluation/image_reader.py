"""The images for one encoder: many are read ahead by other processes, few are read by threads of this one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from tempfile import SpooledTemporaryFile
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.evaluation.decoding.pool import (
    FILES_PER_TASK,
    HALF,
    IMAGES_PER_TASK,
    Line,
    Submitted,
    Ticket,
    decoding_pool,
)
from multimodal_eval.evaluation.decoding.worker import Job
from multimodal_eval.media.content import is_url
from multimodal_eval.media.images import image_bytes, load_image_any, usual_jpeg
from multimodal_eval.media.policy import MediaPolicy, current_policy
from multimodal_eval.models.clip.lazy_images import LazyImage, image_key
from multimodal_eval.models.clip.preprocessing import Decoding

if TYPE_CHECKING:
    from PIL import Image

    from multimodal_eval.models.encoders import ImageTextEncoder

MIN_IMAGES = 256  # to start processes: that takes about as long as to decode so many
MOST_AHEAD = 6  # batches; the oldest is given up
REMEMBERED = 3  # batches whose content is known: other metrics with the same encoder use the cached vectors

_readers: WeakKeyDictionary[Any, ImageReader] = WeakKeyDictionary()


def reader_of(encoder: ImageTextEncoder) -> ImageReader:
    """The reader of an encoder, which all metrics with this encoder share."""
    if encoder not in _readers:
        _readers[encoder] = ImageReader(getattr(encoder, "decoding", None))
    return _readers[encoder]


Request = tuple[MediaPolicy, tuple[Any, ...]]


class ImageReader:
    """Reads images; `decoding` says how other processes can prepare them, None if they cannot."""

    def __init__(self, decoding: Decoding | None) -> None:
        self._decoding = decoding
        self._lines: dict[MediaPolicy, Line] = {}
        self._ahead: OrderedDict[Request, Submitted] = OrderedDict()
        self._seen: OrderedDict[Request, dict[Any, LazyImage]] = OrderedDict()
        self._lock = Lock()

    def forget(self) -> None:
        """Forget what was read: the files may have changed since then. Called when a run opens its metrics."""
        with self._lock:
            for submitted in self._ahead.values():
                submitted.drop()
            self._ahead.clear()
            self._seen.clear()

    def expect(self, sources: Sequence[Any]) -> None:
        """Start to read images that are asked for later in one call, if there are many."""
        request = _request(sources)
        with self._lock:
            if request in self._ahead or request in self._seen:
                return
            submitted = self._submitted(request)
            if submitted is None:
                return
            self._ahead[request] = submitted
            while len(self._ahead) > MOST_AHEAD:
                self._ahead.popitem(last=False)[1].drop()

    @contextmanager
    def images_of(self, sources: Sequence[Any]) -> Iterator[list[LazyImage]]:
        """One image per source, to be opened inside the block, or its `fault`. Equal sources are read once."""
        request = _request(sources)
        with self._lock:
            seen = self._seen.get(request)
            submitted = None if seen else self._ahead.pop(request, None) or self._submitted(request)
        images = self._decoded(request, submitted) if submitted else dict(seen or {})
        rest = [source for source in sources if not _is_sendable(source) or source not in images]
        try:
            with images_of(rest) as others:
                following = iter(others)
                yield [
                    images[source] if _is_sendable(source) and source in images else next(following)
                    for source in sources
                ]
        finally:
            for image in images.values():
                image.received = None

    def _submitted(self, request: Request) -> Submitted | None:
        policy, names = request
        if self._decoding is None or not names:
            return None
        pool = decoding_pool()
        if pool is None or (len(names) < MIN_IMAGES and not pool.is_running):
            return None
        if policy not in self._lines:
            job = Job(policy, self._decoding.hand_over, self._decoding.cache())
            per_task = FILES_PER_TASK if self._decoding.hand_over.file_up_to else IMAGES_PER_TASK
            self._lines[policy] = Line(job, self._decoding.receive, self._decoding.pin, per_task)
        return pool.submit(self._lines[policy], names)

    def _decoded(self, request: Request, submitted: Submitted) -> dict[Any, LazyImage]:
        """The images that the processes have decided about, by source."""
        try:
            decided = [ticket for ticket in submitted.wait() if ticket.key or ticket.fault is not None]
            images = {ticket.source: _image(ticket, request[0]) for ticket in decided}
        finally:
            submitted.drop()
        if self._decoding is not None and self._decoding.cache() is not None:
            with self._lock:
                self._seen[request] = {source: replace(image, received=None) for source, image in images.items()}
                while len(self._seen) > REMEMBERED:
                    self._seen.popitem(last=False)
        return images


def _request(sources: Sequence[Any]) -> Request:
    return current_policy(), tuple(dict.fromkeys(source for source in sources if _is_sendable(source)))


def _is_sendable(source: Any) -> bool:
    """Whether another process can read the source: local, hashable, and not too large for the shared memory."""
    if isinstance(source, bytes):
        return len(source) <= HALF
    return isinstance(source, PathLike) or (isinstance(source, str) and 4 * len(source) <= HALF and not is_url(source))


def _image(ticket: Ticket, policy: MediaPolicy) -> LazyImage:
    read = partial(image_bytes, ticket.source, policy=policy)
    if not isinstance(ticket.source, bytes):
        read = partial(_unchanged, ticket.source, ticket.key, read)
    return _of_content(ticket.key, read, policy, ticket.fault, ticket.received)


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
        read = partial(_image_read_here, policy=policy, spool=spool)
        names = list(dict.fromkeys(source for source in sources if isinstance(source, str | PathLike)))
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            named = dict(zip(names, pool.map(read, names), strict=True))
        yield [named[source] if isinstance(source, str | PathLike) else read(source) for source in sources]


def _image_read_here(source: Any, *, policy: MediaPolicy, spool: Spool) -> LazyImage:
    load = partial(load_image_any, source, policy=policy)
    try:
        content = image_bytes(source, policy=policy)
    except ImageError as fault:
        return LazyImage(b"", load, str(fault))
    key = image_key(content)
    read: Callable[[], bytes] = partial(image_bytes, source, policy=policy)
    if isinstance(source, bytes):
        return _of_content(key, read, policy)
    if not isinstance(source, str | PathLike):  # a Pillow image
        return LazyImage(key, load)
    return _of_content(key, partial(_unchanged, source, key, spool.keep(content) if is_url(source) else read), policy)


def _of_content(
    key: bytes, read: Callable[[], bytes], policy: MediaPolicy, fault: str | None = None, received: Any = None
) -> LazyImage:
    def load() -> Image.Image:
        return load_image_any(read(), policy=policy)

    return LazyImage(key, load, fault, received, lambda is_wanted: usual_jpeg(read(), policy, is_wanted))


def _unchanged(source: Any, key: bytes, reread: Callable[[], bytes]) -> bytes:
    """The content of an image that is read once more. It must be that of the key."""
    content = reread()
    if image_key(content) != key:
        raise ImageError(f"{shorten(str(source))} changed while it was being read")
    return content
