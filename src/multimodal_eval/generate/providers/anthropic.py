"""`anthropic:NAME`: Anthropic's messages.

The API requires a limit of tokens; without one, MAX_TOKENS is sent. It has no seed, which is not sent, and no
log-probabilities, which are refused. Thinking is switched on by `extra`: {"thinking": {"type": "adaptive"}}. The JSON
schema of an answer is sent in `output_config`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import JsonObject
from multimodal_eval.generate.http import checked_url, decoded, excerpt
from multimodal_eval.generate.protocol import Answer, Finish, MalformedReplyError, Media, RejectedError, Request, Text
from multimodal_eval.generate.providers.endpoint_model import Api, EndpointModel, base64_text, encoded, images_of

__all__ = ["AnthropicModel", "open_generator"]

MAX_TOKENS = 4096
VERSION = "2023-06-01"
_NAME = "Anthropic's API"
_UNKNOWN = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
_MOST_VALUES = 128  # in a list instead of a range
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None


class _Details(msgspec.Struct):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: _Details | None = None


class _StopDetails(msgspec.Struct):
    explanation: str | None = None


class _Message(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    model: str | None = None
    usage: _Usage = msgspec.field(default_factory=_Usage)


_MESSAGE = msgspec.json.Decoder(_Message)


class AnthropicModel(EndpointModel):
    """A model behind Anthropic's messages."""

    api = Api(
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        "x-api-key",
        reserved=("messages", "model", "stream", "system"),
        headers={"anthropic-version": VERSION},
    )

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        super().__init__(provider, model, config)
        if config.parameters.logprobs or config.parameters.top_logprobs is not None:
            raise ConfigError(f"{_NAME} gives no log-probabilities. Remove `logprobs` and `top_logprobs`")
        if config.base_url:
            base = checked_url(config.base_url).removesuffix("/messages")
            self.base_url = base if base.endswith("/v1") else f"{base}/v1"

    @property
    def url(self) -> str:
        """Where requests are sent."""
        return f"{self.base_url}/messages"

    def body_of(self, request: Request) -> bytes:
        """The body of a request."""
        parameters = request.parameters
        body: dict[str, Any] = {"model": self.model, "max_tokens": parameters.max_tokens or MAX_TOKENS}
        if request.system:
            body["system"] = request.system
        body["messages"] = [
            {"role": turn.role, "content": [block for part in turn.parts for block in _blocks(part)]}
            for turn in request.turns
            if turn.role != "system"
        ]
        for name, value in (
            ("temperature", parameters.temperature),
            ("top_p", parameters.top_p),
            ("stop_sequences", parameters.stop or None),
            ("output_config", _output(request)),
        ):
            if value is not None:
                body[name] = value
        return encoded(body, parameters.extra)

    def answer_from(self, content: bytes) -> Answer:
        """The answer in the body of a reply."""
        message = decoded(content, _MESSAGE)
        if message.stop_reason not in _FINISHES:
            raise MalformedReplyError(f"the stop reason {message.stop_reason!r} is unknown", excerpt(content))
        texts = [block.text or "" for block in message.content if block.type == "text"]
        thoughts = [block.thinking or "" for block in message.content if block.type == "thinking"]
        usage, details = message.usage, message.stop_details
        read = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        return Answer(
            "".join(texts) if texts else None,
            finish=_FINISHES[message.stop_reason],
            reasoning="\n".join(filter(None, thoughts)) or None,
            refusal=details.explanation if details is not None else None,
            input_tokens=None if usage.input_tokens is None else sum(count or 0 for count in read),
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else None,
            cached_tokens=usage.cache_read_input_tokens,
            model=message.model,
            reply=content.decode("utf-8", "replace"),
        )


def _output(request: Request) -> JsonObject | None:
    """How hard the model thinks, and the form of its answer."""
    output: JsonObject = {}
    if request.parameters.reasoning_effort:
        output["effort"] = request.parameters.reasoning_effort
    if request.schema is not None:
        output["format"] = {"type": "json_schema", "schema": _known(request.schema)}
    return output or None


def _known(schema: Any) -> Any:
    """A JSON schema in the keywords that the API knows. It refuses limits; a short range becomes a list of values."""
    if isinstance(schema, list):
        return [_known(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    known = {
        name: {key: _known(value) for key, value in content.items()} if name == "properties" else _known(content)
        for name, content in schema.items()
        if name not in _UNKNOWN
    }
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema.get("type") == "integer" and isinstance(low, int) and isinstance(high, int) and high - low < _MOST_VALUES:
        known["enum"] = list(range(low, high + 1))
    return known


def _blocks(part: Text | Media) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}] if part.text else []
    return [{"type": "image", "source": _source(image)} for image in images_of(part, _NAME)]


def _source(image: Media) -> dict[str, Any]:
    if image.content is None:
        return {"type": "url", "url": image.url}
    if image.mime not in _IMAGES:
        raise RejectedError(f"{_NAME} takes images as JPEG, PNG, GIF or WebP. Got {image.mime} instead.")
    return {"type": "base64", "media_type": image.mime, "data": base64_text(image.content)}


def open_generator(provider: str, model: str, config: GenerationConfig) -> AnthropicModel:
    """The generator of `anthropic:NAME`."""
    return AnthropicModel(provider, model, config)
