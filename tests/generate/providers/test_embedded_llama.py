"""`llama:DIR`: a model with random weights that answers requests."""

from __future__ import annotations

import asyncio

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, ModelError, UnavailableError
from multimodal_eval.generate.protocol import Generator, Media, RejectedError, Request, Text, Turn
from multimodal_eval.generate.registry import find_generator
from tests.models.language import tiny_llama

QUESTIONS = [f"question {number}" + "?" * number for number in range(40)]


@pytest.fixture
def generator(tmp_path):
    tiny_llama.write(tmp_path / "tiny", head_dim=16)
    return find_generator(GenerationConfig(model=f"llama:{tmp_path / 'tiny'}"))


def request_for(question, epoch=1, **parameters):
    turns = (Turn("system", (Text("Be short."),)), Turn("user", (Text(question),)))
    return Request(question, turns, Parameters(max_tokens=8, **parameters), epoch)


def answers(generator, requests):
    async def ask_all():
        return await asyncio.gather(*(generator.answer(request) for request in requests), return_exceptions=True)

    return asyncio.run(ask_all())


def test_answers_do_not_depend_on_what_else_is_asked(generator):
    assert isinstance(generator, Generator)
    requests = [request_for(question, temperature=0.9, logprobs=True) for question in QUESTIONS]
    together = answers(generator, requests)  # more than are written at the same time
    assert together[::-1] == answers(generator, requests[::-1])
    (alone,) = answers(generator, requests[7:8])
    assert alone == together[7]
    assert (alone.finish, alone.output_tokens, alone.model) == ("length", 8, "tiny")
    assert alone.input_tokens == len("Be short.\n" + QUESTIONS[7])
    assert len(alone.logprobs) == 8


def test_the_seed_and_the_epoch_decide(generator):
    def text(**options):
        (answer,) = answers(generator, [request_for("Hello", temperature=1.5, **options)])
        return answer.text

    assert text(seed=1) == text(seed=1)
    assert len({text(seed=1), text(seed=2), text(seed=1, epoch=2)}) == 3


def test_an_image_is_refused(generator):
    turns = (Turn("user", (Media("image", "image/png", b"x"), Text("What is it?"))),)
    (refusal,) = answers(generator, [Request("a", turns)])
    assert isinstance(refusal, RejectedError)
    assert str(refusal).endswith("reads text only. The request has: image")


def test_requests_that_do_not_fit_are_refused_alone(generator):
    long, fine, special = answers(generator, [request_for(text) for text in ("x" * 3000, "fine", "a <bos> b")])
    assert isinstance(long, RejectedError)
    assert "the request has 3,010 tokens" in str(long)
    assert fine.output_tokens == 8
    assert isinstance(special, RejectedError)
    assert "contains '<bos>', which is a special token" in str(special)


def test_a_cancelled_request_does_not_disturb_the_others(generator):
    async def ask():
        gone = asyncio.create_task(generator.answer(request_for("gone")))
        kept = asyncio.create_task(generator.answer(request_for("kept")))
        await asyncio.sleep(0)
        gone.cancel()
        return await kept

    (alone,) = answers(generator, [request_for("kept")])
    assert asyncio.run(ask()) == alone
    assert answers(generator, [request_for("kept")]) == [alone]
    assert not generator._jobs._taken  # nothing is kept of what was asked


def test_broken_weights_are_told_to_everyone_who_waits(generator):
    weights = generator.model.folder / "model.safetensors"
    weights.write_bytes(b"no")
    results = answers(generator, [request_for(question) for question in QUESTIONS[:3]])
    assert all(isinstance(result, ModelError) for result in results)


def test_unknown_models_and_parameters(tmp_path):
    def opened(model, **parameters):
        return find_generator(GenerationConfig(model=f"llama:{model}", parameters=Parameters(**parameters)))

    with pytest.raises(ConfigError, match="must name a model: llama:smollm2-135m"):
        opened("")
    with pytest.raises(UnavailableError, match="mmeval fetch smollm2-135m"):
        opened("smollm2-135m")
    with pytest.raises(ConfigError, match="has no parameter 'reasoning_effort'"):
        opened("smollm2-135m", reasoning_effort="low")
    with pytest.raises(ConfigError, match="has no parameter 'top_k'"):
        opened("smollm2-135m", extra={"top_k": 3})
    tiny_llama.write(tmp_path / "narrow", head_dim=4)
    with pytest.raises(ConfigError, match="Try transformers:"):
        opened(tmp_path / "narrow")
