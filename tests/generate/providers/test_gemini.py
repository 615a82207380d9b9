"""Google's generateContent: bodies and replies in the shapes of the public schema."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, RetryableError
from multimodal_eval.generate.protocol import EndpointError, MalformedReplyError, Media, Request, Text, Turn, outcome_of
from multimodal_eval.generate.registry import find_generator
from tests.generate.providers.recording_server import RecordingServer

KEY = "AIza-0123456789"
TEXT = {"text": "A dog."}
REPLY = {
    "candidates": [{"content": {"role": "model", "parts": [TEXT]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14},
    "modelVersion": "gemini-x-001",
    "responseId": "r",
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def model(parameters=None, name="gemini-x", **settings):
    config = GenerationConfig(
        model=f"gemini:{name}", parameters=parameters or Parameters(), use_probe=False, **settings
    )
    return find_generator(config)


def body(*turns, parameters=None) -> dict[str, Any]:
    parameters = parameters or Parameters()
    content: dict[str, Any] = json.loads(model(parameters).body_of(Request("a", turns, parameters)))
    return content


def user(*parts):
    return Turn("user", parts)


def read(*parts, finish="STOP", **changes):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    return model().answer_from(json.dumps({**REPLY, "candidates": [candidate], **changes}).encode())


def test_the_smallest_body():
    asked = Request("a", (user(Text("Hi")),))
    assert model().body_of(asked) == b'{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}'


def test_a_dialogue_with_media_and_every_parameter():
    turns = (
        Turn("system", (Text("Be short."),)),
        user(Media("image", "image/png", b"PNG"), Text("What is it?")),
        Turn("assistant", (Text("A dog."),)),
        user(Media("audio", "audio/wav", b"WAV"), Media("video", "video/mp4", url="https://example.org/a.mp4")),
    )
    parameters = Parameters(
        temperature=0.5,
        top_p=0.9,
        max_tokens=7,
        seed=1,
        stop=["\n"],
        reasoning_effort="low",
        logprobs=True,
        extra={"generationConfig": {"topK": 5}, "safetySettings": []},
    )
    assert body(*turns, parameters=parameters) == {
        "systemInstruction": {"parts": [{"text": "Be short."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "UE5H"}}, {"text": "What is it?"}],
            },
            {"role": "model", "parts": [{"text": "A dog."}]},
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "audio/wav", "data": "V0FW"}},
                    {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/a.mp4"}},
                ],
            },
        ],
        "generationConfig": {
            "maxOutputTokens": 7,
            "temperature": 0.5,
            "topP": 0.9,
            "seed": 1,
            "stopSequences": ["\n"],
            "responseLogprobs": True,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
            "topK": 5,
        },
        "safetySettings": [],
    }


def test_frames_are_images():
    parts = body(user(Media("video", "video/mp4", frames=(b"1", b"2"))))["contents"][0]["parts"]
    assert [part["inlineData"]["mimeType"] for part in parts] == ["image/jpeg"] * 2


def test_a_reply():
    answer = read(TEXT)
    assert (answer.text, answer.finish, answer.model) == ("A dog.", "stop", "gemini-x-001")
    assert (answer.input_tokens, answer.output_tokens, answer.reasoning_tokens) == (11, 3, None)


def test_thoughts_are_kept_apart():
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 3, "thoughtsTokenCount": 6, "cachedContentTokenCount": 1}
    answer = read({"text": "It barks.", "thought": True}, {"text": "A "}, {"text": "dog."}, usageMetadata=usage)
    assert (answer.text, answer.reasoning) == ("A dog.", "It barks.")
    assert (answer.output_tokens, answer.reasoning_tokens, answer.cached_tokens) == (9, 6, 1)


def test_log_probabilities():
    chosen = [{"token": "A", "logProbability": -0.5}, {"token": " dog"}]  # a value of zero is not written
    candidate = {**REPLY["candidates"][0], "logprobsResult": {"chosenCandidates": chosen}}
    answer = model().answer_from(json.dumps({**REPLY, "candidates": [candidate]}).encode())
    assert answer.logprobs == [-0.5, 0.0]


@pytest.mark.parametrize(
    ("parts", "finish", "status"),
    [
        ([TEXT], "MAX_TOKENS", "truncated"),
        ([], "MAX_TOKENS", "truncated"),
        ([], "SAFETY", "filtered"),
        ([TEXT], "RECITATION", "filtered"),
        ([{"functionCall": {"name": "f", "args": {}}}], "STOP", "tool_call"),
        ([], "MALFORMED_FUNCTION_CALL", "tool_call"),
        ([], "STOP", "empty"),
    ],
)
def test_what_becomes_of_a_reply(parts, finish, status):
    assert outcome_of(read(*parts, finish=finish)).status == status


def test_a_blocked_prompt_is_filtered():
    reply = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    answer = model().answer_from(json.dumps(reply).encode())
    assert outcome_of(answer).status == "filtered"
    assert answer.input_tokens == 4


def test_a_model_that_gives_up_is_asked_again():
    with pytest.raises(RetryableError, match=r"gave up .*OTHER"):
        read(TEXT, finish="OTHER")


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"candidates": [{"content": {"parts": "x"}}]}'])
def test_a_reply_of_another_shape_is_malformed(content):
    with pytest.raises(MalformedReplyError):
        model().answer_from(content)


@pytest.mark.parametrize("ending", ["", "/", "/models/gemini-x:generateContent"])
@pytest.mark.parametrize("name", ["gemini-x", "models/gemini-x"])
def test_the_request_over_http(ending, name):
    with RecordingServer(REPLY) as server:
        asked = Request("a", (user(Text("Hi")),))
        answer = asyncio.run(model(name=name, base_url=f"{server.url}/v1beta{ending}").answer(asked))
    assert answer.text == "A dog."
    (sent,) = server.requests
    assert sent.path == "/v1beta/models/gemini-x:generateContent"  # without the key
    assert sent.headers["x-goog-api-key"] == KEY


def test_a_wrong_key_stops():
    reply = {"error": {"code": 403, "message": f"no: {KEY}", "status": "PERMISSION_DENIED"}}
    with RecordingServer(reply, 403) as server, pytest.raises(EndpointError, match=r"\$GEMINI_API_KEY") as refusal:
        asyncio.run(model(base_url=server.url).answer(Request("a", (user(Text("Hi")),))))
    assert KEY not in str(refusal.value)


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="must not set 'contents'"):
        model(Parameters(extra={"contents": []}))
    with pytest.raises(ConfigError, match="'generationConfig' must be a JSON object"):
        model(Parameters(extra={"generationConfig": 3}))


def test_the_types_of_the_google_package_accept_a_body_and_read_the_reply_alike():
    types = pytest.importorskip("google.genai.types")
    parameters = Parameters(max_tokens=7, temperature=0.5, seed=1, stop=["\n"], reasoning_effort="low", logprobs=True)
    turns = (Turn("system", (Text("Be short."),)), user(Media("image", "image/png", b"PNG"), Text("What?")))
    content = body(*turns, parameters=parameters)
    types.GenerationConfig.model_validate(content["generationConfig"])
    wishes = Parameters(top_logprobs=5)
    schema = {"type": "object", "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}}}
    settings = json.loads(model(wishes).body_of(Request("a", turns, wishes, schema=schema)))["generationConfig"]
    read = types.GenerationConfig.model_validate(settings)
    assert (read.response_logprobs, read.logprobs) == (True, 5)
    assert (read.response_mime_type, read.response_json_schema) == ("application/json", schema)
    image, text = types.Content.model_validate(content["contents"][0]).parts
    assert (image.inline_data.data, text.text) == (b"PNG", "What?")
    reply = types.GenerateContentResponse.model_validate(REPLY)
    assert reply.text == model().answer_from(json.dumps(REPLY).encode()).text
