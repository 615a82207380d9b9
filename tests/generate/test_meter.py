"""The meter: what is counted, and that a budget is never exceeded."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.core.config import Parameters, Price
from multimodal_eval.generate.engine import Asker, Effort
from multimodal_eval.generate.meter import BudgetError, Meter, Metered, input_tokens
from multimodal_eval.generate.protocol import Answer, RateLimitError, RejectedError, Request, Text, Turn
from tests.generate.virtual_time import simulated

PRICE = Price(input=1_000_000, output=1_000_000)  # one unit of money per token


def request(text="abcd" * 6, most=10):
    """30 estimated tokens at most: 6 of text and 4 of the turn, twice as long as long as nothing is known."""
    return Request("a", (Turn("user", (Text(text),)),), Parameters(max_tokens=most))


class Answering:
    """Answers after a moment, with the given number of tokens."""

    label = "answering"

    def __init__(self, used=10, written=5, failure=None):
        self.used, self.written, self.failure = used, written, failure
        self.running = self.most_running = self.calls = 0

    async def answer(self, request):
        self.calls += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            if self.failure is not None:
                raise self.failure
            return Answer("x", input_tokens=self.used, output_tokens=self.written)
        finally:
            self.running -= 1


def asked(metered, count):
    """Ask several requests at once; the answers, and the failures."""

    async def ask():
        return await asyncio.gather(*(metered.answer(request()) for _ in range(count)), return_exceptions=True)

    return asyncio.run(ask())


def test_tokens_and_money_are_counted():
    meter = Meter(PRICE)
    asked(Metered(Answering(), meter), 3)
    assert (meter.input_tokens, meter.output_tokens, meter.spent) == (30, 15, 45)


def test_without_prices_only_tokens_are_counted():
    meter = Meter()
    asked(Metered(Answering(), meter), 3)
    assert (meter.output_tokens, meter.spent) == (15, 0)


def test_requests_in_flight_are_reserved_at_their_highest_cost():
    # A request may cost 2 * 10 + 10 = 30, so that 100 allow three at once. Each costs 15 in the end. The next ones may
    # cost 1.25 * 10 + 10 = 22 (12.5 is rounded to even): after three (45), two at once; after five (75) one; then
    # 90 + 22 > 100.
    model, meter = Answering(), Meter(PRICE, budget=100, most_output=10)
    assert input_tokens(request()) == 10
    results = asked(Metered(model, meter), 20)
    assert model.most_running == 3
    assert sum(isinstance(result, Answer) for result in results) == 6
    assert meter.spent == 90
    assert {type(result) for result in results} == {Answer, BudgetError}


def test_the_message_says_what_is_spent():
    meter = Meter(PRICE, budget=100, spent=80, most_output=10)
    (error,) = asked(Metered(Answering(), meter), 1)
    assert str(error) == (
        "the budget of 100.00 USD does not allow another request: 80.00 USD are spent, and a request may cost up to "
        "30.00 USD"
    )


def test_a_budget_that_suffices_exactly_allows_the_request():
    meter = Meter(PRICE, budget=30, most_output=10)
    assert isinstance(asked(Metered(Answering(), meter), 1)[0], Answer)


@pytest.mark.parametrize("failure", [RateLimitError("slow down"), RejectedError("too long"), ConnectionError("reset")])
def test_a_refused_request_is_free(failure):
    meter = Meter(PRICE, budget=30, most_output=10)
    metered = Metered(Answering(failure=failure), meter)
    assert asked(metered, 5) == [failure] * 5
    assert meter.spent == 0


def test_a_time_out_counts_at_the_highest_cost():
    class Hanging:
        label = "hanging"

        async def answer(self, request):
            await asyncio.Event().wait()

    meter = Meter(PRICE, budget=100, most_output=10)

    async def ask():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Metered(Hanging(), meter).answer(request()), 0.001)

    asyncio.run(ask())
    assert meter.spent == 30


def test_an_answer_without_token_counts_counts_at_the_highest_cost():
    meter = Meter(PRICE, budget=100, most_output=10)
    asked(Metered(Answering(used=None), meter), 1)
    assert meter.spent == 30


def test_everything_else_is_that_of_the_generator():
    model = Answering()
    metered = Metered(model, Meter())
    assert metered.label == "answering"
    assert metered.written == 5
    assert not hasattr(metered, "close")


@settings(max_examples=60, deadline=None)
@given(
    budget=st.integers(1, 3000),
    most=st.integers(1, 50),
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=40),
    seed=st.integers(0, 1000),
)
def test_the_budget_is_never_exceeded(budget, most, lengths, seed):
    """Whatever the order of the answers: as long as an input has at most twice as many tokens as estimated at first,
    and then at most a quarter more than any before."""
    draw = random.Random(seed)

    class Varying:
        label = "varying"

        async def answer(self, request):
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
            return Answer("x", input_tokens=input_tokens(request), output_tokens=draw.randint(0, most))

    meter = Meter(PRICE, budget=budget, most_output=most)
    metered = Metered(Varying(), meter)

    async def ask():
        requests = [request("a" * length, most) for length in lengths]
        return await asyncio.gather(*map(metered.answer, requests), return_exceptions=True)

    results = asyncio.run(ask())
    assert meter.spent <= budget
    for result in results:
        assert isinstance(result, Answer | BudgetError)


def test_a_request_that_waits_for_the_budget_has_neither_a_slot_nor_a_time_out():
    class Slow(Answering):
        async def answer(self, request):
            answer = await super().answer(request)
            await asyncio.sleep(0.05)
            return answer

    model, meter = Slow(), Meter(PRICE, budget=30.0, most_output=10)  # enough for one request at a time

    async def ask(clock):
        asker = Asker(Metered(model, meter), Effort(timeout=0.5), clock=clock)
        exchanges = []

        async def one():
            exchanges.append(await asker.ask(request()))
            meter.purse.budget = meter.spent + 30.0

        await asyncio.gather(*(one() for _ in range(20)))  # the last one waits for about a second
        return exchanges

    exchanges = simulated(ask)
    assert [(exchange.outcome.status, exchange.attempts) for exchange in exchanges] == [("ok", 1)] * 20
    assert model.most_running == 1


def test_a_cancelled_wait_gives_back_what_was_reserved():
    meter = Meter(PRICE, budget=30.0, most_output=10)
    metered = Metered(Answering(), meter)

    async def cancel():
        async with metered.admitted(request()):
            waiting = asyncio.create_task(metered.answer(request()))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with metered.admitted(request()):  # would wait forever if anything were still reserved
            return meter.spent

    assert asyncio.run(asyncio.wait_for(cancel(), 30)) == 0.0
