"""Slots for requests: how many run at once, and when the next one starts, as `Load` allows."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

from multimodal_eval.core.retries import RETRYABLE
from multimodal_eval.generate.load import Load, Ticket
from multimodal_eval.generate.protocol import MalformedReplyError

__all__ = ["Controller"]

_PATIENCE = 1.0  # seconds without a failure after which the first load is doubled, also without a success


class Controller:
    """Hands out slots. All its methods are called in one event loop; `clock` is replaced in tests."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.load = Load(most)
        self.running = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[Ticket]] = deque()
        self._due = 0.0  # when the next request may start
        self._timer: asyncio.TimerHandle | None = None
        self._growth: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many requests may run at once."""
        return self.load.places

    @property
    def has_usual_failures(self) -> bool:
        """Whether some requests fail at any load."""
        return self.load.usual > 0

    @property
    def is_down(self) -> bool:
        """Whether the endpoint has failed many times in a row."""
        return self.load.is_down

    def slot(self) -> _Slot:
        """Wait for a slot and hold it: `async with`. How the block ends changes the load."""
        return _Slot(self)

    async def enter(self) -> Ticket:
        """Wait for a slot. Cancelling the wait gives it back."""
        if not self._waiting:
            ticket = self._next()
            if ticket is not None:
                return ticket
        turn: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._wake()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.running -= 1
            self._wake()
            raise

    def leave(self, ticket: Ticket, failure: BaseException | None) -> None:
        """Give a slot back."""
        self.running -= 1
        if isinstance(failure, RETRYABLE) and not isinstance(failure, MalformedReplyError):
            self.load.failed(ticket, self._clock(), getattr(failure, "retry_after", None))
        else:
            self.load.succeeded(ticket, self._clock(), is_answered=failure is None)
        self._wake()

    def revive(self) -> None:
        """Note that the endpoint is not down: it has answered another request."""
        if self.is_down:
            self.load.revive()
            self._wake()

    def _next(self) -> Ticket | None:
        """A ticket, if a request may start now; otherwise the next attempt is scheduled."""
        load, now = self.load, self._clock()
        if self.running >= load.places:
            if load.is_starting and self._growth is None:
                self._growth = asyncio.get_running_loop().call_later(_PATIENCE, self._grow)
            return None
        due = load.resumes_at if load.resumes_at is not None else self._due if load.gap else now
        if due > now:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(due - now, self._on_time)
            return None
        gap = load.gap
        self._due = max(self._due, now - load.burst * gap) + gap
        self.running += 1
        return load.started(now, self.running - 1)

    def _wake(self) -> None:
        while self._waiting:
            if self._waiting[0].done():  # cancelled
                self._waiting.popleft()
                continue
            ticket = self._next()
            if ticket is None:
                return
            self._waiting.popleft().set_result(ticket)

    def _on_time(self) -> None:
        self._timer = None
        self._wake()

    def _grow(self) -> None:
        self._growth = None
        self.load.grow()
        self._wake()


class _Slot:
    """A slot of a controller."""

    __slots__ = ("_controller", "_ticket")

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def __aenter__(self) -> Ticket:
        self._ticket = await self._controller.enter()
        return self._ticket

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._controller.leave(self._ticket, error)
