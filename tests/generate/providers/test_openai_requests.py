"""Request bodies of chat completions: the openai package's own types accept them, and dialects differ as documented."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import completion_create_params
from pydantic import TypeAdapter, ValidationError

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.protocol import Media, RejectedError, Request, Text, Turn
from multimodal_eval.generate.providers.openai_chat import DIALECTS, body_of, dialect_of, open_generator

PNG = Media("image", "image/png", b"PNG-content", detail="low")
WAV = Media("audio", "audio/wav", b"RIFF-content")
FRAMES = Media("video", "video/mp4", frames=(b"one", b"two"))
MP4 = Media("video", "video/mp4", b"ftyp-content")
NONE = Parameters()
EVERYTHING = Parameters(
    temperature=0.5, top_p=0.9, max_tokens=7, seed=3, stop=["\n"], reasoning_effort="low", logprobs=True
)


def request(*parts: Text | Media, parameters: Parameters = NONE) -> Request:
    return Request("a", (Turn("user", parts),), parameters)


def sent(*parts: Text | Media, dialect: str = "openai", parameters: Parameters = NONE) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(body_of(request(*parts, parameters=parameters), "m", DIALECTS[dialect]))
    return body


def contents(*parts: Text | Media, dialect: str = "openai") -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = sent(*parts, dialect=dialect)["messages"][0]["content"]
    return content


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def accepted(body: bytes) -> None:
    """Validate a body with the types of the openai package; an unknown field at the top is an error, too."""
    kind = completion_create_params.CompletionCreateParamsNonStreaming
    assert json.loads(body).keys() <= kind.__required_keys__ | kind.__optional_keys__
    checked = TypeAdapter(kind).validate_json(body, strict=True)
    list(checked["messages"])  # pydantic checks an Iterable as it is read


def test_text_alone():
    assert body_of(request(Text("Which?")), "m") == b'{"model":"m","messages":[{"role":"user","content":"Which?"}]}'


def test_fields_are_in_a_fixed_order_and_extra_comes_last():
    extra = {"top_k": 5, "chat_template_kwargs": {"b": 1, "a": 2}}
    body = body_of(request(Text("x"), parameters=Parameters(temperature=0.0, max_tokens=9, extra=extra)), "m")
    assert body == (
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"max_completion_tokens":9,"temperature":0.0,'
        b'"chat_template_kwargs":{"a":2,"b":1},"top_k":5}'
    )


def test_extra_wins_over_a_parameter():
    assert sent(Text("x"), parameters=Parameters(seed=1, extra={"seed": 2}))["seed"] == 2


texts = st.text().map(Text)
media = st.sampled_from([PNG, WAV, FRAMES, Media("image", "image/jpeg", url="https://images.example/a.jpg")])
turns = st.one_of(
    st.builds(Turn, st.sampled_from(["system", "assistant"]), st.tuples(texts)),
    st.builds(Turn, st.just("user"), st.lists(texts | media, min_size=1).map(tuple)),
)


@given(st.lists(turns, min_size=1).map(tuple), st.sampled_from([NONE, EVERYTHING]))
def test_the_types_of_openai_accept_every_body(turns, parameters):
    asked = Request("a", turns, parameters)
    body = body_of(asked, "gpt-5", DIALECTS["openai"])
    accepted(body)
    assert body == body_of(asked, "gpt-5", DIALECTS["openai"])


@pytest.mark.parametrize("wrong", [b'{"model":"m"}', b'{"model":"m","messages":[{"role":"nobody","content":"x"}]}'])
def test_the_types_of_openai_refuse_a_wrong_body(wrong):
    with pytest.raises(ValidationError):
        accepted(wrong)


def test_every_parameter_has_its_field():
    assert {name: value for name, value in sent(Text("x"), parameters=EVERYTHING).items() if name != "messages"} == {
        "model": "m",
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["\n"],
        "reasoning_effort": "low",
        "logprobs": True,
    }


@pytest.mark.parametrize(
    ("provider", "base_url", "model", "field"),
    [
        ("openai", None, "gpt-4o", "max_completion_tokens"),
        ("openai", "https://eu.api.openai.com/v1", "gpt-4o", "max_completion_tokens"),
        ("openai", "https://us.openai.azure.com/openai/v1", "gpt-4o", "max_completion_tokens"),
        ("openai", "https://notopenai.com/v1", "gpt-4o", "max_tokens"),
        ("openai", "http://localhost:11434/v1", "llava", "max_tokens"),
        ("openai", "https://hosted.example/v1", "openai/o3-mini", "max_completion_tokens"),
        ("vllm", None, "llava", "max_tokens"),
    ],
)
def test_the_limit_of_tokens_has_the_name_that_the_server_knows(provider, base_url, model, field):
    body = json.loads(
        body_of(request(Text("x"), parameters=Parameters(max_tokens=5)), model, dialect_of(provider, base_url))
    )
    assert body[field] == 5
    assert len(body) == 3


def test_an_image_is_a_data_uri_before_or_after_the_text_as_in_the_turn():
    url = f"data:image/png;base64,{data(b'PNG-content')}"
    image = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    text = {"type": "text", "text": "Which?"}
    assert contents(PNG, Text("Which?")) == [image, text]
    assert contents(Text("Which?"), PNG) == [text, image]
    assert contents(PNG, Text("")) == [image]


def test_an_image_by_url_is_passed_on():
    part = Media("image", "image/jpeg", url='https://images.example/a"b.jpg')
    assert contents(part) == [{"type": "image_url", "image_url": {"url": 'https://images.example/a"b.jpg'}}]
    with pytest.raises(RejectedError, match="does not fetch images"):
        contents(part, dialect="ollama")


@pytest.mark.parametrize(
    ("dialect", "part", "expected"),
    [
        ("openai", WAV, {"type": "input_audio", "input_audio": {"data": data(b"RIFF-content"), "format": "wav"}}),
        (
            "vllm",
            Media("audio", "audio/mpeg", b"ID3"),
            {"type": "input_audio", "input_audio": {"data": data(b"ID3"), "format": "mp3"}},
        ),
        ("sglang", WAV, {"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{data(b'RIFF-content')}"}}),
        (
            "vllm",
            Media("audio", "audio/wav", url="https://a.example/b.wav"),
            {"type": "audio_url", "audio_url": {"url": "https://a.example/b.wav"}},
        ),
        (
            "llamacpp",
            Media("audio", "audio/wav", url="https://a.example/b.wav"),
            {"type": "input_audio", "input_audio": {"url": "https://a.example/b.wav"}},
        ),
        ("vllm", MP4, {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{data(b'ftyp-content')}"}}),
        ("sglang", MP4, {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{data(b'ftyp-content')}"}}),
        ("llamacpp", MP4, {"type": "input_video", "input_video": {"data": data(b"ftyp-content")}}),
        (
            "llamacpp",
            Media("video", "video/mp4", url="https://a.example/b.mp4"),
            {"type": "input_video", "input_video": {"url": "https://a.example/b.mp4"}},
        ),
        (
            "vllm",
            FRAMES,
            {"type": "video_url", "video_url": {"url": f"data:video/jpeg;base64,{data(b'one')},{data(b'two')}"}},
        ),
    ],
)
def test_audio_and_video_in_each_dialect(dialect, part, expected):
    assert contents(part, dialect=dialect) == [expected]


@pytest.mark.parametrize("dialect", ["openai", "compatible", "sglang", "llamacpp", "ollama"])
def test_frames_are_images_without_a_list_of_frames(dialect):
    assert [part["image_url"]["url"] for part in contents(FRAMES, dialect=dialect)] == [
        f"data:image/jpeg;base64,{data(b'one')}",
        f"data:image/jpeg;base64,{data(b'two')}",
    ]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (MP4, "no video. Send frames"),
        (Media("audio", "audio/flac", b"fLaC"), "WAV or MP3. Got audio/flac"),
        (Media("audio", "audio/wav", url="https://a.example/b.wav"), "does not fetch audio"),
    ],
)
def test_what_openai_does_not_take_is_rejected_with_what_to_do(part, message):
    with pytest.raises(RejectedError, match=message):
        contents(part)


def test_media_in_the_turn_of_the_assistant_is_rejected():
    with pytest.raises(RejectedError, match="assistant"):
        body_of(Request("a", (Turn("assistant", (PNG,)),)), "m")


@pytest.mark.parametrize("name", ["messages", "model", "stream", "n"])
def test_extra_must_not_change_what_is_asked(name):
    config = GenerationConfig(model="openai:m", parameters=Parameters(extra={name: 1}))
    with pytest.raises(ConfigError, match=f"must not set '{name}'"):
        open_generator("openai", "m", config)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        (None, "https://api.openai.com/v1"),
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000/v1"),
        ("http://localhost:8000/chat/completions", "http://localhost:8000/v1"),
        ("https://hosted.example/api/v1", "https://hosted.example/api/v1"),
        ("https://hosted.example/v1beta/openai/", "https://hosted.example/v1beta/openai"),
        (" http://[::1]:8000/v1 ", "http://[::1]:8000/v1"),
    ],
)
def test_the_base_url_may_be_given_in_every_usual_way(given, base):
    assert open_generator("openai", "m", GenerationConfig(model="openai:m", base_url=given)).base_url == base


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8000", "must start with http"),
        ("file:///etc/passwd", "must start with http"),
        ("http://", "must start with http"),
        ("http://host:port/v1", "not a valid URL"),
        ("https://me:very-secret@host.example/v1", "must not contain a key"),
        ("https://host.example/v1?api_key=very-secret", "must not contain a key"),
    ],
)
def test_a_bad_base_url_is_refused_without_repeating_a_key(url, message):
    with pytest.raises(ConfigError, match=message) as refused:
        open_generator("openai", "m", GenerationConfig(model="openai:m", base_url=url))
    assert "very-secret" not in str(refused.value)


def test_the_label_has_the_revision_and_not_the_address():
    here = GenerationConfig(model="vllm:org/m", revision="abc", base_url="http://localhost:1")
    assert open_generator("vllm", "org/m", here).label == "vllm:org/m@abc"
    assert open_generator("vllm", "org/m", GenerationConfig(model="vllm:org/m")).label == "vllm:org/m"
