"""Ask a model many requests at once: bounded, adaptive, with retries, and stopped if the endpoint is down.

Every request is a coroutine that waits for a slot of the controller, calls the generator with a time-out, and retries
failures that are not the fault of the request. A request whose retries are used up stays open: it has no outcome.
Waiting for a rate limit uses a retry only if the endpoint serves other requests meanwhile. If it asks for a longer
pause than `Effort.longest_wait` and serves none, no more requests are made; one that it refuses while it serves others
waits at most `_ALONE` seconds after the last answer, so that it does not delay the end of a run.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from multimodal_eval.core.errors import AskingError, MultimodalEvalError, OpenSamplesError, RetryableError, described
from multimodal_eval.core.generation_config import GenerationConfig
from multimodal_eval.core.metric_failures import RETRYABLE
from multimodal_eval.core.progress import duration
from multimodal_eval.generate.concurrency import Controller
from multimodal_eval.generate.protocol import (
    Exchange,
    Generator,
    MalformedReplyError,
    Outcome,
    RateLimitError,
    RejectedError,
    Request,
    failed,
    outcome_of,
    refused_request,
)

__all__ = [
    "Asker",
    "BreakerError",
    "Effort",
    "OpenRequestError",
    "effort_of",
    "for_each",
    "in_one_loop",
    "run_async",
]

# Of models that are asked in one event loop: those at one address share the requests that may run at once.
_shared_controllers: ContextVar[dict[tuple[str, int], Controller] | None] = ContextVar("controllers", default=None)

T = TypeVar("T")
Admission = Callable[[Request], AbstractAsyncContextManager[None]]
_MALFORMED = 5  # attempts of a request whose replies are malformed
_FEW = 3  # requests; failures of fewer different ones may be the fault of the requests
_ALONE = 45.0  # seconds after the last answer in which requests that are refused while others are answered are retried
_LOOK_AGAIN = 5.0  # seconds after the endpoint did not answer a small request
_HTTP_STATUS = re.compile(r"HTTP \d+")
_LONGEST_NOTE = 40  # characters of a failure in progress
_MOST_AWAY = 16  # items that wait for a retry, per item that does not


class BreakerError(OpenSamplesError, AskingError):
    """The endpoint failed so many times in a row that no more requests are made."""


class OpenRequestError(Exception):
    """Every attempt of a request failed; the message is that of the last failure."""

    is_final = False  # all its retries are used, and the endpoint served others
    digest = ""  # of the request, if it is stored with the failure


@dataclass(frozen=True)
class Effort:
    """How many requests at once, how long each may take, and how often it is retried."""

    concurrency: int = 100
    timeout: float = 600.0  # seconds per attempt
    retries: int = 8
    first_delay: float = 0.5  # seconds; the longest delay doubles with every attempt
    longest_delay: float = 2.0  # longer ones are the controller's, if the endpoint is down
    longest_wait: float = 900.0  # seconds that a request waits for a rate limit, in total
    first_failures: int = 10  # failures in a row that stop a run without a single success
    longest_outage: float = 120.0  # seconds of failures only that stop a run with successes before


def effort_of(config: GenerationConfig, generator: Generator) -> Effort:
    """How hard to try. A model on this machine says how many requests it answers `at_once`; more would only wait."""
    default = Effort()
    most: int = getattr(generator, "at_once", default.concurrency)
    return Effort(
        concurrency=config.concurrency or most,
        timeout=config.timeout or default.timeout,
        retries=default.retries if config.retries is None else config.retries,
    )


@dataclass
class _Attempts:
    """What one request has gone through."""

    number: int = 0
    used: int = 0  # retries; waiting for an endpoint that is down, or limits all requests, uses none
    malformed: int = 0
    waited: float = 0.0  # seconds, for a rate limit
    answered: int = 0  # requests of the asker, at the last failure of this one
    refused: int = 0  # attempts of the asker
    since: float = 0.0  # the first attempt
    is_oldest: bool = True  # of the attempts without a reply, when this one failed


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
        self.controller = Controller(self.effort.concurrency, clock=self.clock)
        address, shared = getattr(self.generator, "base_url", None), _shared_controllers.get()
        if address is not None and shared is not None:
            self.controller = shared.setdefault((address, self.effort.concurrency), self.controller)
        self.failures = 0  # attempts that failed
        self.last_failure = ""
        self.has_failed: Callable[[], None] = lambda: None  # called after every attempt that failed
        self.sleeping = 0  # requests that wait before they are tried again
        self.went_to_sleep: Callable[[], None] = lambda: None
        self._unanswered: dict[int, None] = {}  # the attempts without a reply, oldest first
        self._in_a_row = 0
        self._failing: set[str] = set()  # the digests of the requests that failed in a row, as far as they are counted
        self._failing_since = 0.0
        self._looked: tuple[float, bool] = (float("-inf"), False)  # when the endpoint was last tried; was it alive?
        self._looking = asyncio.Lock()
        self._has_succeeded = False
        self._answered = 0  # requests
        self._answered_at = 0.0  # the last one
        self._refused = 0  # attempts, by a rate limit
        self._resumes_at = float("-inf")  # before it, the endpoint wants no request: one was given up for that

    async def ask(self, request: Request) -> Exchange:
        """The outcome of a request. Raises OpenRequestError if every attempt fails, BreakerError if all requests do."""
        attempts = _Attempts(answered=self._answered, refused=self._refused, since=self.clock())
        while (pause := self._resumes_at - self.clock()) > 0:
            await self._away(pause)
        while True:
            attempts.number += 1
            started, begin = time.time(), self.clock()
            try:
                async with self._admitted(request), self.controller.slot() as ticket:
                    started, begin = time.time(), ticket.started
                    with self._sent(attempts):
                        async with asyncio.timeout(self.effort.timeout):
                            answer = await self.generator.answer(request)
                outcome = outcome_of(answer, accept_truncated=self.accept_truncated)
            except RejectedError as rejection:
                outcome = refused_request(rejection)
            except RETRYABLE as failure:
                ending = await self._after(failure, attempts, request.digest)
                if ending is None:
                    continue
                outcome = ending
            except MultimodalEvalError:
                raise
            except Exception as bug:  # noqa: BLE001 - of a function or a plug-in
                outcome = failed("raised", described(bug))
            else:
                self._has_succeeded = True
            if outcome.status != "malformed":
                self._answered, self._answered_at = self._answered + 1, self.clock()
                self._recovered()
            return Exchange(outcome, request.digest, started, self.clock() - begin, attempts.number)

    @contextmanager
    def _sent(self, attempts: _Attempts) -> Iterator[None]:
        """While an attempt has no reply. Afterwards, the attempts say whether it was the oldest one."""
        self._unanswered[id(attempts)] = None
        try:
            yield
        finally:
            attempts.is_oldest = next(iter(self._unanswered)) == id(attempts)
            del self._unanswered[id(attempts)]

    @property
    def errors(self) -> str:
        """The attempts that failed, for progress: `12 errors, last: HTTP 429`. Empty if there are none."""
        if not self.failures:
            return ""
        status = _HTTP_STATUS.match(self.last_failure)
        last = status[0] if status else self.last_failure[:_LONGEST_NOTE]
        return f"{self.failures:,} {'error' if self.failures == 1 else 'errors'}, last: {last}"

    def _admitted(self, request: Request) -> AbstractAsyncContextManager[None]:
        """A generator may let requests wait, for a budget, before they have a slot and their time-out starts."""
        admitted: Admission | None = getattr(self.generator, "admitted", None)
        return nullcontext() if admitted is None else admitted(request)

    def _longest_pause(self, attempt: int) -> float:
        """It doubles with every attempt, unless failures are known not to depend on the load."""
        first, longest = self.effort.first_delay, self.effort.longest_delay
        return first if self.controller.has_usual_failures else min(first * 2.0 ** min(attempt - 1, 30), longest)

    async def _after(self, failure: Exception, attempts: _Attempts, digest: str) -> Outcome | None:
        """Wait after a failed attempt, or end: with an outcome, or with an error if the request stays open."""
        await self._note(failure, digest, is_oldest=attempts.is_oldest)
        asked = getattr(failure, "retry_after", None) or 0.0
        pause = self.draw() * self._longest_pause(attempts.number) + asked
        if isinstance(failure, RateLimitError) and await self._serves_others(attempts):
            attempts.used += 1
            self._refuse_another(attempts, failure, is_late=self.clock() >= self._latest(attempts))
            await self._away(pause, attempts)
            return None
        self._refuse_long_pause(asked, failure)
        if isinstance(failure, MalformedReplyError):
            attempts.malformed += 1
            if attempts.malformed >= _MALFORMED:
                return failed("malformed", str(failure))
        elif isinstance(failure, RateLimitError):
            attempts.waited += pause
            if attempts.waited > self.effort.longest_wait:
                self._resumes_at = max(self._resumes_at, self.clock() + asked)
                raise OpenRequestError(self._text(failure)) from failure
        elif not self._is_down:
            attempts.used += 1
            self._refuse_another(attempts, failure)
        await self._away(pause)
        return None

    def _refuse_another(self, attempts: _Attempts, failure: Exception, *, is_late: bool = False) -> None:
        """End a request whose retries, or time, are used."""
        if is_late or attempts.used > self.effort.retries:
            ended = OpenRequestError(self._text(failure))
            ended.is_final = True
            raise ended from failure

    async def _serves_others(self, attempts: _Attempts) -> bool:
        """Whether the endpoint refuses this request, and not what it is asked for in general, since its last attempt.

        It has answered more requests than it has refused; or it has refused all, and answers a small one.
        """
        self._refused += 1
        answered, refused = self._answered - attempts.answered, self._refused - attempts.refused - 1
        attempts.answered, attempts.refused = self._answered, self._refused
        return answered > refused if answered else self._has_succeeded and await self._is_alive(_LOOK_AGAIN)

    def _latest(self, attempts: _Attempts) -> float:
        """When the last attempt of a request starts that is refused while others are answered."""
        return max(self._answered_at, attempts.since) + _ALONE

    async def _away(self, pause: float, alone: _Attempts | None = None) -> None:
        """Wait, and leave the place to others meanwhile. A request that is refused alone does not wait without them."""
        self.sleeping += 1
        self.went_to_sleep()
        end = self.clock() + pause
        try:
            while (rest := min(end, self._latest(alone) if alone else end) - self.clock()) > 0:
                await self.sleep(rest)
        finally:
            self.sleeping -= 1

    def _refuse_long_pause(self, asked: float, failure: Exception) -> None:
        """Stop if the endpoint asks for a longer pause than a run waits."""
        longest = self.effort.longest_wait
        if asked > longest:
            raise BreakerError(
                f"the endpoint asks for a pause of {duration(asked)} ({self._text(failure)}). A run waits for at most "
                f"{duration(longest)}, so no more requests are made now"
            ) from failure

    @property
    def _is_down(self) -> bool:
        """Whether the endpoint fails, and not only a few of the requests."""
        return self.controller.is_down and len(self._failing) >= _FEW

    async def _note(self, failure: Exception, digest: str, *, is_oldest: bool) -> None:
        """Count a failed attempt. Raises BreakerError if there is no hope.

        Before the first success, only failures of the oldest attempt count: a fault comes sooner than an answer.
        """
        self.failures, self.last_failure = self.failures + 1, self._text(failure)
        self.has_failed()
        if not self._in_a_row:
            self._failing_since = self.clock()
        self._in_a_row += is_oldest or self._has_succeeded
        if len(self._failing) < _FEW:
            self._failing.add(digest)
        lasted = self.clock() - self._failing_since
        if isinstance(failure, RateLimitError):
            is_over = self.controller.is_down and lasted >= self.effort.longest_wait
        elif self._has_succeeded:
            is_over = self._is_down and lasted >= self.effort.longest_outage
        else:
            is_over = self._in_a_row >= self.effort.first_failures and len(self._failing) >= _FEW
        if (is_over or self._is_down) and await self._is_alive():
            self._has_succeeded = True
            self._recovered()
            self.controller.revive()
        elif is_over:
            within = f" within {lasted:,.0f} seconds" if lasted >= 1 else ""
            raise BreakerError(
                f"the endpoint failed {self._in_a_row:,} times in a row{within}, so no more requests are made. "
                f"The last failure: {self._text(failure)}"
            ) from failure

    def _text(self, failure: Exception) -> str:
        """What has failed, in words."""
        if isinstance(failure, TimeoutError) and not str(failure):
            return f"no reply within {self.effort.timeout:g} seconds"
        return str(failure) if isinstance(failure, RetryableError) and str(failure) else described(failure)

    def _recovered(self) -> None:
        self._in_a_row = 0
        self._failing.clear()

    async def _is_alive(self, valid: float = 0.0) -> bool:
        """Whether the endpoint answers a small request, so that those that fail are the problem. False if unknown.

        It is not asked again within `valid` seconds after it has answered.
        """
        look: Callable[[], Awaitable[bool]] | None = getattr(self.generator, "is_alive", None)
        if look is None:
            return False
        begin = self.clock()
        async with self._looking:
            when, is_alive = self._looked
            if when < begin - (valid if is_alive else _LOOK_AGAIN):
                is_alive = await look()
                self._looked = (self.clock(), is_alive)
            return is_alive


async def for_each(
    items: AsyncIterator[T],
    work: Callable[[T], Coroutine[Any, Any, None]],
    at_once: int,
    asker: Asker | None = None,
) -> None:
    """Call `work` for every item, `at_once` of them at a time. The first exception cancels the others.

    Items whose request waits for a retry of `asker` leave their place to others meanwhile, unless the endpoint is down.
    """
    running: set[asyncio.Task[None]] = set()
    changed = asyncio.Event()
    if asker is not None:
        asker.went_to_sleep = changed.set

    def is_full() -> bool:
        if asker is None or asker.controller.is_down:
            return len(running) >= at_once
        return len(running) - asker.sleeping >= at_once or len(running) >= _MOST_AWAY * at_once

    def ended(task: asyncio.Task[None]) -> None:
        running.discard(task)
        changed.set()
        if task.cancelled() or task.exception() is not None:
            failures.append(task)

    failures: list[asyncio.Task[None]] = []
    try:
        async for item in items:
            task = asyncio.create_task(work(item))
            running.add(task)
            task.add_done_callback(ended)
            while is_full() and not failures:
                changed.clear()
                await changed.wait()
            if failures:
                break
        while running and not failures:
            changed.clear()
            await changed.wait()
    finally:
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if failures:
        failures[0].result()  # raises


# From functions to coroutines: one event loop for several runs, or for one in a notebook.


class _OneLoop(NamedTuple):
    """The event loop of several runs, and the lock of the one that does something else than to wait for replies."""

    loop: asyncio.AbstractEventLoop
    turn: Lock


_one_loop: ContextVar[_OneLoop | None] = ContextVar("one event loop", default=None)


def in_one_loop(jobs: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """What functions return or raise. They take turns, but what they ask is asked in one event loop, at once.

    An interruption (Ctrl-C) cancels all requests.
    """
    turn = Lock()

    def in_turn(job: Callable[[], T]) -> T:
        with turn:
            return job()

    async def everything() -> list[T | BaseException]:
        loop = asyncio.get_running_loop()
        _one_loop.set(_OneLoop(loop, turn))
        _shared_controllers.set({})
        with ThreadPoolExecutor(len(jobs), "run") as pool:
            threads = [loop.run_in_executor(pool, copy_context().run, in_turn, job) for job in jobs]
            try:
                return await asyncio.gather(*threads, return_exceptions=True)
            except asyncio.CancelledError:
                asked = asyncio.all_tasks() - {asyncio.current_task()}
                for task in asked:
                    task.cancel()
                await asyncio.gather(*asked, return_exceptions=True)  # so that the threads end
                raise

    return run_async(everything())


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also in a notebook, where the thread has a running event loop already.

    An interruption (Ctrl-C) cancels the coroutine, also if it runs in another thread.
    """
    if (shared := _one_loop.get()) is not None:
        reply = asyncio.run_coroutine_threadsafe(coroutine, shared.loop)
        shared.turn.release()
        try:
            return reply.result()
        finally:
            shared.turn.acquire()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(asyncio.run, _announced(coroutine, started))
        try:
            return result.result()
        except BaseException:
            if not result.done():
                loop, task = started.result()
                with suppress(RuntimeError):  # it has ended meanwhile
                    loop.call_soon_threadsafe(task.cancel)
            raise  # after the thread has ended


async def _announced(
    coroutine: Coroutine[Any, Any, T], started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]]
) -> T:
    task = asyncio.current_task()
    assert task is not None
    started.set_result((asyncio.get_running_loop(), task))
    return await coroutine
