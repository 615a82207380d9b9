"""Ask a model many requests at once: bounded, adaptive, with retries, and stopped if the endpoint is down.

Every request is a coroutine that waits for a slot of the controller, calls the generator with a time-out, and retries
failures that are not the fault of the request. A request whose retries are used up stays open: it has no outcome.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from multimodal_eval.core.errors import MultimodalEvalError, RetryableError, described
from multimodal_eval.core.retries import RETRYABLE
from multimodal_eval.generate.concurrency import Controller
from multimodal_eval.generate.exchange import Exchange
from multimodal_eval.generate.outcomes import failed, outcome_of
from multimodal_eval.generate.protocol import Generator, RateLimitError, RejectedError, Request

__all__ = ["Asker", "BreakerError", "Effort", "OpenRequestError", "for_each"]

T = TypeVar("T")


class BreakerError(MultimodalEvalError):
    """The endpoint failed so many times in a row that no more requests are made."""


class OpenRequestError(Exception):
    """Every attempt of a request failed; the message is that of the last failure."""


@dataclass(frozen=True)
class Effort:
    """How many requests at once, how long each may take, and how often it is retried."""

    concurrency: int = 100
    timeout: float = 600.0  # seconds per attempt
    retries: int = 8
    first_delay: float = 0.5  # seconds; the longest delay doubles with every attempt
    longest_delay: float = 60.0
    longest_wait: float = 900.0  # seconds that a request waits for a rate limit, in total
    failures_in_a_row: int = 50  # of all requests, without a single success


@dataclass
class Asker:
    """Asks one generator. `clock`, `sleep` and `draw` are replaced in tests."""

    generator: Generator
    effort: Effort = field(default_factory=Effort)
    accept_truncated: bool = False
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        self.controller = Controller(self.effort.concurrency, clock=self.clock, sleep=self.sleep)
        self.failures = 0  # attempts that failed
        self._in_a_row = 0

    async def ask(self, request: Request) -> Exchange:
        """The outcome of a request. Raises OpenRequestError if every attempt fails, BreakerError if all requests do."""
        attempts, waited, used = 0, 0.0, 0
        while True:
            attempts += 1
            try:
                async with self.controller.slot():
                    started, begin = time.time(), self.clock()
                    answer = await asyncio.wait_for(self.generator.answer(request), self.effort.timeout)
            except RejectedError as rejection:
                self._in_a_row = 0
                outcome = failed("rejected", str(rejection))
            except RETRYABLE as failure:
                pause = self._noted(failure, used)
                if isinstance(failure, RateLimitError):
                    waited += pause
                    is_over = waited > self.effort.longest_wait
                else:
                    used += 1
                    is_over = used > self.effort.retries
                if is_over:
                    raise OpenRequestError(_text(failure)) from failure
                await self.sleep(pause)
                continue
            else:
                self._in_a_row = 0
                outcome = outcome_of(answer, accept_truncated=self.accept_truncated)
            return Exchange(outcome, request.digest, started, self.clock() - begin, attempts)

    def _noted(self, failure: Exception, used: int) -> float:
        """Count a failed attempt. Returns the pause before the next one."""
        self.failures += 1
        self._in_a_row += 1
        if self._in_a_row >= self.effort.failures_in_a_row:
            raise BreakerError(
                f"the endpoint failed {self._in_a_row} times in a row, so no more requests are made. "
                f"The last failure: {_text(failure)}"
            ) from failure
        wanted = failure.retry_after if isinstance(failure, RateLimitError) else None
        if wanted is not None:
            return wanted + self.draw() * self.effort.first_delay
        return self.draw() * min(self.effort.first_delay * 2.0**used, self.effort.longest_delay)


def _text(failure: Exception) -> str:
    return str(failure) if isinstance(failure, RetryableError) and str(failure) else described(failure)


async def for_each(items: Iterator[T], work: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Call `work` for every item, `at_once` of them at a time. The first exception cancels the others."""

    async def worker() -> None:
        for item in items:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
