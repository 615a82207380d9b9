"""How the load is controlled, in virtual time: minutes of a simulated server take a moment."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import RetryableError
from multimodal_eval.generate.concurrency import Controller, Load
from multimodal_eval.generate.engine import Asker, Effort, OpenRequestError, for_each
from multimodal_eval.generate.protocol import Answer, MalformedReplyError, RateLimitError
from tests.generate.requests import asked, each
from tests.generate.simulated_server import Server
from tests.generate.virtual_time import simulated

MOST = 100
LATENCY = 0.5
SLOW_SPREAD = pytest.param(0.3, marks=pytest.mark.slow)


@dataclass
class Measured:
    """What a server did after the controller had some time to learn."""

    rate: float
    refused: float  # share
    asker: Asker
    server: Server


def run(seconds: float, since: float, **server: Any) -> Measured:
    async def main(clock: Callable[[], float]) -> Measured:
        simulation = Server(clock, latency=LATENCY, **server)
        asker = Asker(simulation, Effort(concurrency=MOST, retries=30), clock=clock, draw=random.Random(1).random)

        async def work(number: int) -> None:
            await asker.ask(asked(number))

        try:
            async with asyncio.timeout(seconds):
                await for_each(each(itertools.count()), work, MOST + 10, asker)
        except TimeoutError:
            pass
        accepted, refused, failed = (
            sum(time >= since for time in times)
            for times in (simulation.accepted, simulation.refused, simulation.failed)
        )
        return Measured(accepted / (seconds - since), refused / (accepted + refused + failed), asker, simulation)

    return simulated(main)


@pytest.mark.parametrize("spread", [0.0, SLOW_SPREAD, 1.0])
@pytest.mark.parametrize("places", [2, 10, 30, pytest.param(70, marks=pytest.mark.slow)])
def test_a_limit_of_requests_at_once_is_used_and_kept(places, spread):
    measured = run(160, 60, at_once=places, spread=spread)
    assert measured.rate >= 0.85 * places / LATENCY
    assert measured.refused < 0.05


@pytest.mark.parametrize(("spread", "lag"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.002)])
@pytest.mark.parametrize("refusal", [0.005, 0.05])
def test_a_known_limit_is_seldom_tried_again(refusal, spread, lag):
    count, places, latency = 2000, 20, 0.05

    async def main(clock: Callable[[], float]) -> tuple[float, int]:
        server = Server(clock, latency, spread, at_once=places, refusal_latency=refusal, lag=lag)
        asker = Asker(server, Effort(concurrency=MOST), clock=clock, draw=random.Random(1).random)

        async def work(number: int) -> None:
            await asker.ask(asked(number))

        await for_each(each(range(count)), work, MOST + 10, asker)
        return count / clock(), len(server.refused)

    rate, refused = simulated(main)
    assert rate >= 0.85 * places / latency  # from the first request to the last
    assert refused < 100


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("rate", [5.0, 20.0, pytest.param(100.0, marks=pytest.mark.slow)])
def test_a_limit_of_requests_per_second_is_used_and_kept(rate, spread):
    measured = run(260, 100, per_second=rate, spread=spread)
    assert measured.rate >= 0.85 * rate
    assert measured.refused < 0.05


@pytest.mark.parametrize("retry_after", [1.0, 30.0])
def test_retry_after_does_not_stop_the_others(retry_after):
    measured = run(200, 80, at_once=20, retry_after=retry_after)
    assert measured.rate >= 0.85 * 20 / LATENCY
    assert measured.refused < 0.05


def test_without_limits_all_places_are_used_from_the_start():
    measured = run(30, 3)
    assert measured.rate == pytest.approx(MOST / LATENCY, rel=0.02)


@pytest.mark.parametrize("fault_latency", [None, 0.0, 0.02])
@pytest.mark.parametrize("spread", [0.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_faults_that_do_not_depend_on_the_load_do_not_lower_it(fault_latency, spread):
    # 30 % of the requests fail after `fault_latency` seconds, None: after as long as an answer takes. With all places
    # in use, a place makes one attempt in 0.7 * LATENCY + 0.3 * fault_latency seconds, and 70 % of them succeed.
    measured = run(130, 50, faults=0.3, fault_latency=fault_latency, spread=spread)
    attempt = 0.7 * LATENCY + 0.3 * (LATENCY if fault_latency is None else fault_latency)
    assert measured.rate >= 0.85 * 0.7 * MOST / attempt


def test_it_is_soon_known_that_faults_do_not_depend_on_the_load():
    # The first 120 latencies, in which the load starts low and has to be found.
    assert run(60, 0, faults=0.3).rate >= 0.6 * 0.7 * MOST / LATENCY


def test_faults_and_a_limit_at_the_same_time():
    measured = run(200, 60, faults=0.3, at_once=30)
    assert measured.rate >= 0.8 * 0.7 * 30 / LATENCY
    assert measured.refused < 0.3  # refusals must not pass for usual failures, which would raise the load without end


def test_an_endpoint_that_goes_down_is_tried_carefully_and_used_again_when_it_is_back():
    measured = run(120, 70, at_once=50, down=(20.0, 60.0))
    during = [time for time in measured.server.failed if 22 < time < 60]
    assert len(during) < 60  # single attempts with pauses, not hundreds of requests per second
    assert measured.rate >= 0.85 * 50 / LATENCY


def test_a_long_retry_after_of_everything_is_tried_within_a_minute():
    load = Load(10)
    for number in range(40):
        load.failed(load.started(number * 0.3, 0), number * 0.3, retry_after=3600.0)
    assert load.is_down
    assert load.resumes_at is not None
    assert load.resumes_at <= 40 * 0.3 + 60


def test_an_interrupted_wait_gives_its_slot_back():
    async def main(clock: Callable[[], float]) -> None:
        controller = Controller(1, clock=clock)
        first = await controller.enter()
        waiting = asyncio.create_task(controller.enter())
        await asyncio.sleep(0)
        controller.leave(first, None)  # the slot is handed to the waiting task …
        waiting.cancel()  # … which is cancelled before it runs
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert controller.running == 0
        async with asyncio.timeout(1), controller.slot():
            assert controller.running == 1
        assert controller.running == 0

    simulated(main)


@given(st.lists(st.tuples(st.sampled_from(["ask", "cancel", "fail"]), st.floats(0.01, 2)), max_size=40))
def test_no_slot_is_ever_lost_or_doubled(actions):
    async def main(clock: Callable[[], float]) -> None:
        controller = Controller(3, clock=clock)
        tasks: list[asyncio.Task[None]] = []

        async def hold(seconds: float, fails: bool) -> None:
            async with controller.slot():
                assert controller.running <= 3
                await asyncio.sleep(seconds)
                if fails:
                    raise RetryableError("HTTP 500")

        for action, seconds in actions:
            if action == "cancel" and tasks:
                tasks[int(seconds * 100) % len(tasks)].cancel()
            else:
                tasks.append(asyncio.create_task(hold(seconds, action == "fail")))
            await asyncio.sleep(seconds / 4)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert controller.running == 0
        async with asyncio.timeout(100), controller.slot():
            pass

    simulated(main)


@given(st.lists(st.tuples(st.sampled_from(["ok", "fail", "wait"]), st.floats(0.001, 10)), max_size=200))
def test_the_load_stays_within_its_bounds(events):
    load, now = Load(16), 0.0
    running = []
    for kind, seconds in events:
        now += seconds
        if kind == "wait" or not running:
            running.append(load.started(now, len(running)))
        elif kind == "ok":
            load.succeeded(running.pop(0), now)
        else:
            load.failed(running.pop(), now, retry_after=seconds if seconds > 5 else None)
        assert 1 <= load.places <= 16
        assert 0 < load.load <= 16 * 5
        assert 0 <= load.usual <= 0.6
        assert 0 <= load.gap <= 15
        assert load.resumes_at is None or load.resumes_at <= now + 60


@pytest.mark.parametrize("failure", [MalformedReplyError("not JSON", "<html>"), ValueError("a bug"), None])
def test_what_is_not_a_sign_of_overload_does_not_end_the_start(failure):
    async def main(clock: Callable[[], float]) -> None:
        controller = Controller(20, clock=clock)
        for _ in range(30):
            try:
                async with controller.slot():
                    if failure is not None:
                        raise failure
            except type(failure):
                pass
        assert controller.limit == 20

    simulated(main)


def test_a_rate_limit_ends_the_start():
    async def main(clock: Callable[[], float]) -> None:
        controller = Controller(20, clock=clock)
        with pytest.raises(RateLimitError):
            async with controller.slot():
                raise RateLimitError("HTTP 429")
        assert not controller.load.is_starting

    simulated(main)


@pytest.mark.parametrize(
    ("kind", "pause"),
    [
        ("HTTP 500", None),
        ("time-out", None),
        *(("HTTP 429", pause) for pause in (None, 1.0, 5.0, 10.0, 30.0, 600.0, 86400.0)),
    ],
)
def test_samples_that_always_fail_end_soon_after_the_last_success(kind, pause):
    count, retries, tries, ends = 1000, 8, dict[str, int](), list[float]()
    given_up: list[OpenRequestError] = []

    class Model:
        label = "model"

        async def is_alive(self) -> bool:
            await asyncio.sleep(0.05)
            return True

        async def answer(self, request: Any) -> Any:
            if int(request.prompt) % 100 == 7:
                tries[request.prompt] = tries.get(request.prompt, 0) + 1
                await asyncio.sleep(10_000 if kind == "time-out" else 0.05)
                raise RateLimitError(kind, pause) if kind == "HTTP 429" else RetryableError(kind)
            await asyncio.sleep(0.05)
            return Answer("yes")

    async def main(clock: Callable[[], float]) -> float:
        effort = Effort(concurrency=MOST, retries=retries, timeout=2.0)
        asker = Asker(Model(), effort, clock=clock, draw=random.Random(1).random)

        async def work(number: int) -> None:
            try:
                await asker.ask(asked(number))
                ends.append(clock())
            except OpenRequestError as error:
                given_up.append(error)

        await for_each(each(range(count)), work, MOST + 10, asker)
        return clock()

    end = simulated(main)
    assert len(ends) == count - 10
    assert end - max(ends) < 60
    reason = "no reply within 2 seconds" if kind == "time-out" else kind
    assert [(error.is_final, str(error)) for error in given_up] == [(True, reason)] * 10
    fewest = retries + 1 if (pause or 0) < 5 else 2  # a long pause is not waited for to its end
    assert fewest <= min(tries.values())
    assert max(tries.values()) <= retries + 2  # a rate limit of all requests uses none
