"""The child process that reads and decodes images.

One task at a time: it reads each image once, checks it by the media policy, skips it if its vector is cached, decodes
it and writes the prepared bytes into its shared memory.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from multimodal_eval.core.errors import ImageError
from multimodal_eval.core.machine import initialise_child
from multimodal_eval.media.images import decoded_into, image_bytes, load_image_any, usual_jpeg
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.models.cache import CachedKeys
from multimodal_eval.models.clip.lazy_images import cached_content, image_key
from multimodal_eval.models.clip.preprocessing import HandOver

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]


ALIGNMENT = 64  # bytes
NICENESS = 10  # the parent has little to do, and everything waits for it
STARTED = "started"
FREE = "free"


@dataclass(frozen=True)
class Job:
    """How images become bytes for one encoder, and the cache of its vectors."""

    policy: MediaPolicy
    hand_over: Callable[[Any], Pixels]
    cache: Path | None


@dataclass(frozen=True, slots=True)
class InMemory:
    """A source that is in the shared memory of its task: bytes, or a long text such as a data URI."""

    start: int
    size: int
    is_text: bool


@dataclass(frozen=True, slots=True)
class Task:
    """Sources for one part of the shared memory, from `start` to `stop`."""

    job: int
    start: int
    stop: int
    sources: Sequence[Any]


class Decoded(NamedTuple):
    """The result for one source. Without a place and a fault, the vector is cached or the image was not decoded."""

    key: bytes
    fault: str | None = None
    start: int = 0
    shape: tuple[int, ...] | None = None  # of the bytes at `start`; one number for a file
    pixels: Pixels | None = None  # if they do not fit into the shared memory


@dataclass(slots=True)
class Results:
    """The results for the next sources of a task. Seconds are by stage.

    If they are not the last ones, the memory is full: the process waits until the parent sends `FREE`.
    """

    decoded: list[Decoded] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("read", "decode", "copy"), 0.0))
    is_last: bool = True


def serve(connection: Connection, shared: SharedBytes) -> None:
    """Work on tasks until the parent ends or closes the connection."""
    initialise_child(on_interrupt=signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(EOFError, OSError):
        connection.send(STARTED)
        _Server(connection, shared.array).work()


class _Server:
    def __init__(self, connection: Connection, memory: Pixels) -> None:
        self.connection, self.memory = connection, memory
        self.waiting: deque[Any] = deque()
        self.jobs: dict[int, tuple[Job, CachedKeys]] = {}

    def work(self) -> None:
        while True:
            message = self.waiting.popleft() if self.waiting else self.connection.recv()
            if isinstance(message, Task):
                self._do(message)
            else:
                number, job = message
                self.jobs[number] = job, CachedKeys(job.cache)

    def _do(self, task: Task) -> None:
        results, place = Results(), task.start
        sources = [self._source(source) for source in task.sources]  # their memory is overwritten
        for source in sources:
            free = self.memory[place : task.stop]
            decoded, pixels = _decoded(source, *self.jobs[task.job], results.seconds, free)
            if pixels is not None and pixels.nbytes > task.stop - task.start:
                decoded = Decoded(decoded.key, pixels=pixels)
            elif pixels is not None:
                if place + pixels.nbytes > task.stop:
                    results.is_last = False
                    self.connection.send(results)
                    self._wait_until_free()
                    results, place = Results(), task.start
                started = perf_counter()
                target = self.memory[place : place + pixels.nbytes].reshape(pixels.shape)
                if pixels.__array_interface__["data"] != target.__array_interface__["data"]:  # not decoded into it
                    target[...] = pixels
                decoded = Decoded(decoded.key, start=place, shape=pixels.shape)
                place = -(-(place + pixels.nbytes) // ALIGNMENT) * ALIGNMENT
                results.seconds["copy"] += perf_counter() - started
            results.decoded.append(decoded)
        self.connection.send(results)

    def _wait_until_free(self) -> None:
        while (message := self.connection.recv()) != FREE:
            self.waiting.append(message)

    def _source(self, source: Any) -> Any:
        if not isinstance(source, InMemory):
            return source
        content = self.memory[source.start : source.start + source.size].tobytes()
        return content.decode("utf-8", "surrogatepass") if source.is_text else content


def _decoded(
    source: Any, job: Job, cached: CachedKeys, seconds: dict[str, float], free: Pixels
) -> tuple[Decoded, Pixels | None]:
    """The result and the pixels, which may be at the start of the free memory."""
    started = perf_counter()
    key = b""
    try:
        content = image_bytes(source, policy=job.policy)
        key = image_key(content)
        is_cached = cached_content(key) in cached
        read = perf_counter()
        seconds["read"] += read - started
        if is_cached:
            return Decoded(key), None
        pixels = None
        if isinstance(job.hand_over, HandOver):
            pixels = _handed_over(content, job.hand_over, job.policy, free)
        if pixels is None:
            pixels = job.hand_over(load_image_any(content, policy=job.policy))
        seconds["decode"] += perf_counter() - read
    except ImageError as fault:
        return Decoded(key, str(fault)), None
    except Exception:  # noqa: BLE001 - the parent tries again, and then it fails there
        return Decoded(key), None
    return Decoded(key), pixels


def _handed_over(content: bytes, hand_over: HandOver, policy: MediaPolicy, free: Pixels) -> Pixels | None:
    """A usual JPEG file as it is, or decoded into the free memory; None if Pillow has to open the image."""
    import numpy as np

    if hand_over.file_up_to and usual_jpeg(content, policy, hand_over.keeps_file) is not None:
        return np.frombuffer(content, np.uint8)
    return decoded_into(free, content, policy, hand_over.keeps_whole)


# Memory that a process shares with its children. It has no name, so a killed process leaves nothing behind.


class SharedBytes:
    """Bytes that a child process gets as an argument when it is started. Pages that are not used take no memory.

    On Linux they do not need space in /dev/shm, which is small in containers.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory: Any
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("mmeval")
            os.ftruncate(self._descriptor, size)
            self._memory = mmap.mmap(self._descriptor, size)
        else:
            self._memory = RawArray("B", size)

    @property
    def array(self) -> NDArray[np.uint8]:
        """The bytes."""
        import numpy as np

        return np.frombuffer(self._memory, np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._memory, mmap.mmap):
            from multiprocessing.reduction import DupFd  # not on Windows

            return _of_descriptor, (DupFd(self._descriptor), self.size)
        return _of_memory, (self._memory, self.size)


def _of_descriptor(descriptor: Any, size: int) -> SharedBytes:
    shared = SharedBytes.__new__(SharedBytes)
    shared.size, shared._descriptor = size, descriptor.detach()
    shared._memory = mmap.mmap(shared._descriptor, size)
    return shared


def _of_memory(memory: Any, size: int) -> SharedBytes:
    shared = SharedBytes.__new__(SharedBytes)
    shared.size, shared._memory = size, memory
    return shared
