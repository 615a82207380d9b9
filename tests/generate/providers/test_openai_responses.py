"""OpenAI's Responses API: bodies that its own types accept, and replies that its own types make."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from openai.types.responses import Response, response_create_params
from pydantic import TypeAdapter

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, RetryableError
from multimodal_eval.generate.protocol import MalformedReplyError, Media, RejectedError, Request, Text, Turn, outcome_of
from multimodal_eval.generate.providers.openai_responses import (
    open_generator,
    responses_answer_from,
    responses_body_of,
)
from tests.generate.server import Behaviour, Server
from tests.generate.server import Reply as Sent

EVERYTHING = Parameters(temperature=0.5, top_p=0.9, max_tokens=70, reasoning_effort="low", logprobs=True)
PNG = Media("image", "image/png", b"PNG", detail="low")

FRAMES = Media("video", "video/mp4", frames=(b"a", b"b"))


def request(*parts: Text | Media, parameters: Parameters = EVERYTHING) -> Request:
    return Request("a", (Turn("system", (Text("Be brief."),)), Turn("user", parts)), parameters)


def reply(*output: dict[str, Any], **fields: Any) -> bytes:
    """A reply that the openai package accepts."""
    content = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "m-1",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        **fields,
    }
    Response.model_validate(content)
    return json.dumps(content).encode()


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": list(content)}


def said(text: str, **more: Any) -> dict[str, Any]:
    return message({"type": "output_text", "text": text, "annotations": [], **more})


@pytest.mark.parametrize("parts", [(Text("Which?"),), (PNG, Text("Which?")), (FRAMES,)])
def test_the_types_of_openai_accept_a_body(parts):
    body = responses_body_of(request(*parts), "gpt-5")
    kind = response_create_params.ResponseCreateParamsNonStreaming
    assert json.loads(body).keys() <= kind.__required_keys__ | kind.__optional_keys__
    TypeAdapter(kind).validate_json(body)
    assert body == responses_body_of(request(*parts), "gpt-5")


def test_a_body():
    assert json.loads(responses_body_of(request(PNG, Text("Which?")), "gpt-5")) == {
        "model": "gpt-5",
        "input": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "data:image/png;base64,UE5H", "detail": "low"},
                    {"type": "input_text", "text": "Which?"},
                ],
            },
        ],
        "store": False,
        "max_output_tokens": 70,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "low"},
        "include": ["message.output_text.logprobs"],
    }


def test_audio_is_rejected():
    with pytest.raises(RejectedError, match="takes no audio"):
        responses_body_of(request(Media("audio", "audio/wav", b"x")), "gpt-5")


@pytest.mark.parametrize("parameters", [Parameters(seed=1), Parameters(stop=["x"]), Parameters(extra={"stream": True})])
def test_what_the_api_does_not_have_is_refused_before_the_run(parameters):
    with pytest.raises(ConfigError):
        open_generator("openai-responses", "m", GenerationConfig(model="openai-responses:m", parameters=parameters))


def test_all_fields_of_an_answer():
    token = {"token": "red", "logprob": -0.5, "bytes": [], "top_logprobs": []}
    thought = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "The car."}]}
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    answer = responses_answer_from(reply(thought, said("red", logprobs=[token]), usage=usage))
    assert (answer.text, answer.reasoning, answer.logprobs, answer.model) == ("red", "The car.", [-0.5], "m-1")
    assert (answer.input_tokens, answer.output_tokens) == (10, 5)
    assert (answer.cached_tokens, answer.reasoning_tokens) == (8, 3)


def incomplete(reason: str) -> dict[str, Any]:
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (reply(said("red")), "ok"),
        (reply(said("red and"), **incomplete("max_output_tokens")), "truncated"),
        (reply(**incomplete("content_filter")), "filtered"),
        (reply(message({"type": "refusal", "refusal": "I cannot."})), "refused"),
        (reply({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}), "tool_call"),
        (reply(), "empty"),
    ],
)
def test_the_status_of_a_reply(content, status):
    assert outcome_of(responses_answer_from(content)).status == status


@pytest.mark.parametrize("details", [{"incomplete_details": {"reason": "steered"}}, {}])
def test_half_of_an_answer_is_no_answer_whatever_the_reason(details):
    with pytest.raises(RetryableError, match="gave up"):
        responses_answer_from(reply(said("red and"), status="incomplete", **details))


def test_a_reply_that_failed_is_asked_again():
    with pytest.raises(RetryableError, match="gave up"):
        responses_answer_from(reply(status="failed"))
    with pytest.raises(MalformedReplyError):
        responses_answer_from(b'{"choices": []}')


def test_an_answer_from_a_server():
    behaviour = Behaviour(script=lambda *_: Sent(raw=reply(said("red"))))
    with Server(behaviour) as server:
        config = GenerationConfig(model="openai-responses:tiny", base_url=server.url)
        generator = open_generator("openai-responses", "tiny", config)
        assert asyncio.run(generator.answer(request(Text("Which?")))).text == "red"
        assert generator.label == "openai-responses:tiny"
