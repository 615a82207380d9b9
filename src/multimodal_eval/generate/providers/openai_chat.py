"""Endpoints with OpenAI's chat completions: OpenAI, vLLM, SGLang, llama.cpp, Ollama, and hosted ones.

The servers differ in how audio and video are sent, in the name of the limit of tokens, and in the default address; the
table DIALECTS has all differences. The body of a request is made by `body_of` alone, and is the same bytes for the same
request.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, RetryableError
from multimodal_eval.core.records import JsonObject
from multimodal_eval.generate.http import checked_url, decoded, excerpt, is_filtered
from multimodal_eval.generate.protocol import (
    Answer,
    FilteredError,
    Finish,
    MalformedReplyError,
    Media,
    RateLimitError,
    RejectedError,
    Request,
    Text,
    TokenProbability,
    Turn,
    apart,
)
from multimodal_eval.generate.providers.endpoint_model import (
    SEVERAL,
    Api,
    EndpointModel,
    base64_text,
    encoded,
    json_string,
)

__all__ = [
    "DIALECTS",
    "ChatGenerator",
    "Dialect",
    "alternatives_of",
    "answer_from",
    "answers_from",
    "body_of",
    "data_uri",
    "dialect_of",
    "named_schema",
    "open_generator",
]


# Read the reply of OpenAI's chat completions, as the many servers that speak it write it.

# `finish_reason` of the servers -> ours. A reason that is not here is an ordinary end.
FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "refusal": "refusal",
}
UNFINISHED = ("abort", "error")  # the server gave up


class _Part(msgspec.Struct):
    type: str = "text"
    text: str | None = None
    thinking: list[_Part] | str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None  # vLLM, SGLang, llama.cpp, DeepSeek
    reasoning: Any = None  # Ollama, OpenRouter, Groq
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


class _Details(msgspec.Struct):
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None  # SGLang
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: Any = None


class _Logprobs(msgspec.Struct):
    content: list[_Token]


_T = TypeVar("_T")
_DECODER = msgspec.json.Decoder(_Reply)


def answer_from(content: bytes) -> Answer:
    """The answer in the body of a reply. Raises MalformedReplyError if there is none."""
    return answers_from(content)[0]


def answers_from(content: bytes) -> list[Answer]:
    """All answers in the body of a reply, at least one. The tokens of all are counted with the first one."""
    reply = decoded(content, _DECODER)
    if not reply.choices or reply.error:
        raise _failure(reply.error, content)
    first, *others = (_answer_of(choice, reply, content) for choice in reply.choices)
    counted = {"input_tokens": 0, "output_tokens": 0, "reasoning_tokens": None, "cached_tokens": None, "reply": None}
    uncounted = {name: value for name, value in counted.items() if getattr(first, name) is not None}
    return [first, *(msgspec.structs.replace(other, **uncounted) for other in others)]


def _answer_of(choice: _Choice, reply: _Reply, content: bytes) -> Answer:
    if choice.finish_reason in UNFINISHED:
        raise RetryableError(f"the server gave up (finish_reason {choice.finish_reason!r}): {excerpt(content)}")
    message = choice.message
    text, reasoning = _texts(message)
    usage = _converted(reply.usage, _Usage) or _Usage()
    tokens = None if choice.logprobs is None else _tokens(choice.logprobs, text, reasoning)
    chosen, alternatives = (
        alternatives_of([(token.token, token.top_logprobs) for token in tokens]) if tokens else (None, None)
    )
    finish = FINISHES.get(choice.finish_reason or "stop", "stop")
    if not text and (message.tool_calls or message.function_call):
        finish = "tool_calls"
    return Answer(
        text,
        finish=finish,
        reasoning=reasoning,
        refusal=message.refusal or None,
        logprobs=None if tokens is None else [token.logprob for token in tokens],
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        reasoning_tokens=_of(usage.completion_tokens_details, "reasoning_tokens", usage.reasoning_tokens),
        cached_tokens=_of(usage.prompt_tokens_details, "cached_tokens"),
        model=reply.model,
        reply=content.decode("utf-8", "replace"),
        tokens=chosen,
        top_logprobs=alternatives,
    )


def _failure(error: Any, content: bytes) -> Exception:
    """An error with status 200, which some proxies send."""
    words = excerpt(content)
    if not error:
        return MalformedReplyError("the reply has no choices", words)
    code = error.get("code") if isinstance(error, dict) else None
    if code == 429:
        return RateLimitError(words)
    if is_filtered(content, by_words=code == 403):
        return FilteredError(f"HTTP 200 with an error: {words}")
    if isinstance(code, int) and 400 <= code < 500:
        return RejectedError(f"HTTP 200 with error {code}: {words}")
    return RetryableError(f"HTTP 200 with an error: {words}")


def _texts(message: _Message) -> tuple[str | None, str | None]:
    """The answer, and the reasoning apart from it."""
    reasoning = next(
        (text for text in (message.reasoning_content, message.reasoning) if isinstance(text, str) and text), None
    )
    if isinstance(message.content, list):
        thoughts = [_joined(part.thinking) for part in message.content if part.thinking]
        reasoning = reasoning or "".join(thoughts) or None
        return "".join(part.text or "" for part in message.content if part.type == "text"), reasoning
    if reasoning is None and message.content:
        return apart(message.content)
    return message.content, reasoning


def _joined(thinking: list[_Part] | str | None) -> str:
    return "".join(part.text or "" for part in thinking) if isinstance(thinking, list) else thinking or ""


def alternatives_of(
    tokens: Sequence[tuple[str, Any]],
) -> tuple[list[str] | None, list[list[TokenProbability]] | None]:
    """The tokens of an answer, and the most likely ones at each place; None if the reply does not have them."""
    if not any(top for _, top in tokens):
        return None, None
    alternatives = [_converted(top, list[TokenProbability]) for _, top in tokens]
    if any(top is None for top in alternatives):
        return None, None
    return [token for token, _ in tokens], [top for top in alternatives if top is not None]


def _tokens(value: Any, text: str | None, reasoning: str | None) -> list[_Token] | None:
    """The answer's tokens; None if they cannot be told from those of the reasoning."""
    record = _converted(value, _Logprobs)
    if record is None or not record.content:
        return None
    tokens = record.content
    if reasoning is None:
        return tokens
    wanted, tail = (text or "").strip(), ""
    for place in range(len(tokens) - 1, -1, -1):
        tail = tokens[place].token + tail
        if tail.strip() == wanted and wanted:
            return tokens[place:]
        if len(tail) > len(wanted) + 200:
            return None
    return None


def _converted(value: Any, record: type[_T]) -> _T | None:
    """A part of a reply that an answer does not depend on; None if it has another shape."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError:
        return None


def _of(details: _Details | None, name: str, other: int | None = None) -> int | None:
    value: int | None = getattr(details, name, None)
    return other if value is None else value


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
    "azure": Dialect(None, "AZURE_OPENAI_API_KEY", limit="max_completion_tokens"),
    "ollama": Dialect("http://localhost:11434/v1", "OLLAMA_API_KEY", fetches_images=False),
}
_OWN_HOSTS = re.compile(r"(^|\.)(openai\.com|openai\.azure\.com)$")
_REASONING_MODELS = re.compile(r"^(.*/)?(o\d|gpt-5)")  # they refuse `max_tokens`
_AUDIO_FORMATS = {
    **{"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav"},
    **{"audio/mpeg": "mp3", "audio/mp3": "mp3"},
}
AZURE_VERSION = "api-version=2024-10-21"  # the latest one with this shape that is generally available
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
    if request.count > 1:
        body["n"] = request.count
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
        raise RejectedError("OpenAI's chat completions take no video. Send frames of it: the setting `frames: 8`")
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
    gives_several = True  # answers to a request
    reserved: tuple[str, ...] = ("messages", "model", "stream", "n")

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        self.dialect = dialect_of(
            provider, None if config.base_url is None else checked_url(config.base_url.split(",")[0])
        )
        address, key = self.dialect.base_url or "", self.dialect.key_env
        header, prefix = self.key_header
        self.api = Api(address, key, header, self.reserved, key_prefix=prefix)
        first, *others = (config.base_url or "").split(",")
        super().__init__(provider, model, msgspec.structs.replace(config, base_url=first or None))
        self.base_url, self.query = _base(self.base_url)
        self._others = [f"{base}{self.path}{query}" for base, query in map(_base, others)]
        self._shared: dict[str, _Shared] = {}  # requests for several answers, by their digests

    @property
    def key_header(self) -> tuple[str, str]:
        """The header of the key, and what is before the key."""
        return "Authorization", "Bearer "

    @property
    def url(self) -> str:
        """Where requests are sent."""
        return f"{self.base_url}{self.path}{self.query}"

    @property
    def urls(self) -> Sequence[str]:
        """The address, and further ones of the same model."""
        return [self.url, *self._others]

    def body_of(self, request: Request) -> bytes:
        """The body of a request to this endpoint."""
        return body_of(request, self.model, self.dialect)

    def answer_from(self, content: bytes) -> Answer:
        """The answer in the body of a reply."""
        return answers_from(content)[0]

    async def _answer_to(self, request: Request) -> Answer:
        """The answer to a request; one for the answers in several epochs is sent once."""
        if request.count == 1:
            return await super()._answer_to(request)
        shared = self._shared.get(request.digest)
        if shared is None or request.epoch in shared.taken:
            body = self.body_of(request)
            self._shared[request.digest] = shared = _Shared(asyncio.ensure_future(self._posted(body)))
        shared.taken.add(request.epoch)
        try:
            answers = answers_from(await shared.result())
        except BaseException:
            self._forget(request.digest, shared)
            raise
        if len(shared.taken) == request.count:
            self._forget(request.digest, shared)
        place = (request.epoch - 1) % request.count
        if place < len(answers):
            return answers[place]
        self._optional.note(SEVERAL, f"it gave {len(answers)} of {request.count}")
        return await super()._answer_to(request.alone)

    def _forget(self, digest: str, shared: _Shared) -> None:
        if self._shared.get(digest) is shared:
            del self._shared[digest]


@dataclass
class _Shared:
    """A request whose reply has the answers in several epochs. It is cancelled if nobody waits for it any more."""

    reply: asyncio.Future[bytes]
    taken: set[int] = field(default_factory=set)  # epochs
    waiting: int = 0

    async def result(self) -> bytes:
        """The reply."""
        self.waiting += 1
        try:
            return await asyncio.shield(self.reply)
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.reply.cancel()


class AzureGenerator(ChatGenerator):
    """A deployment of Azure OpenAI: its own address, `api-version` and header of the key."""

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        if config.base_url is None or "," in config.base_url:
            raise ConfigError(
                "azure:DEPLOYMENT needs the address of the resource: --base-url https://NAME.openai.azure.com"
            )
        super().__init__(provider, model, config)
        address, _, query = checked_url(config.base_url).partition("?")
        self.base_url = f"{address.partition('/openai')[0].rstrip('/')}/openai"
        self.path = f"/deployments/{quote(model, safe='')}/chat/completions"
        self.query = f"?{query or AZURE_VERSION}"

    @property
    def key_header(self) -> tuple[str, str]:
        """The header of the key, and what is before the key."""
        return "api-key", ""


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
    kind = AzureGenerator if provider == "azure" else ChatGenerator
    return kind(provider, model, config)
