"""Count what a generator uses, and keep it within a budget.

A request is asked only if the budget suffices for it and for all requests in flight at their highest possible cost:
the estimated tokens of the input and `max_tokens` of output. When an answer arrives, its real cost takes their place.
A request that the budget does not allow waits for those in flight, which usually cost less; if there are none, the run
stops. An answer without token counts, and a request that timed out, count at the highest cost; an error is free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from multimodal_eval.core.config import GenerationConfig, Price
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.generate.functions import answer_from
from multimodal_eval.generate.prices import cost_of, input_tokens, money
from multimodal_eval.generate.protocol import Answer, EndpointError, Generator, Request

__all__ = ["BudgetError", "Meter", "Metered", "Purse"]

# Input tokens may be this many times the estimate: before an answer has told, and beyond the largest ratio so far.
_FIRST_RATIO, _MARGIN = 2.0, 1.25


class BudgetError(EndpointError):
    """The next request might exceed the budget. The answers so far are kept."""


@dataclass
class Purse:
    """The money of a run: its budget, and what is spent or reserved. Meters with different prices can share it."""

    budget: float | None = None
    spent: float = 0.0  # also by earlier processes
    reserved: dict[int, float] = field(default_factory=dict)  # number of a request in flight -> its highest cost
    numbers: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def wake(self) -> None:
        """Let the requests that wait look again."""
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)


class Meter:
    """Tokens and money of the requests of this process to one model, and what was spent before."""

    def __init__(
        self,
        price: Price | None = None,
        budget: float | None = None,
        spent: float = 0.0,
        *,
        most_output: int = 0,
        purse: Purse | None = None,
    ) -> None:
        self.price = price
        self.input_tokens = 0
        self.output_tokens = 0
        self.most_output = most_output  # tokens of one answer
        self._ratio = 0.0  # the largest so far: tokens of an input / its estimate
        self.purse = Purse(budget, spent) if purse is None else purse

    @classmethod
    def of(cls, config: GenerationConfig, spent: float = 0.0, purse: Purse | None = None) -> Meter:
        """The meter of a run; `spent` is what its answers so far have cost."""
        tokens = config.parameters.max_tokens or 0
        return cls(config.price, config.budget, spent, most_output=tokens, purse=purse)

    @property
    def spent(self) -> float:
        """What is spent, also by earlier processes, and by others that share the budget."""
        return self.purse.spent

    async def reserve(self, estimated: int) -> int:
        """Wait until the budget allows a request with this many estimated tokens. Returns its number."""
        purse, most = self.purse, self._highest_cost(estimated)
        while purse.budget is not None and purse.spent + sum(purse.reserved.values()) + most > purse.budget:
            if not purse.reserved:
                raise BudgetError(self._refusal(most))
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            purse.waiting.append(turn)
            await turn
            most = self._highest_cost(estimated)
        purse.numbers += 1
        if purse.budget is not None:
            purse.reserved[purse.numbers] = most
        return purse.numbers

    def settle(self, number: int, estimated: int, answer: Answer) -> None:
        """Replace the highest cost of a request by that of its answer."""
        self.input_tokens += answer.input_tokens or 0
        self.output_tokens += answer.output_tokens or 0
        highest = self.purse.reserved.pop(number, 0.0)
        if self.price is not None:
            if answer.input_tokens is None or answer.output_tokens is None:
                self.purse.spent += highest
            else:
                self.purse.spent += cost_of(
                    self.price, answer.input_tokens, answer.output_tokens, answer.cached_tokens or 0
                )
        if answer.input_tokens is not None:
            self._ratio = max(self._ratio, answer.input_tokens / max(1, estimated))
        self.purse.wake()

    def release(self, number: int, *, is_paid: bool = False) -> None:
        """End a request without an answer; `is_paid` counts its highest cost as spent."""
        highest = self.purse.reserved.pop(number, 0.0)
        self.purse.spent += highest if is_paid else 0.0
        self.purse.wake()

    def _highest_cost(self, estimated: int) -> float:
        if self.price is None:
            return 0.0
        tokens = estimated * (self._ratio * _MARGIN if self._ratio else _FIRST_RATIO)
        return cost_of(self.price, round(tokens), self.most_output)

    def _refusal(self, most: float) -> str:
        assert self.price is not None
        assert self.purse.budget is not None
        currency = self.price.currency
        return (
            f"the budget of {money(self.purse.budget, currency)} does not allow another request: "
            f"{money(self.spent, currency)} are spent, and a request may cost up to {money(most, currency)}"
        )


@dataclass(frozen=True)
class _Reserved:
    number: int
    estimated: int  # tokens of the input


class Metered:
    """A generator that counts what it uses. Everything else is that of the generator inside."""

    def __init__(self, generator: Generator, meter: Meter) -> None:
        self._generator, self._meter = generator, meter
        self._admitted: dict[int, _Reserved] = {}  # by the identity of the request
        self.label = generator.label

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    @asynccontextmanager
    async def admitted(self, request: Request) -> AsyncIterator[None]:
        """Wait until the budget allows the request, before it has a slot and its time-out starts."""
        self._admitted[id(request)] = await self._reserved(request)
        try:
            yield
        finally:
            unused = self._admitted.pop(id(request), None)
            if unused is not None:
                self._meter.release(unused.number)

    async def _reserved(self, request: Request) -> _Reserved:
        estimated = 0 if self._meter.purse.budget is None else input_tokens(request)
        return _Reserved(await self._meter.reserve(estimated), estimated)

    async def answer(self, request: Request) -> Answer:
        """The answer of the generator, if the budget allows the request."""
        meter = self._meter
        reserved = self._admitted.pop(id(request), None) or await self._reserved(request)
        try:
            answer = await answer_from(self._generator, request)
        except asyncio.CancelledError:  # a time-out: the endpoint may have worked on it
            meter.release(reserved.number, is_paid=True)
            raise
        except BaseException as failure:
            meter.release(reserved.number, is_paid=not isinstance(failure, MultimodalEvalError | ConnectionError))
            raise
        meter.settle(reserved.number, reserved.estimated, answer)
        return answer
