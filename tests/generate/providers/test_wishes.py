"""A JSON schema and the probabilities of other tokens: sent as each API wants them, and given up if it refuses them."""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any

import msgspec
import pytest
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.generate.answer_tables import answer_table, exchanges_of
from multimodal_eval.generate.cache import AnswerCache
from multimodal_eval.generate.protocol import (
    Answer,
    Exchange,
    RejectedError,
    Request,
    Text,
    TokenProbability,
    Turn,
    outcome_of,
)
from multimodal_eval.generate.providers.gemini import GeminiModel
from multimodal_eval.generate.providers.local_jobs import unknown_parameters
from multimodal_eval.generate.providers.openai_chat import DIALECTS, ChatGenerator, body_of, open_generator
from multimodal_eval.generate.providers.openai_responses import responses_answer_from, responses_body_of
from tests.generate.server import Behaviour, Reply, Script, Server

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["score"],
    "additionalProperties": False,
}
NAMED = {"name": "reply", "strict": True, "schema": SCHEMA}
TURNS = (Turn("user", (Text("How good?"),)),)
WISHING = Request("a", TURNS, Parameters(top_logprobs=5), schema=SCHEMA)


def test_the_digest_of_a_request_without_wishes_is_that_of_earlier_versions():
    digest = "ebce10bcf8ee59fe660a3533f7f1c7d86628b93ee6bcdb2724af149c6cecbe5d"  # printed before there were wishes
    assert Request("a", TURNS, Parameters(temperature=0.0)).digest == digest
    assert len({Request("a", TURNS).digest, WISHING.digest, Request("a", TURNS, schema=SCHEMA).digest}) == 3


def test_chat_completions_have_one_form_in_all_dialects():
    for name in ("openai", "compatible", "vllm", "sglang", "llamacpp", "ollama"):
        body = body_of(WISHING, "m", DIALECTS[name])
        TypeAdapter(completion_create_params.CompletionCreateParamsNonStreaming).validate_json(body, strict=True)
        sent = json.loads(body)
        assert sent["response_format"] == {"type": "json_schema", "json_schema": NAMED}
        assert (sent["logprobs"], sent["top_logprobs"]) == (True, 5)


def test_the_responses_api():
    body = responses_body_of(WISHING, "m")
    TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming).validate_json(body)
    sent = json.loads(body)
    assert sent["text"] == {"format": {"type": "json_schema", **NAMED}}
    assert (sent["include"], sent["top_logprobs"]) == (["message.output_text.logprobs"], 5)


def token(text: str, *others: tuple[str, float]) -> dict[str, Any]:
    tops = [{"token": text, "logprob": -0.5, "bytes": None}, *({"token": t, "logprob": p} for t, p in others)]
    return {"token": text, "logprob": -0.5, "top_logprobs": tops}


TOKENS = [token('{"score": '), token("4", ("5", -1.25)), token("}")]
CHOSEN = ['{"score": ', "4", "}"]
FOUR = [TokenProbability("4", -0.5), TokenProbability("5", -1.25)]


def completion(text: str, content: Any) -> bytes:
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": content}}
    return json.dumps({"model": "m-1", "choices": [choice]}).encode()


def generator(url: str, **settings: Any) -> ChatGenerator:
    return open_generator("openai", "tiny", GenerationConfig(model="openai:tiny", base_url=url, **settings))


def asked(script: Script, *requests: Request, **settings: Any) -> tuple[list[Answer], list[dict[str, Any]], list[str]]:
    """The answers, the bodies in the order in which they came, and what was noted."""
    bodies: list[dict[str, Any]] = []

    def recorded(body: dict[str, Any], attempt: int) -> Reply:
        bodies.append(body)
        return script(body, attempt)

    async def each(model: ChatGenerator) -> list[Answer]:
        return [await model.answer(request) for request in requests]

    with Server(Behaviour(script=recorded)) as server, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = generator(server.url, **settings)
        answers = asyncio.run(each(model))
    assert [str(warning.message) for warning in caught] == model.notes
    return answers, bodies, model.notes


def test_tokens_and_their_alternatives_come_with_the_answer():
    (answer,), bodies, notes = asked(lambda *_: Reply(raw=completion("", TOKENS)), WISHING, use_probe=False)
    assert answer.tokens == CHOSEN
    assert answer.top_logprobs is not None
    assert answer.top_logprobs[1] == FOUR
    assert answer.logprobs == [-0.5, -0.5, -0.5]
    assert (len(bodies), notes) == (1, [])


def test_alternatives_that_nobody_asked_for_are_not_kept():
    plain = Request("a", TURNS, Parameters(logprobs=True))
    (answer,), _, _ = asked(lambda *_: Reply(raw=completion("x", TOKENS)), plain, use_probe=False)
    assert (answer.tokens, answer.top_logprobs, answer.logprobs) == (None, None, [-0.5, -0.5, -0.5])


@pytest.mark.parametrize("broken", [[{**TOKENS[0], "top_logprobs": "many"}], [{**TOKENS[0], "top_logprobs": [3]}]])
def test_alternatives_of_another_shape_do_not_harm_the_answer(broken):
    (answer,), _, _ = asked(lambda *_: Reply(raw=completion("x", broken)), WISHING, use_probe=False)
    assert (answer.text, answer.logprobs, answer.top_logprobs) == ("x", [-0.5], None)


def test_alternatives_of_the_responses_api():
    part = {"type": "output_text", "text": "4", "logprobs": TOKENS}
    content = json.dumps({"output": [{"type": "message", "content": [part]}], "status": "completed"}).encode()
    answer = responses_answer_from(content)
    assert (answer.tokens, answer.top_logprobs and answer.top_logprobs[1]) == (CHOSEN, FOUR)


def test_alternatives_of_gemini(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "k" * 20)
    logprobs = {
        "chosenCandidates": [{"token": "4", "logProbability": -0.5}],
        "topCandidates": [{"candidates": [{"token": t, "logProbability": p} for t, p in (("4", -0.5), ("5", -1.25))]}],
    }
    candidate = {"content": {"parts": [{"text": "4"}]}, "finishReason": "STOP", "logprobsResult": logprobs}
    model = GeminiModel("gemini", "m", GenerationConfig(model="gemini:m"))
    answer = model.answer_from(json.dumps({"candidates": [candidate]}).encode())
    assert (answer.tokens, answer.top_logprobs) == (["4"], [FOUR])
    odd = {**logprobs, "topCandidates": logprobs["topCandidates"] * 2}
    answer = model.answer_from(json.dumps({"candidates": [{**candidate, "logprobsResult": odd}]}).encode())
    assert (answer.tokens, answer.top_logprobs) == (None, None)


def refusing(*fields: str) -> Script:
    """A server that does not know some fields of the body."""

    def script(body: dict[str, Any], _: int) -> Reply:
        unknown = next((field for field in fields if field in body), None)
        if unknown is None:
            return Reply('{"score": 4}')
        return Reply(status=400, raw=json.dumps({"error": {"message": f"{unknown} is not supported"}}).encode())

    return script


def test_a_refused_schema_is_given_up_once_and_noted():
    answers, bodies, notes = asked(refusing("response_format"), WISHING, WISHING, use_probe=False)
    assert [answer.text for answer in answers] == ['{"score": 4}'] * 2
    assert ["response_format" in body for body in bodies] == [True, False, False]
    assert all("top_logprobs" in body for body in bodies)
    (note,) = notes
    assert note == (
        "openai:tiny is asked without a JSON schema, because the endpoint rejects it "
        "(HTTP 400: response_format is not supported)"
    )


def test_both_wishes_are_refused():
    _, bodies, notes = asked(refusing("response_format", "top_logprobs"), WISHING, WISHING, use_probe=False)
    assert ["response_format" in body for body in bodies] == [True, False, False, False]
    assert ["top_logprobs" in body for body in bodies] == [True, True, False, False]
    assert "logprobs" not in bodies[-1]
    assert len(notes) == 2


def test_the_probe_finds_out_before_the_first_request():
    _, bodies, notes = asked(refusing("response_format"), WISHING)
    assert ["response_format" in body for body in bodies] == [True, False, False]
    assert bodies[1]["messages"] != bodies[2]["messages"]
    assert len(notes) == 1


def test_a_request_that_is_refused_for_another_reason_keeps_its_wishes():
    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply(status=400, raw=b'{"error":{"message":"the JSON of the context is too long"}}')

    with Server(Behaviour(script=script)) as server:
        model = generator(server.url, use_probe=False)
        with pytest.raises(RejectedError, match="too long"):
            asyncio.run(model.answer(WISHING))
    assert server.requests == 2  # also refused without the schema: the schema is not to blame
    assert model.notes == []
    with Server(Behaviour(script=lambda *_: Reply(status=400, raw=b'{"error":"too long"}'))) as server:
        with pytest.raises(RejectedError, match="too long"):
            asyncio.run(generator(server.url, use_probe=False).answer(WISHING))
        assert server.requests == 1


def test_stored_answers_keep_their_alternatives():
    known = Answer("4", tokens=["4"], top_logprobs=[FOUR])
    exchanges = [Exchange(outcome_of(answer), "d") for answer in (known, Answer("3"), Answer("x", logprobs=[-1.0]))]
    table = answer_table(0, exchanges)
    assert exchanges_of(table) == exchanges
    plain = answer_table(0, exchanges[1:])
    assert not {"tokens", "top_logprobs"} & {*plain.column_names}
    assert exchanges_of(plain) == exchanges[1:]
    assert msgspec.json.decode(msgspec.json.encode(exchanges[0]), type=Exchange) == exchanges[0]


def test_the_cache_keeps_alternatives_under_the_digest_of_the_wish(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    exchange = Exchange(outcome_of(Answer("4", tokens=["4"], top_logprobs=[FOUR])), WISHING.digest)
    with AnswerCache("m") as cache:
        cache.put(WISHING, exchange)
    with AnswerCache("m") as cache:
        cached = cache.get(WISHING)
        assert cached is not None
        assert cached.outcome == exchange.outcome
        assert cache.get(Request("a", TURNS)) is None


def test_models_on_this_machine_refuse_the_parameter():
    assert unknown_parameters(Parameters(top_logprobs=3, reasoning_effort="low")) == [
        "reasoning_effort",
        "top_logprobs",
    ]
    assert unknown_parameters(Parameters()) == []
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"top_logprobs": 21}, Parameters)
