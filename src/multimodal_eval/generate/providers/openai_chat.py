"""Endpoints with OpenAI's chat completions: OpenAI, vLLM, SGLang, llama.cpp, Ollama, and hosted ones.

The servers differ in how audio and video are sent, in the name of the limit of tokens, and in the default address; the
table DIALECTS has all differences. The body of a request is made by `body_of` alone, and is the same bytes for the same
request.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.records import JsonObject
from multimodal_eval.generate.http import checked_url
from multimodal_eval.generate.protocol import Answer, Media, RejectedError, Request, Text, Turn
from multimodal_eval.generate.providers.chat_replies import answer_from
from multimodal_eval.generate.providers.endpoint_model import Api, EndpointModel, base64_text, encoded, json_string

__all__ = [
    "DIALECTS",
    "ChatGenerator",
    "Dialect",
    "body_of",
    "data_uri",
    "dialect_of",
    "named_schema",
    "open_generator",
]


@dataclass(frozen=True)
class Dialect:
    """How a family of servers speaks chat completions."""

    base_url: str | None  # the default address
    key_env: str
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    audio: Literal["input_audio", "audio_url"] = "input_audio"
    audio_by_url: Literal["input_audio", "audio_url"] | None = None
    video: Literal["video_url", "input_video"] | None = None
    frames: Literal["video", "images"] = "images"  # a video that is sent as frames: one video, or as many images
    fetches_images: bool = True  # from http addresses


DIALECTS = {
    "openai": Dialect("https://api.openai.com/v1", "OPENAI_API_KEY", limit="max_completion_tokens"),
    "compatible": Dialect(None, "OPENAI_API_KEY"),  # `openai:` with the address of another server
    "vllm": Dialect(
        *("http://localhost:8000/v1", "VLLM_API_KEY"), audio_by_url="audio_url", video="video_url", frames="video"
    ),
    "sglang": Dialect(
        *("http://localhost:30000/v1", "SGLANG_API_KEY"),
        audio="audio_url",
        audio_by_url="audio_url",
        video="video_url",
    ),
    "llamacpp": Dialect(
        *("http://localhost:8080/v1", "LLAMA_API_KEY"), audio_by_url="input_audio", video="input_video"
    ),
    "openai-responses": Dialect("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "ollama": Dialect("http://localhost:11434/v1", "OLLAMA_API_KEY", fetches_images=False),
}
_OWN_HOSTS = re.compile(r"(^|\.)(openai\.com|openai\.azure\.com)$")
_REASONING_MODELS = re.compile(r"^(.*/)?(o\d|gpt-5)")  # they refuse `max_tokens`
_AUDIO_FORMATS = {
    **{"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav"},
    **{"audio/mpeg": "mp3", "audio/mp3": "mp3"},
}
_PATHS = ("/chat/completions", "/completions", "/models", "/responses")


def dialect_of(provider: str, base_url: str | None = None) -> Dialect:
    """The dialect of a provider; `openai` with the address of another server is the common one."""
    if provider == "openai" and base_url is not None and not _OWN_HOSTS.search(urlsplit(base_url).hostname or ""):
        return DIALECTS["compatible"]
    return DIALECTS[provider]


def body_of(request: Request, model: str, dialect: Dialect = DIALECTS["openai"]) -> bytes:
    """The body of a request, in a fixed order of fields."""
    body: dict[str, Any] = {"model": model, "messages": [_message(turn, dialect) for turn in request.turns]}
    body.update(_parameters(request.parameters, model, dialect))
    if request.schema is not None:  # the same form in all dialects
        body["response_format"] = {"type": "json_schema", "json_schema": named_schema(request.schema)}
    return encoded(body, request.parameters.extra)


def named_schema(schema: JsonObject) -> JsonObject:
    """A JSON schema as OpenAI's APIs take it."""
    return {"name": "reply", "strict": True, "schema": schema}


def _parameters(parameters: Parameters, model: str, dialect: Dialect) -> Iterator[tuple[str, object]]:
    limit = "max_completion_tokens" if _REASONING_MODELS.match(model) else dialect.limit
    for name, value in (
        (limit, parameters.max_tokens),
        ("temperature", parameters.temperature),
        ("top_p", parameters.top_p),
        ("seed", parameters.seed),
        ("stop", parameters.stop or None),
        ("reasoning_effort", parameters.reasoning_effort),
        ("logprobs", parameters.logprobs or parameters.top_logprobs is not None or None),
        ("top_logprobs", parameters.top_logprobs),
    ):
        if value is not None:
            yield name, value


def _message(turn: Turn, dialect: Dialect) -> dict[str, Any]:
    parts = [part for part in turn.parts if isinstance(part, Media) or part.text]
    if len(parts) == 1 and isinstance(parts[0], Text):
        return {"role": turn.role, "content": parts[0].text}
    if not any(isinstance(part, Media) for part in parts):
        return {"role": turn.role, "content": turn.text}
    if turn.role != "user":
        raise RejectedError(f"chat completions take media in a user's turn only, and this one is the {turn.role}'s")
    return {"role": turn.role, "content": [content for part in parts for content in _contents(part, dialect)]}


def _contents(part: Text | Media, dialect: Dialect) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}]
    if part.kind == "image":
        return [_image(part, dialect)]
    return [_audio(part, dialect)] if part.kind == "audio" else _video(part, dialect)


def _image(part: Media, dialect: Dialect) -> dict[str, Any]:
    if part.content is None and not dialect.fetches_images:
        raise RejectedError("this server does not fetch images from a URL. Send the content: media_as: data")
    address: dict[str, Any] = {"url": data_uri(part) if part.content is not None else part.url}
    if part.detail is not None:
        address["detail"] = part.detail
    return {"type": "image_url", "image_url": address}


def _audio(part: Media, dialect: Dialect) -> dict[str, Any]:
    if part.content is None:
        if dialect.audio_by_url is None:
            raise RejectedError("this server does not fetch audio from a URL. Send the content: media_as: data")
        return {"type": dialect.audio_by_url, dialect.audio_by_url: {"url": part.url}}
    if dialect.audio == "audio_url":
        return {"type": "audio_url", "audio_url": {"url": data_uri(part)}}
    encoding = _AUDIO_FORMATS.get(part.mime)
    if encoding is None:
        raise RejectedError(f"chat completions take audio as WAV or MP3. Got {part.mime} instead.")
    return {"type": "input_audio", "input_audio": {"data": base64_text(part.content), "format": encoding}}


def _video(part: Media, dialect: Dialect) -> list[dict[str, Any]]:
    if part.frames and dialect.frames == "video":
        joined = b",".join(b64encode(frame) for frame in part.frames)
        return [{"type": "video_url", "video_url": {"url": json_string(b"data:video/jpeg;base64," + joined)}}]
    if part.frames:
        frames = (Media("image", "image/jpeg", frame, detail=part.detail) for frame in part.frames)
        return [_image(frame, dialect) for frame in frames]
    if dialect.video is None:
        raise RejectedError("OpenAI's chat completions take no video. Send frames of it as images: --frames 8")
    if dialect.video == "video_url":
        return [{"type": "video_url", "video_url": {"url": data_uri(part) if part.content is not None else part.url}}]
    content = {"data": base64_text(part.content)} if part.content is not None else {"url": part.url}
    return [{"type": "input_video", "input_video": content}]


def data_uri(part: Media) -> msgspec.Raw:
    """The content of a medium as a JSON string with a data URI."""
    return json_string(b"data:" + part.mime.encode() + b";base64," + b64encode(part.content or b""))


class ChatGenerator(EndpointModel):
    """A model behind chat completions."""

    path = "/chat/completions"
    reserved: tuple[str, ...] = ("messages", "model", "stream", "n")

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        self.dialect = dialect_of(provider, None if config.base_url is None else checked_url(config.base_url))
        address, key = self.dialect.base_url or "", self.dialect.key_env
        self.api = Api(address, key, "Authorization", self.reserved, key_prefix="Bearer ")
        super().__init__(provider, model, config)
        self.base_url, self.query = _base(self.base_url)

    @property
    def url(self) -> str:
        """Where requests are sent."""
        return f"{self.base_url}{self.path}{self.query}"

    def body_of(self, request: Request) -> bytes:
        """The body of a request to this endpoint."""
        return body_of(request, self.model, self.dialect)

    def answer_from(self, content: bytes) -> Answer:
        """The answer in the body of a reply."""
        return answer_from(content)


def _base(url: str) -> tuple[str, str]:
    """The address up to `/v1`, and its query. It may be given without `/v1`, or with the whole path."""
    address, mark, query = checked_url(url).partition("?")
    address = address.rstrip("/")
    for path in _PATHS:
        address = address.removesuffix(path)
    if not urlsplit(address).path.strip("/"):
        address = address.rstrip("/") + "/v1"
    return address.rstrip("/"), mark + query


def open_generator(provider: str, model: str, config: GenerationConfig) -> ChatGenerator:
    """The generator of `openai:NAME`, `vllm:NAME`, …"""
    return ChatGenerator(provider, model, config)
