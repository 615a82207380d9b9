"""Python functions as models: sync or async, one request or many at a time."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from multimodal_eval import batched, evaluate
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.protocol import Answer, Request, Text, Turn
from multimodal_eval.generate.registry import FunctionGenerator

ROWS = [{"id": str(number), "question": f"say {number}", "references": [str(number)]} for number in range(10)]


def last_word(request: Request) -> str:
    return request.prompt.split()[-1]


def requests(count: int) -> list[Request]:
    return [Request(str(number), (Turn("user", (Text(f"say {number}"),)),)) for number in range(count)]


async def all_answers(generator, count: int):
    return await asyncio.gather(*map(generator.answer, requests(count)), return_exceptions=True)


async def asynchronous(request: Request) -> Answer:
    await asyncio.sleep(0)
    return Answer(last_word(request), reasoning="none")


def returns_awaitable(request: Request):
    return asynchronous(request)


@pytest.mark.parametrize("function", [last_word, asynchronous, returns_awaitable])
def test_a_function_of_one_request(function):
    run = evaluate(ROWS, model=function, metrics=["exact_match"])
    assert run["exact_match"]["value"] == 1.0


def test_a_plain_function_does_not_block_the_event_loop():
    meet = threading.Barrier(2, timeout=600)  # two calls that wait for each other
    generator = FunctionGenerator(lambda request: str(meet.wait() >= 0))
    assert [answer.text for answer in asyncio.run(all_answers(generator, 2))] == ["True", "True"]


def test_no_call_waits_for_the_thread_of_another():
    # More than the 32 threads that asyncio has at most: the time-out of a request runs while it waits.
    meet = threading.Barrier(50, timeout=600)
    generator = FunctionGenerator(lambda request: str(meet.wait() >= 0))
    assert [answer.text for answer in asyncio.run(all_answers(generator, 50))] == ["True"] * 50


def test_only_a_plain_function_says_how_many_calls_run_at_once():
    assert 5 <= FunctionGenerator(last_word).at_once <= 32
    assert not hasattr(FunctionGenerator(asynchronous), "at_once")


def test_a_thread_has_the_context_of_its_caller():
    language: ContextVar[str] = ContextVar("language", default="none")
    language.set("ru")
    assert asyncio.run(all_answers(FunctionGenerator(lambda _: language.get()), 1)) == [Answer("ru")]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_of_many_requests_gets_full_batches(is_async):
    sizes = []

    def plain(batch):
        sizes.append(len(batch))
        return list(map(last_word, batch))

    async def waiting(batch):
        return plain(batch)

    generator = batched(4)(waiting if is_async else plain)
    answers = asyncio.run(all_answers(generator, 10))
    assert [answer.text for answer in answers] == [str(number) for number in range(10)]
    assert sizes == [4, 4, 2]


def test_a_batch_model_in_a_run():
    run = evaluate(ROWS, model=batched(3)(lambda batch: list(map(last_word, batch))), metrics=["exact_match"])
    assert run["exact_match"]["value"] == 1.0


def test_a_failure_belongs_to_one_sample_of_the_batch():
    def model(batch):
        return [str(1 // (int(last_word(request)) - 3)) and last_word(request) for request in batch]

    run = evaluate(ROWS, model=batched(5)(model), metrics=["exact_match"])
    assert (run["exact_match"]["value"], run["exact_match"]["n_scored"]) == (1.0, 9)
    assert [sample.error for sample in run.samples() if sample.error] == [
        "raised: ZeroDivisionError: integer division or modulo by zero"
    ]


@pytest.mark.parametrize(("returned", "got"), [(["one"], "1"), ("text", "'text'"), (None, "None")])
def test_another_number_of_answers_is_refused(returned, got):
    generator = batched(2)(lambda batch: returned)
    for error in asyncio.run(all_answers(generator, 2)):
        assert isinstance(error, ConfigError)
        assert f"a list of 2 answers. Got {got} instead" in str(error)


def test_a_cancelled_request_leaves_the_batch():
    seen = []

    def model(batch):
        seen.extend(request.id for request in batch)
        return [request.id for request in batch]

    async def cancel_one():
        generator = batched(3)(model)
        tasks = [asyncio.create_task(generator.answer(request)) for request in requests(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = asyncio.run(cancel_one())
    assert (first.text, third.text) == ("0", "2")
    assert isinstance(second, asyncio.CancelledError)
    assert seen in (["0", "2"], ["0", "1", "2"])  # the batch may have started already


def test_a_batch_needs_a_request():
    with pytest.raises(ConfigError, match="at least one request"):
        batched(0)


def test_a_decorator_without_a_size_says_how_to_write_it():
    with pytest.raises(ConfigError, match=r"@batched\(32\)"):

        @batched
        def model(requests):
            return []
