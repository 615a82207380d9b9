"""A server in virtual time: it allows some requests per second or at once, and fails for reasons of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from multimodal_eval.core.errors import RetryableError
from multimodal_eval.generate.protocol import Answer, RateLimitError, Request


@dataclass
class Server:
    """Counts what it accepts and refuses, with times."""

    clock: Callable[[], float]
    latency: float = 0.5
    spread: float = 0.0  # 0: constant; 1: exponential
    at_once: int | None = None
    per_second: float | None = None
    burst: float = 5.0  # requests that may come at the same moment, if the rate is limited
    faults: float = 0.0  # share of requests that fail whatever the load is
    fault_latency: float | None = None  # None: like answers
    retry_after: float | None = None
    refusal_latency: float = 0.005
    lag: float = 0.0  # mean seconds from the end of an answer to its arrival
    down: tuple[float, float] = (0.0, 0.0)
    label: str = "simulated"
    running: int = 0
    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    failed: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(3)
        self._tokens, self._filled = self.burst, 0.0

    async def answer(self, request: Request) -> Answer:
        """An answer, a refusal beyond what is allowed, or a fault."""
        now = self.clock()
        if self.down[0] <= now < self.down[1]:
            self.failed.append(now)
            raise ConnectionError("connection refused")
        if not self._allows(now):
            self.refused.append(now)
            await asyncio.sleep(self.refusal_latency)
            raise RateLimitError("HTTP 429", self.retry_after)
        self.running += 1
        try:
            if self.rng.random() < self.faults:
                self.failed.append(now)
                await asyncio.sleep(self._duration() if self.fault_latency is None else self.fault_latency)
                raise self.rng.choice(
                    [RateLimitError("HTTP 429"), RetryableError("HTTP 500"), ConnectionError("reset")]
                )
            await asyncio.sleep(self._duration())
            self.accepted.append(self.clock())
        finally:
            self.running -= 1
        if self.lag:
            await asyncio.sleep(self.rng.expovariate(1 / self.lag))
        return Answer(request.prompt)

    def _duration(self) -> float:
        return self.latency * (1 - self.spread + self.spread * self.rng.expovariate(1.0))

    def _allows(self, now: float) -> bool:
        if self.at_once is not None and self.running >= self.at_once:
            return False
        if self.per_second is None:
            return True
        self._tokens = min(self.burst, self._tokens + (now - self._filled) * self.per_second)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
