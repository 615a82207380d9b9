"""A pool of processes that decode images, run by one thread of this process.

Each process has its own shared memory in two halves: it works in one while this process takes the results out of the
other. Results are taken out as they arrive, so the order in which images are used does not matter. An image that waits
has a `Ticket`.
"""

from __future__ import annotations

import atexit
import os
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from multiprocessing import Pipe, current_process, get_context
from multiprocessing.connection import Connection, wait
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.machine import cores, main_hidden
from multimodal_eval.evaluation.decoding.worker import FREE, Decoded, InMemory, Job, Results, SharedBytes, Task, serve

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]


IMAGES_PER_TASK = 8
FILES_PER_TASK = 16  # a file is smaller than its image


@dataclass(frozen=True, eq=False)
class Line:
    """Images for one encoder: what the processes do, and what this process does with the bytes.

    `receive` copies the bytes of equally large images, of shape (images, height, width, channels), out of the shared
    memory, and returns what it made of each. `pin` is called once with the memory of each process. A process gets
    `per_task` images at a time.
    """

    job: Job
    receive: Callable[[Any], Sequence[Any]]
    pin: Callable[[Any], None] | None = None
    per_task: int = IMAGES_PER_TASK


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


HALF = 10 << 20  # bytes of shared memory for one task
LONG = 4096  # characters: a longer source is sent in shared memory, because a pipe holds 64 kB
TRIES = 2  # for an image whose process has died, without other images
FAILED_STARTS = 3  # in a row, before any result: no process can be started here
IDLE = 20.0  # seconds after which the processes are ended
CRASHED = "the process that decoded this image crashed on every attempt"


@dataclass(eq=False)
class _Memory:
    """The shared memory of one process at a time, and whether a device can read it directly."""

    shared: SharedBytes = field(default_factory=lambda: SharedBytes(2 * HALF))
    is_pinned: bool = False


@dataclass(eq=False)
class _Process:
    process: BaseProcess
    connection: Connection
    memory: _Memory
    tasks: deque[tuple[int, list[Ticket]]] = field(default_factory=deque)  # the half and its images, first one running
    jobs: dict[Line, int] = field(default_factory=dict)
    has_started: bool = False

    @property
    def free_half(self) -> int:
        return 1 - self.tasks[0][0] if self.tasks else 0


class DecodingPool:
    """Starts its processes with the first image, and ends them when there has been nothing to do for a while."""

    def __init__(self, workers: int, *, idle: float = IDLE) -> None:
        self.workers, self.idle = workers, idle
        self.seconds: defaultdict[str, float] = defaultdict(float)  # by stage, summed over the processes
        self.is_broken = False
        self._queue: deque[Ticket] = deque()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._processes: list[_Process] = []
        self._spare: list[_Memory] = []  # of ended processes
        self._least = 0  # processes that are started although there are not so many images yet
        self._failed_starts = 0
        self._is_closed = False
        self._wake_receiver, self._wake_sender = Pipe(duplex=False)

    def submit(self, line: Line, sources: Iterable[Any]) -> Submitted:
        """Start to decode images, after those that were submitted before."""
        submitted = Submitted(line, sources)
        with self._lock:
            if self.is_broken or self._is_closed:
                finish(submitted.tickets)
                return submitted
            self._queue.extend(submitted.tickets)
            self._ensure_thread()
        self._wake()
        return submitted

    def warm_up(self) -> None:
        """Start all processes, for images that are submitted soon."""
        with self._lock:
            if self.is_broken or self._is_closed:
                return
            self._least = self.workers
            self._ensure_thread()
        self._wake()

    @property
    def is_running(self) -> bool:
        """Whether it has processes."""
        return self._thread is not None

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._wake()
        if thread is not None:
            thread.join()

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="decoding", daemon=True)
            self._thread.start()

    def _wake(self) -> None:
        self._wake_sender.send_bytes(b"x")

    # Everything below runs in the thread of the pool.

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except BaseException as failure:  # a bug: whoever waits must not wait forever
            self._finish_all(failure)
            self._end_processes()
            raise

    def _step(self) -> bool:
        wanted = max(self._least, -(-len(self._queue) // IMAGES_PER_TASK))
        while len(self._processes) < min(self.workers, wanted) and not self.is_broken:
            self._start()
        self._least = 0
        self._hand_out()
        is_idle = not any(process.tasks for process in self._processes)
        ready = wait([self._wake_receiver, *(p.connection for p in self._processes)], self.idle if is_idle else None)
        for process in [p for p in self._processes if p.connection in ready]:
            self._read(process)
        if self._wake_receiver in ready:
            self._wake_receiver.recv_bytes()
        if ready and not self._is_closed:
            return True
        self._end_processes()
        with self._lock:
            if self._is_closed:
                finish(self._queue)
            elif self._queue:
                return True
            self._thread = None
            return False

    def _start(self) -> None:
        memory = self._spare.pop() if self._spare else _Memory()
        context = get_context("spawn")  # a process forked from one with threads may hang
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(there, memory.shared), name="mmeval-decoding", daemon=True)
        try:
            with main_hidden():
                process.start()
        except OSError as fault:  # no memory, or too many processes
            self._spare.append(memory)
            self._give_up(str(fault))
            return
        finally:
            there.close()
        self._processes.append(_Process(process, here, memory))

    def _hand_out(self) -> None:
        """Give every process up to two tasks: the second one starts when the first one is done."""
        for tasks in (0, 1):  # one for each before any has two
            for process in self._processes:
                if len(process.tasks) == tasks and (images := self._next_images()):
                    self._send(process, images)

    def _next_images(self) -> list[Ticket]:
        images: list[Ticket] = []
        size = 0
        with self._lock:
            while self._queue and (not images or len(images) < images[0].submitted.line.per_task):
                ticket = self._queue[0]
                if ticket.is_dropped:
                    self._queue.popleft()
                    continue
                size += _size_in_memory(ticket.source)
                if images and (
                    ticket.submitted.line is not images[0].submitted.line
                    or ticket.deaths
                    or images[0].deaths
                    or size > HALF
                ):
                    break
                images.append(self._queue.popleft())
        return images

    def _send(self, process: _Process, images: list[Ticket]) -> None:
        line, half = images[0].submitted.line, process.free_half
        start = place = half * HALF
        memory = process.memory.shared.array
        sources: list[Any] = []
        for ticket in images:
            source = ticket.source
            if size := _size_in_memory(source):
                content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
                size = len(content)
                memory[place : place + size] = memoryview(content)
                source = InMemory(place, size, isinstance(source, str))
                place += size
            sources.append(source)
        process.tasks.append((half, images))
        try:
            if line not in process.jobs:
                process.jobs[line] = len(process.jobs)
                process.connection.send((process.jobs[line], line.job))
            process.connection.send(Task(process.jobs[line], start, start + HALF, sources))
        except OSError:  # it has died: `_read` finds that out
            pass

    def _read(self, process: _Process) -> None:
        try:
            results = process.connection.recv()
        except (EOFError, OSError):
            self._bury(process)
            return
        if not isinstance(results, Results):
            process.has_started, self._failed_starts = True, 0
            return
        _, images = process.tasks[0]
        done = images[: len(results.decoded)]
        del images[: len(results.decoded)]
        started = perf_counter()
        self._take(process.memory, list(zip(done, results.decoded, strict=True)))
        for stage, seconds in results.seconds.items():
            self.seconds[stage] += seconds
        self.seconds["hand over"] += perf_counter() - started
        if results.is_last:
            process.tasks.popleft()
        else:
            with suppress(OSError):  # it has died: the next read finds that out
                process.connection.send(FREE)
        finish(done)

    def _take(self, memory: _Memory, decoded: list[tuple[Ticket, Decoded]]) -> None:
        pin = decoded[0][0].submitted.line.pin if decoded else None
        if pin is not None and not memory.is_pinned:
            pin(memory.shared.array)
            memory.is_pinned = True
        take(memory.shared.array, decoded)

    def _bury(self, process: _Process) -> None:
        """A process has died. Its images are tried again, those of the running task one by one."""
        self._processes.remove(process)
        process.connection.close()
        process.process.join()
        self._spare.append(process.memory)
        running = process.tasks.popleft()[1] if process.tasks and process.has_started else []
        for ticket in running:
            ticket.deaths += 1
        crashed = running if len(running) == 1 and running[0].deaths > TRIES else []
        for ticket in crashed:
            ticket.fault = CRASHED
        again = [ticket for images in ([] if crashed else running, *(i for _, i in process.tasks)) for ticket in images]
        with self._lock:
            self._queue.extendleft(reversed(again))
            finish(crashed)
        if not process.has_started:
            self._failed_starts += 1
            if self._failed_starts >= FAILED_STARTS:
                self._give_up(f"they end with the exit code {process.process.exitcode}")

    def _give_up(self, reason: str) -> None:
        if self._processes:  # they are fewer than wanted
            self.workers = len(self._processes)
            return
        self.is_broken = True
        warnings.warn(
            f"no process can be started to decode images: {reason}. They are decoded in this process, which is slower",
            stacklevel=2,
        )
        self._finish_all(None)

    def _finish_all(self, failure: BaseException | None) -> None:
        with self._lock:
            left = [*self._queue, *(ticket for p in self._processes for _, images in p.tasks for ticket in images)]
            for ticket in left:
                ticket.failure = failure
            self._queue.clear()
            self.is_broken = True
            finish(left)

    def _end_processes(self) -> None:
        for process in self._processes:
            process.process.kill()  # they have nothing to finish
            process.connection.close()
        for process in self._processes:
            process.process.join()
            self._spare.append(process.memory)
        self._processes.clear()


def _size_in_memory(source: Any) -> int:
    """The bytes that a source takes in the shared memory; 0 if it is sent as it is."""
    if isinstance(source, str):
        return 4 * len(source) if len(source) > LONG else 0
    return len(source) if isinstance(source, bytes | bytearray | memoryview) else 0


VARIABLE = "MMEVAL_DECODERS"
_limit: int | None = None
_pools: list[DecodingPool] = []  # more than one if the limit was changed


def limit_decoders(workers: int | None) -> None:
    """Set the number of processes for pools that are not started yet; None: one per core."""
    global _limit
    _limit = workers


def decoding_pool() -> DecodingPool | None:
    """The pool of this process; None if it may not start processes. $MMEVAL_DECODERS sets their number, 0 for none."""
    setting = os.environ.get(VARIABLE, "").strip()
    workers = int(setting) if setting.isdigit() else _limit or cores()
    if workers < 1 or current_process().daemon:  # a daemon process cannot start children
        return None
    return _pool(os.getpid(), workers)


def end_decoders() -> None:
    """End the processes of this process now instead of after a while; the next images start new ones."""
    for pool in _pools:
        pool.close()
    _pools.clear()
    _pool.cache_clear()


@lru_cache(maxsize=1)
def _pool(process: int, workers: int) -> DecodingPool:
    pool = DecodingPool(workers)
    _pools.append(pool)
    return pool


atexit.register(end_decoders)
