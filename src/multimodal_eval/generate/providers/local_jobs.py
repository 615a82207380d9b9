"""Requests that wait for a model on this machine, which works in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from multimodal_eval.core.config import Parameters
from multimodal_eval.generate.protocol import Answer, Request

__all__ = ["Job", "JobThread", "seed_of", "unknown_parameters"]


def seed_of(request: Request) -> int:
    """The seed of a request's random choices: its own, so that equal draws do not line up between samples."""
    content = f"{request.parameters.seed or 0}\0{request.epoch}\0{request.digest}"
    return int.from_bytes(sha256(content.encode()).digest()[:8], "big")


def unknown_parameters(parameters: Parameters) -> list[str]:
    """The parameters that a model on this machine does not have. A schema of a request is ignored."""
    return [name for name in ("reasoning_effort", "top_logprobs") if getattr(parameters, name) is not None]


@dataclass(frozen=True, eq=False)
class Job:
    """A request that waits for its answer."""

    request: Request
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Answer]

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: the request has timed out."""
        return self.answer.cancelled()

    def deliver(self, result: Answer | BaseException) -> None:
        """Hand over the result, from another thread."""

        def hand_over() -> None:
            if self.answer.done():
                return
            if isinstance(result, BaseException):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)

        with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(hand_over)


class JobThread:
    """Calls `work` in a thread as long as requests wait. The thread ends when there is nothing to do.

    `work` takes requests with `next` until `is_needed` says that there are none. If it raises, every request that
    waits gets the exception.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work, self._name = work, name
        self._waiting: deque[Job] = deque()
        self._taken: dict[int, Job] = {}  # those that `next` has given out, by identity
        self._lock = threading.Lock()
        self._is_running = False

    async def ask(self, request: Request) -> Answer:
        """Wait for the answer of a request."""
        loop = asyncio.get_running_loop()
        job = Job(request, loop, loop.create_future())
        with self._lock:
            self._waiting.append(job)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
        return await job.answer

    def is_needed(self, *, is_working: bool = False) -> bool:
        """Whether there is anything to do. If not, the next request starts a new thread."""
        with self._lock:
            self._is_running = is_working or bool(self._waiting)
            return self._is_running

    def next(self, most: int) -> list[Job]:
        """Take the requests that have waited longest."""
        with self._lock:
            jobs = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._taken |= {id(job): job for job in jobs}
        return jobs

    def drop(self, job: Job) -> None:
        """Forget a request that was taken and is cancelled."""
        self._taken.pop(id(job), None)

    def deliver(self, job: Job, result: Answer | BaseException) -> None:
        """Hand over the result of a request that was taken."""
        self._taken.pop(id(job), None)
        job.deliver(result)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as fault:  # noqa: BLE001 - the thread ends, and those who wait must learn why
            with self._lock:
                left = [*self._taken.values(), *self._waiting]
                self._waiting.clear()
                self._taken.clear()
                self._is_running = False
            for job in left:
                job.deliver(fault)
