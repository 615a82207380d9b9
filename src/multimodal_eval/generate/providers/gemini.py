"""`gemini:NAME`: Google's generateContent, which takes images, audio and video.

`reasoning_effort` is the level of thinking; the thoughts are kept apart from the answer. `extra` sets fields of the
body; those in its `generationConfig` are added to the parameters.
"""

from __future__ import annotations

from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, RetryableError
from multimodal_eval.generate.http import checked_url, decoded, excerpt
from multimodal_eval.generate.protocol import (
    Answer,
    Finish,
    MalformedReplyError,
    Media,
    Request,
    Text,
    TokenProbability,
    Turn,
)
from multimodal_eval.generate.providers.endpoint_model import Api, EndpointModel, base64_text, encoded, images_of

__all__ = ["GeminiModel", "open_generator"]

_CONFIG = "generationConfig"
_FILTERED = (
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
)
_TOOLS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")
_FINISHES: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_FILTERED, "content_filter"),
    **dict.fromkeys(_TOOLS, "tool_calls"),
}


class _Record(msgspec.Struct, rename="camel"):
    """Google writes names in camel case."""


class _Part(_Record):
    text: str | None = None
    thought: bool = False
    function_call: dict[str, Any] | None = None


class _Content(_Record):
    parts: list[_Part] = []


class _Token(_Record):
    token: str = ""
    log_probability: float = 0.0  # zero is not written


class _Tokens(_Record):
    candidates: list[_Token] = []


class _Logprobs(_Record):
    chosen_candidates: list[_Token] = []
    top_candidates: list[_Tokens] = []


class _Candidate(_Record):
    content: _Content = msgspec.field(default_factory=_Content)
    finish_reason: str | None = None
    finish_message: str | None = None
    logprobs_result: _Logprobs | None = None


class _Feedback(_Record):
    block_reason: str | None = None


class _Usage(_Record):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Reply(_Record):
    candidates: list[_Candidate] = []
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage = msgspec.field(default_factory=_Usage)
    model_version: str | None = None


class _Model(_Record):
    name: str


class _Models(_Record):
    models: list[_Model]


_REPLY, _MODELS = msgspec.json.Decoder(_Reply), msgspec.json.Decoder(_Models)


class GeminiModel(EndpointModel):
    """A model behind generateContent."""

    api = Api(
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        "x-goog-api-key",
        reserved=("contents", "systemInstruction", "system_instruction"),
    )

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        super().__init__(provider, model.removeprefix("models/"), config)
        if not isinstance(config.parameters.extra.get(_CONFIG, {}), dict):
            raise ConfigError(f"`extra`: {_CONFIG!r} must be a JSON object")
        if config.base_url:
            self.base_url = checked_url(config.base_url).partition("/models")[0]

    @property
    def url(self) -> str:
        """Where requests are sent."""
        return f"{self.base_url}/models/{self.model}:generateContent"

    def body_of(self, request: Request) -> bytes:
        """The body of a request."""
        body: dict[str, Any] = {}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        body["contents"] = [_content(turn) for turn in request.turns if turn.role != "system"]
        settings = _settings(request)
        if settings:
            body[_CONFIG] = settings
        extra = {name: value for name, value in request.parameters.extra.items() if name != _CONFIG}
        return encoded(body, extra)

    def answer_from(self, content: bytes) -> Answer:
        """The answer in the body of a reply."""
        reply = decoded(content, _REPLY)
        usage = reply.usage_metadata
        written = (usage.candidates_token_count, usage.thoughts_token_count)
        candidate, finish = _candidate(reply, content)
        parts = candidate.content.parts
        if any(part.function_call is not None for part in parts):
            finish = "tool_calls"
        texts = [part.text for part in parts if part.text is not None and not part.thought]
        thoughts = [part.text for part in parts if part.text is not None and part.thought]
        logprobs = candidate.logprobs_result if not thoughts else None  # they would include those of the thoughts
        alternatives = _alternatives(logprobs)
        return Answer(
            "".join(texts) if texts else None,
            finish=finish,
            reasoning="".join(thoughts) or None,
            logprobs=[token.log_probability for token in logprobs.chosen_candidates] if logprobs else None,
            input_tokens=usage.prompt_token_count,
            output_tokens=None if written == (None, None) else sum(count or 0 for count in written),
            reasoning_tokens=usage.thoughts_token_count,
            cached_tokens=usage.cached_content_token_count,
            model=reply.model_version,
            reply=content.decode("utf-8", "replace"),
            tokens=[token.token for token in logprobs.chosen_candidates] if logprobs and alternatives else None,
            top_logprobs=alternatives,
        )

    async def models(self) -> list[str]:
        """The names of the endpoint's models."""
        models = decoded(await self.client.get(f"{self.base_url}/models?pageSize=1000"), _MODELS).models
        return [model.name.removeprefix("models/") for model in models]


def _candidate(reply: _Reply, content: bytes) -> tuple[_Candidate, Finish]:
    """The first candidate, and why it ends. A prompt that is blocked has none."""
    if not reply.candidates:
        if reply.prompt_feedback is None or reply.prompt_feedback.block_reason is None:
            raise MalformedReplyError("the reply has no candidates", excerpt(content))
        return _Candidate(), "content_filter"
    candidate = reply.candidates[0]
    if candidate.finish_reason not in _FINISHES:
        why = candidate.finish_message or excerpt(content)
        raise RetryableError(f"the model gave up (finishReason {candidate.finish_reason!r}): {why}")
    return candidate, _FINISHES[candidate.finish_reason]


def _alternatives(logprobs: _Logprobs | None) -> list[list[TokenProbability]] | None:
    """The most likely tokens at each place of the answer."""
    if logprobs is None or not logprobs.top_candidates:
        return None
    if len(logprobs.top_candidates) != len(logprobs.chosen_candidates):
        return None
    return [
        [TokenProbability(each.token, each.log_probability) for each in top.candidates]
        for top in logprobs.top_candidates
    ]


def _settings(request: Request) -> dict[str, Any]:
    parameters = request.parameters
    effort, most = parameters.reasoning_effort, parameters.top_logprobs
    settings = {
        "maxOutputTokens": parameters.max_tokens,
        "temperature": parameters.temperature,
        "topP": parameters.top_p,
        "seed": parameters.seed,
        "stopSequences": parameters.stop or None,
        "responseLogprobs": parameters.logprobs or most is not None or None,
        "logprobs": most,
        "thinkingConfig": effort and {"includeThoughts": True, "thinkingLevel": effort.upper()},
        "responseMimeType": None if request.schema is None else "application/json",
        "responseJsonSchema": request.schema,
    }
    known = {name: value for name, value in settings.items() if value is not None}
    return {**known, **dict(sorted(parameters.extra.get(_CONFIG, {}).items()))}


def _content(turn: Turn) -> dict[str, Any]:
    role = "model" if turn.role == "assistant" else "user"
    return {"role": role, "parts": [content for part in turn.parts for content in _parts(part)]}


def _parts(part: Text | Media) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        return [{"text": part.text}] if part.text else []
    media = images_of(part, "generateContent") if part.frames else [part]
    return [_media(each) for each in media]


def _media(part: Media) -> dict[str, Any]:
    if part.content is None:
        return {"fileData": {"mimeType": part.mime, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.mime, "data": base64_text(part.content)}}


def open_generator(provider: str, model: str, config: GenerationConfig) -> GeminiModel:
    """The generator of `gemini:NAME`."""
    return GeminiModel(provider, model, config)
