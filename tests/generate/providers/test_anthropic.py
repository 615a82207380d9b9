"""Anthropic's messages: bodies and replies in the shapes of the public schema."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.protocol import (
    EndpointError,
    MalformedReplyError,
    Media,
    RateLimitError,
    RejectedError,
    Request,
    Text,
    Turn,
    outcome_of,
)
from multimodal_eval.generate.registry import find_generator
from tests.generate.providers.recording_server import RecordingServer

PNG = Media("image", "image/png", b"PNG")
TOOL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
KEY = "sk-ant-0123456789"
REPLY = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-20260101",
    "content": [{"type": "text", "text": "A dog."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 5,
        "output_tokens": 4,
    },
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def model(parameters=None, **settings):
    config = GenerationConfig(
        model="anthropic:claude-x", parameters=parameters or Parameters(), use_probe=False, **settings
    )
    return find_generator(config)


def body(*turns, parameters=None) -> dict[str, Any]:
    parameters = parameters or Parameters()
    content: dict[str, Any] = json.loads(model(parameters).body_of(Request("a", turns, parameters)))
    return content


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 900},
        "score": {"type": "integer", "minimum": 1, "maximum": 3},
        "minimum": {"type": "number", "minimum": 0},
    },
    "required": ["reason", "score", "minimum"],
    "additionalProperties": False,
}


def test_a_schema_in_the_keywords_that_the_api_knows():
    parameters = Parameters(reasoning_effort="low")
    asked = Request("a", (user(Text("Hi")),), parameters, schema=SCHEMA)
    content = json.loads(model(parameters).body_of(asked))
    # Limits are refused by the API: the short range is a list of values, and the name of a property stays.
    properties = {
        "reason": {"type": "string"},
        "score": {"type": "integer", "enum": [1, 2, 3]},
        "minimum": {"type": "number"},
    }
    assert content["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": {**SCHEMA, "properties": properties}},
    }


def user(*parts):
    return Turn("user", parts)


def read(**changes):
    return model().answer_from(json.dumps({**REPLY, **changes}).encode())


def test_the_smallest_body():
    asked = Request("a", (user(Text("Hi")),))
    assert model().body_of(asked) == (
        b'{"model":"claude-x","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}'
    )


def test_a_dialogue_with_images_and_every_parameter():
    turns = (
        Turn("system", (Text("Be short."),)),
        user(PNG, Text("What is it?")),
        Turn("assistant", (Text("A dog."),)),
        user(Media("image", "image/png", url="https://example.org/b.png"), Text("And this?")),
    )
    parameters = Parameters(
        temperature=0.5, top_p=0.9, max_tokens=7, seed=1, stop=["\n"], reasoning_effort="low", extra={"top_k": 5}
    )
    assert body(*turns, parameters=parameters) == {
        "model": "claude-x",
        "max_tokens": 7,
        "system": "Be short.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "UE5H"}},
                    {"type": "text", "text": "What is it?"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "A dog."}]},
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/b.png"}},
                    {"type": "text", "text": "And this?"},
                ],
            },
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["\n"],
        "output_config": {"effort": "low"},
        "top_k": 5,
    }


def test_frames_are_images_and_other_media_are_refused():
    video = Media("video", "video/mp4", frames=(b"1", b"2"))
    content = body(user(video))["messages"][0]["content"]
    assert [(block["type"], block["source"]["media_type"]) for block in content] == [("image", "image/jpeg")] * 2
    for part, words in (
        (Media("audio", "audio/wav", b"x"), "takes no audio"),
        (Media("video", "video/mp4", b"x"), "takes no video. Send frames"),
        (Media("image", "image/tiff", b"x"), "Got image/tiff instead"),
    ):
        with pytest.raises(RejectedError, match=words):
            body(user(part))


def test_a_reply():
    answer = read()
    assert (answer.text, answer.finish, answer.model) == ("A dog.", "stop", "claude-x-20260101")
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens) == (17, 4, 5)


def test_thinking_is_kept_apart():
    blocks = [
        {"type": "thinking", "thinking": "It barks.", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "A "},
        {"type": "text", "text": "dog."},
    ]
    usage = {"input_tokens": 1, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 6}}
    answer = read(content=blocks, usage=usage)
    assert (answer.text, answer.reasoning, answer.reasoning_tokens) == ("A dog.", "It barks.", 6)


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"stop_reason": "stop_sequence", "stop_sequence": "\n"}, "ok", None),
        ({"stop_reason": "max_tokens"}, "truncated", "after 4 tokens"),
        ({"stop_reason": "model_context_window_exceeded"}, "truncated", "cut off"),
        ({"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "bio"}}, "refused", "bio"),
        ({"stop_reason": "refusal", "content": []}, "refused", "no text"),
        ({"content": [TOOL], "stop_reason": "tool_use"}, "tool_call", "called a tool"),
        ({"content": []}, "empty", "without text"),
    ],
)
def test_what_becomes_of_a_reply(changes, status, reason):
    outcome = outcome_of(read(**changes))
    assert outcome.status == status
    assert reason is None or reason in outcome.reason


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"content": "text"}', json.dumps({**REPLY, "stop_reason": "x"})])
def test_a_reply_of_another_shape_is_malformed(content):
    with pytest.raises(MalformedReplyError):
        model().answer_from(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/messages"])
def test_the_request_over_http(ending):
    with RecordingServer(REPLY) as server:
        answer = asyncio.run(model(base_url=f"{server.url}{ending}").answer(Request("a", (user(Text("Hi")),))))
    assert answer.text == "A dog."
    (sent,) = server.requests
    assert (sent.method, sent.path) == ("POST", "/v1/messages")
    assert (sent.headers["x-api-key"], sent.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in sent.headers
    assert json.loads(sent.body)["model"] == "claude-x"


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (401, "authentication_error", EndpointError),
        (404, "not_found_error", EndpointError),
        (400, "invalid_request_error", RejectedError),
        (429, "rate_limit_error", RateLimitError),
    ],
)
def test_errors_say_what_the_api_says(status, kind, error):
    reply = {"type": "error", "error": {"type": kind, "message": f"model: no, with {KEY}"}}
    with RecordingServer(reply, status) as server, pytest.raises(error, match="model: no") as refusal:
        asyncio.run(model(base_url=server.url).answer(Request("a", (user(Text("Hi")),))))
    assert KEY not in str(refusal.value)


def test_what_the_api_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="gives no log-probabilities"):
        model(Parameters(logprobs=True))
    with pytest.raises(ConfigError, match="gives no log-probabilities"):
        model(Parameters(top_logprobs=5))
    with pytest.raises(ConfigError, match="must not set 'messages'"):
        model(Parameters(extra={"messages": []}))
    with pytest.raises(ConfigError, match="must have a name"):
        find_generator(GenerationConfig(model="anthropic:"))


def test_the_types_of_the_anthropic_package_accept_a_body():
    types = pytest.importorskip("anthropic.types")
    adapter = pytest.importorskip("pydantic").TypeAdapter
    kind = pytest.importorskip("anthropic.types.message_create_params").MessageCreateParamsNonStreaming
    parameters = Parameters(max_tokens=7, stop=["\n"], reasoning_effort="low")
    turns = (Turn("system", (Text("Be short."),)), user(PNG, Text("What?")), Turn("assistant", (Text("A"),)))
    asked = Request("a", (*turns, user(Text("And?"))), parameters, schema=SCHEMA)
    content = json.loads(model(parameters).body_of(asked))
    assert kind.__required_keys__ <= content.keys() <= kind.__required_keys__ | kind.__optional_keys__
    kinds = {"text": types.TextBlockParam, "image": types.ImageBlockParam}
    for message in content["messages"]:
        assert message["role"] in ("user", "assistant")
        for block in message["content"]:
            adapter(kinds[block["type"]]).validate_python(block, strict=True)
    adapter(types.OutputConfigParam).validate_python(content["output_config"])
    types.Message.model_validate(REPLY)
