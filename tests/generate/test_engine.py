"""Retries, the breaker and time-outs, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from multimodal_eval.core.errors import ConfigError, OpenSamplesError, RetryableError
from multimodal_eval.generate.engine import Asker, BreakerError, Effort, OpenRequestError, for_each
from multimodal_eval.generate.protocol import (
    Answer,
    EndpointError,
    Exchange,
    MalformedReplyError,
    RateLimitError,
    RejectedError,
    Request,
)
from tests.generate.requests import asked, each
from tests.generate.simulated_server import Server
from tests.generate.virtual_time import simulated


class Scripted:
    """Raises or returns what is listed, then repeats the last."""

    label = "scripted"

    def __init__(self, replies: Iterable[object]) -> None:
        self.replies = list(replies)
        self.times: list[float] = []

    async def answer(self, request: Request) -> Answer:
        self.times.append(asyncio.get_running_loop().time())
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        await asyncio.sleep(0.1)
        if isinstance(reply, Exception):
            raise reply
        return Answer(str(reply))


def ask(replies: Iterable[object], **effort: Any) -> tuple[Exchange, Scripted]:
    model = Scripted(replies)

    async def main(clock: Callable[[], float]) -> Exchange:
        return await Asker(model, Effort(**effort), clock=clock, draw=lambda: 1.0).ask(asked())

    return simulated(main), model


def test_an_answer_has_its_digest_latency_and_attempts():
    exchange, _ = ask(["yes"])
    assert exchange.outcome.text == "yes"
    assert exchange.digest == asked().digest
    assert exchange.latency == pytest.approx(0.1)
    assert exchange.attempts == 1


def test_delays_double_up_to_the_longest():
    # with draw = 1 the delays are 0.5, 1, 2, 4, 4 seconds; every attempt takes 0.1
    exchange, model = ask([RetryableError("HTTP 500")] * 5 + ["yes"], longest_delay=4.0)
    gaps = [later - earlier - 0.1 for earlier, later in zip(model.times, model.times[1:], strict=False)]
    assert gaps == pytest.approx([0.5, 1, 2, 4, 4])
    assert exchange.attempts == 6
    assert exchange.latency == pytest.approx(0.1)  # of the last attempt


@pytest.mark.parametrize("failure", [RetryableError("HTTP 500"), ConnectionResetError("reset"), TimeoutError()])
def test_a_request_stays_open_if_its_retries_are_used_up(failure):
    model = Scripted([failure])

    async def main(clock: Callable[[], float]) -> None:
        await Asker(model, Effort(retries=3), clock=clock, draw=lambda: 0.5).ask(asked())

    words = {TimeoutError: "no reply within 600 seconds"}.get(type(failure), str(failure))
    with pytest.raises(OpenRequestError, match=words):
        simulated(main)
    assert len(model.times) == 4


def test_waiting_for_a_rate_limit_uses_no_retries_and_at_least_the_time_that_is_asked_for():
    exchange, model = ask([RateLimitError("HTTP 429", 7.0)] * 10 + ["yes"], retries=0)
    assert exchange.outcome.text == "yes"
    assert all(later - earlier >= 7 for earlier, later in zip(model.times, model.times[1:], strict=False))


def test_waiting_for_a_rate_limit_is_bounded():
    with pytest.raises(OpenRequestError, match="HTTP 429"):
        ask([RateLimitError("HTTP 429", 400.0)], longest_wait=900.0)


def test_a_longer_pause_than_a_run_waits_stops_it_at_the_first_failure():
    model = Scripted([RateLimitError("HTTP 429: daily limit", 3600.0)])

    async def main(clock: Callable[[], float]) -> None:
        asker = Asker(model, Effort(concurrency=4), clock=clock)

        async def work(number: int) -> None:
            await asker.ask(asked(number))

        await for_each(each(range(50)), work, 5, asker)

    with pytest.raises(BreakerError) as stop:
        simulated(main)
    assert str(stop.value) == (
        "the endpoint asks for a pause of 1 h 0 min (HTTP 429: daily limit). A run waits for at most 15 min 0 s, so no "
        "more requests are made now"
    )
    assert len(model.times) <= 5  # those that had started, and one in the place of the first


def test_nothing_is_asked_before_the_time_for_which_a_request_was_given_up():
    model = Scripted([RateLimitError("HTTP 429", 600.0), RateLimitError("HTTP 429", 600.0), "yes"])

    async def main(clock: Callable[[], float]) -> Exchange:
        asker = Asker(model, clock=clock, draw=lambda: 0.0)
        with pytest.raises(OpenRequestError):
            await asker.ask(asked("first"))
        return await asker.ask(asked("first"))

    assert simulated(main).outcome.text == "yes"
    refused, again, later = model.times
    assert (again - refused, later - again) == (pytest.approx(600.1), pytest.approx(600.1))


def test_failed_attempts_are_told_as_they_happen():
    told = []

    async def main(clock: Callable[[], float]) -> None:
        asker = Asker(Scripted([RateLimitError("HTTP 429: slow down"), TimeoutError("late"), "yes"]), clock=clock)
        asker.has_failed = lambda: told.append(asker.errors)
        assert asker.errors == ""
        await asker.ask(asked())

    simulated(main)
    assert told == ["1 error, last: HTTP 429", "2 errors, last: TimeoutError: late"]


def test_a_rejected_request_is_an_outcome_and_is_not_retried():
    exchange, model = ask([RejectedError("HTTP 400: too long")])
    assert (exchange.outcome.status, exchange.outcome.reason) == ("rejected", "HTTP 400: too long")
    assert len(model.times) == 1


def test_an_exception_of_a_function_is_an_outcome_and_is_not_retried():
    exchange, model = ask([KeyError("answer")])
    assert (exchange.outcome.status, exchange.outcome.reason) == ("raised", "KeyError: 'answer'")
    assert len(model.times) == 1


def test_a_malformed_reply_is_retried_and_then_an_outcome():
    exchange, model = ask([MalformedReplyError("the reply is not JSON", "<html>")])
    assert exchange.outcome.status == "malformed"
    assert "<html>" in str(exchange.outcome.reason)
    assert len(model.times) == 5


@pytest.mark.parametrize("error", [EndpointError("wrong key"), ConfigError("the model must return text")])
def test_an_error_of_the_settings_stops_at_once(error):
    with pytest.raises(type(error), match=str(error)):
        ask([error])


def test_a_time_out_is_retried():
    class Slow:
        label = "slow"
        calls = 0

        async def answer(self, request: Request) -> Answer:
            self.calls += 1
            if self.calls == 1:
                await asyncio.sleep(1000)
            return Answer("late")

    async def main(clock: Callable[[], float]) -> Exchange:
        return await Asker(Slow(), Effort(timeout=5.0), clock=clock).ask(asked())

    assert simulated(main).attempts == 2


def all_of(count: int, make: Callable[[Callable[[], float]], Asker]) -> Asker:
    """Ask `count` requests at the same time."""

    async def main(clock: Callable[[], float]) -> Asker:
        asker = make(clock)

        async def work(number: int) -> None:
            await asker.ask(asked(number))

        await for_each(each(range(count)), work, 50, asker)
        return asker

    return simulated(main)


def test_an_endpoint_that_never_answers_stops_the_run_soon():
    with pytest.raises(BreakerError, match=r"failed 10 times in a row .*The last failure: .*refused") as stop:
        all_of(500, lambda clock: Asker(Server(clock, down=(0, 1e9)), clock=clock))
    assert isinstance(stop.value, OpenSamplesError)  # so that the folder is kept


def test_faults_that_come_sooner_than_the_first_answer_stop_no_run():
    """Of the 32 requests that are sent at once, 14 are reset soon; answers take a second."""

    class Resetting:
        label = "resetting"

        def __init__(self) -> None:
            self.sent = 0

        async def answer(self, request: Request) -> Answer:
            self.sent += 1
            is_reset = self.sent % 2 == 0 and self.sent < 30
            await asyncio.sleep(0.01 if is_reset else 1)
            if is_reset:
                raise ConnectionResetError
            return Answer("yes")

    assert all_of(100, lambda clock: Asker(Resetting(), clock=clock)).failures == 14


def test_an_endpoint_that_goes_down_for_good_stops_the_run_after_two_minutes():
    servers: list[Server] = []

    def make(clock: Callable[[], float]) -> Asker:
        servers.append(Server(clock, down=(10, 1e9)))
        return Asker(servers[0], clock=clock)

    with pytest.raises(BreakerError, match=r"within 1[0-9]{2} seconds"):
        all_of(100_000, make)
    assert 120 < servers[0].failed[-1] < 200


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_request_that_is_always_refused_stays_open_while_others_are_answered(is_alive: bool):
    """Within a minute of the last answer, if the endpoint answers a small request then; 1 % of the requests."""

    class Refusing:
        label = "refusing"
        answered = 0.0

        async def answer(self, request: Request) -> Answer:
            await asyncio.sleep(0.1)
            if int(request.id) % 100 == 99:
                raise RateLimitError("HTTP 429")
            self.answered = asyncio.get_running_loop().time()
            return Answer("yes")

        async def is_alive(self) -> bool:
            await asyncio.sleep(0.1)
            return is_alive

    left: list[tuple[int, str]] = []
    model = Refusing()

    async def main(clock: Callable[[], float]) -> float:
        asker = Asker(model, Effort(), clock=clock)

        async def work(number: int) -> None:
            try:
                await asker.ask(asked(number))
            except OpenRequestError as error:
                left.append((number, str(error)))

        await for_each(each(range(1000)), work, 125, asker)
        return asyncio.get_running_loop().time()

    if not is_alive:
        with pytest.raises(BreakerError, match="HTTP 429"):
            simulated(main)
        return
    ended = simulated(main)
    assert sorted(left) == [(number, "HTTP 429") for number in range(99, 1000, 100)]
    assert ended - model.answered < 60


@pytest.mark.parametrize("limit", [{"at_once": 20}, {"at_once": 3}, {"per_second": 20.0}, {"per_second": 2.0}])
def test_a_limit_of_all_requests_leaves_none_open(limit):
    asker = all_of(400, lambda clock: Asker(Server(clock, **limit), clock=clock))
    assert len(asker.generator.accepted) == 400  # type: ignore[attr-defined]


class Poisoned:
    """Answers requests with an even number; the others crash the server, which answers a small request or not."""

    label = "poisoned"

    def __init__(self, *, is_up: bool) -> None:
        self.is_up, self.looks = is_up, 0

    async def answer(self, request: Request) -> Answer:
        await asyncio.sleep(0.1)
        if int(request.id) % 2:
            raise RetryableError("HTTP 500: crashed")
        return Answer("yes")

    async def is_alive(self) -> bool:
        self.looks += 1
        await asyncio.sleep(0.1)
        return self.is_up


def opened(numbers: Iterable[int], model: Poisoned) -> list[int]:
    """The requests that stay open, if all are asked at the same time."""
    left: list[int] = []

    async def main(clock: Callable[[], float]) -> None:
        asker = Asker(model, clock=clock)

        async def work(number: int) -> None:
            try:
                await asker.ask(asked(number))
            except OpenRequestError:
                left.append(number)

        await for_each(each(numbers), work, 50, asker)

    simulated(main)
    return sorted(left)


@pytest.mark.parametrize("others", [[], [2, 4]])
def test_a_request_that_always_fails_stays_open_and_does_not_stop_the_run(others):
    class Unknown(Poisoned):
        is_alive = None  # type: ignore[assignment]

    # Each is asked twice, as in the two passes of a run: 36 failures in a row.
    assert opened([*others, 1, 3, 1, 3], Unknown(is_up=True)) == [1, 1, 3, 3]


def test_requests_that_always_fail_stay_open_if_the_endpoint_is_alive():
    model = Poisoned(is_up=True)
    assert opened(range(1, 80, 2), model) == list(range(1, 80, 2))
    assert 1 < model.looks < 40  # once per 12 failures in a row, and not for each of the 360


def test_requests_that_always_fail_stop_the_run_if_the_endpoint_is_not_alive():
    model = Poisoned(is_up=False)
    with pytest.raises(BreakerError, match=r"HTTP 500: crashed"):
        opened(range(1, 80, 2), model)
    assert model.looks == 1


def test_every_request_survives_an_outage():
    asker = all_of(4000, lambda clock: Asker(Server(clock, down=(5, 70)), clock=clock))
    assert len(asker.generator.accepted) == 4000  # type: ignore[attr-defined]


def test_every_request_is_answered_despite_many_faults():
    draw = random.Random(2).random
    make = lambda clock: Asker(Server(clock, faults=0.3, latency=0.05), Effort(retries=12), clock=clock, draw=draw)  # noqa: E731
    assert len(all_of(3000, make).generator.accepted) == 3000  # type: ignore[attr-defined]


def test_the_first_exception_cancels_the_others():
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(number)
        finally:
            ended.append(number)
        if number == 3:
            raise EndpointError("wrong key")

    async def main(clock: Callable[[], float]) -> None:
        with pytest.raises(EndpointError):
            await for_each(each(range(1, 100)), work, 10)

    simulated(main)
    assert sorted(ended) == list(range(1, 13))  # 1 to 10, and 11 and 12 in the places of 1 and 2


def test_requests_that_wait_for_a_retry_leave_their_places_to_others():
    running = most = 0

    class Failing:
        label = "failing"

        async def answer(self, request: Request) -> Answer:
            if request.epoch == 1 and int(request.id) % 2 == 0 and request.id not in seen:
                seen.add(request.id)
                raise RateLimitError("HTTP 429", 1000.0)
            return Answer("yes")

    seen: set[str] = set()

    async def main(clock: Callable[[], float]) -> float:
        nonlocal running, most
        asker = Asker(Failing(), Effort(concurrency=4, longest_wait=5000), clock=clock)

        async def work(number: int) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asker.ask(asked(number))
            running -= 1

        await for_each(each(range(40)), work, 4, asker)
        return clock()

    simulated(main)
    assert 4 < most <= 4 * 16
