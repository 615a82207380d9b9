"""How many requests run at once: additive increase, multiplicative decrease.

The limit starts low and doubles with every round of successes, up to the first sign of overload (a rate limit, an error
of the server, a time-out). From then on a round of successes adds one, and a sign of overload takes a share away, at
most once per round, because the failures of one round have one cause.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from multimodal_eval.core.retries import RETRYABLE
from multimodal_eval.generate.protocol import RateLimitError

__all__ = ["Controller"]

FIRST_LIMIT = 8
DECREASE = 0.7


class Controller:
    """Hands out slots for requests."""

    def __init__(
        self,
        most: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.most, self.limit = most, float(min(FIRST_LIMIT, most))
        self._clock, self._sleep = clock, sleep
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_starting = True  # until the first sign of overload
        self._decreased_at = -1.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it. How the block ends changes the limit."""
        await self._enter()
        started = self._clock()
        try:
            yield
        except RETRYABLE as failure:
            self._overloaded(started, isinstance(failure, RateLimitError))
            raise
        else:
            self._succeeded()
        finally:
            self._busy -= 1
            self._wake()

    async def _enter(self) -> None:
        if self._busy < int(self.limit) and not self._waiting:
            self._busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn  # `_wake` has counted this request as busy

    def _wake(self) -> None:
        while self._waiting and self._busy < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)

    def _succeeded(self) -> None:
        step = 1.0 if self._is_starting else 1 / self.limit
        self.limit = min(self.limit + step, float(self.most))

    def _overloaded(self, started: float, is_rate_limit: bool) -> None:
        self._is_starting = False
        if started > self._decreased_at:  # otherwise this request was sent before the last decrease
            self._decreased_at = self._clock()
            self.limit = max(1.0, self.limit * DECREASE)
