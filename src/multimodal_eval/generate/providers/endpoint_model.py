"""What models behind an HTTP API have in common: the address, the key, the client, and the probe."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import re
import time
import warnings
import wave
from abc import abstractmethod
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RetryableError
from multimodal_eval.core.metric_failures import RETRYABLE
from multimodal_eval.generate.http import HttpClient, checked_url, decoded
from multimodal_eval.generate.protocol import (
    Answer,
    EndpointError,
    FilteredError,
    MalformedReplyError,
    Media,
    RejectedError,
    Request,
    Text,
    Turn,
    UnreachableError,
)
from multimodal_eval.generate.secrets import headers_from_environment, key_from_environment, refuse_key_in

__all__ = [
    "SEVERAL",
    "Api",
    "Endpoint",
    "EndpointModel",
    "OptionalFieldWarning",
    "OptionalFields",
    "Probe",
    "base64_text",
    "encoded",
    "images_of",
    "json_string",
    "probe",
    "without_alternatives",
]


# Try an endpoint with one small request before the first real one, and say what to do if it fails.
#
# The list of models is read if the endpoint has one. Then a request of a few words is sent, with the parameters of the
# run and a small image or audio if the first request has media of that kind. An endpoint that is only busy passes.

PROMPT = "This is a test of the connection. Answer with: ok"
TOKENS = 16  # some models refuse a lower limit
SECONDS = 60.0  # a model that is being loaded may need longer, which is not an error
MALFORMED = 3  # replies in a row that are not those of the API
REST = 5.0  # seconds without requests after a failure, if the model is at other addresses too
MOST_NAMES = 12  # of models in a message
# A gray image of 28 x 28 pixels: two patches of the usual encoders in each direction, because some refuse less.
_PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABwAAAAcCAIAAAD9b0jDAAAAKElEQVR42mOsr69noDZgYqABGDV01NBRQ0cNHTV01NBRQ0cNHXyGAgDhkAG1"
    "2W1F+QAAAABJRU5ErkJggg=="
)
_SKIP = "To run without this test, set `use_probe: false`"


class Endpoint:
    """A model behind an address: what a probe needs of it."""

    model: str
    base_url: str

    async def ask(self, request: Request) -> Answer:
        """The answer to a request, without a probe."""
        raise NotImplementedError

    async def models(self) -> list[str]:
        """The names of the endpoint's models. Any error means that it has no list."""
        raise RetryableError("no list of models")

    async def is_alive(self) -> bool:
        """Whether the endpoint deals with a small request now, while others fail."""
        try:
            async with asyncio.timeout(SECONDS):
                await self.ask(Request("probe", (Turn("user", (Text(PROMPT),)),), Parameters(max_tokens=TOKENS)))
        except RejectedError:
            return True
        except (MultimodalEvalError, TimeoutError, ConnectionError):
            return False
        return True


class Probe:
    """The probe of one endpoint: the first request waits for it, and no other is affected."""

    def __init__(self, endpoint: Endpoint, *, on: bool = True) -> None:
        self._endpoint, self._is_done = endpoint, not on
        self._tried: asyncio.Event | None = None  # set when the attempt in progress ends; each has its own event loop

    async def before(self, request: Request) -> None:
        """Return when the endpoint was tried; raises EndpointError if it does not work."""
        while not self._is_done:
            if self._tried is not None:
                await self._tried.wait()
                continue
            self._tried = tried = asyncio.Event()
            try:
                await probe(self._endpoint, request)
                self._is_done = True
            finally:
                self._tried = None
                tried.set()


async def probe(endpoint: Endpoint, first: Request) -> None:
    """Try an endpoint with a request like `first`. Raises EndpointError with what to do if no request can succeed."""
    known: list[str] = []  # empty if there is no list; a wrong key or a missing server shows in the request
    with suppress(MultimodalEvalError, TimeoutError, ConnectionError):
        async with asyncio.timeout(SECONDS):
            known = await endpoint.models()
    kinds = {part.kind for turn in first.turns for part in turn.parts if isinstance(part, Media)}
    media = [_sample(kind) for kind in ("image", "audio") if kind in kinds]
    parameters = msgspec.structs.replace(first.parameters, max_tokens=TOKENS, stop=[])
    plain = Request("probe", (Turn("user", (Text(PROMPT),)),), parameters, schema=first.schema)
    asked = dataclasses.replace(plain, turns=(Turn("user", (*media, Text(PROMPT))),)) if media else plain
    try:
        failure = await _tried(endpoint, asked)
        if failure is None:
            return
        if media and await _tried(endpoint, plain) is None:
            refused = " or ".join(sorted({f"{part.kind}s" if part.kind == "image" else part.kind for part in media}))
            raise EndpointError(
                f"{endpoint.model!r} does not accept {refused} ({failure}). Choose a model that does, or data without. "
                f"{_SKIP}"
            )
    except EndpointError as error:
        advice = _advice(endpoint.model, known)
        raise EndpointError(f"{error}.{advice}" if advice else str(error)) from None
    except UnreachableError as error:
        raise EndpointError(f"{error}. Is it running? Check --base-url") from None
    raise EndpointError(
        f"{endpoint.base_url} refuses a test request: {failure}.{_advice(endpoint.model, known)} {_SKIP}"
    )


async def _tried(endpoint: Endpoint, request: Request, attempts: int = MALFORMED) -> str | None:
    """Why the endpoint refuses a request; None if it may answer it, now or later."""
    try:
        async with asyncio.timeout(SECONDS):
            await endpoint.ask(request)
    except RejectedError as rejection:
        is_only_short = "output limit" in str(rejection)  # of a model that reasons first
        return None if is_only_short else str(rejection)
    except UnreachableError:
        raise
    except MalformedReplyError as error:
        if attempts > 1:  # it may be an accident
            return await _tried(endpoint, request, attempts - 1)
        raise EndpointError(f"{endpoint.base_url} is not an endpoint of this kind: {error}. Check --base-url") from None
    except RETRYABLE:
        return None
    return None


def _sample(kind: str) -> Media:
    """A small image, or half a second of silence."""
    if kind == "image":
        return Media("image", "image/png", _PNG)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(16_000))
    return Media("audio", "audio/wav", content.getvalue())


def _advice(model: str, known: Sequence[str]) -> str:
    """The endpoint's models, if the one of the run is not among them."""
    if not known or model in known:
        return ""
    more = f" and {len(known) - MOST_NAMES:,} more" if len(known) > MOST_NAMES else ""
    return f" The server has: {', '.join(known[:MOST_NAMES])}{more}"


# The optional fields of a request: a JSON schema of the answer, and the probabilities of other tokens.
#
# Not every endpoint supports them. If it rejects a request and names such a field, the request is sent again without
# it, and if that works, the field is not sent any more. The digest of the request does not change: what an endpoint
# supports depends on its version, and whoever reads the answer accepts it without the field, or refuses it there.

SEVERAL = "several answers per request"
# optional field -> how an endpoint that does not support it says so
_NAMES = {
    "a JSON schema": re.compile(
        r"response_?format|text\.format|output_?(?:config|format)|schema|structured|guided|grammar|json", re.IGNORECASE
    ),
    "the probabilities of other tokens": re.compile(r"logprob|log prob", re.IGNORECASE),
    SEVERAL: re.compile(r"\bn\b|n_cmpl|choice|completion", re.IGNORECASE),
}
_SCHEMA, _PROBABILITIES, _ = _NAMES


class OptionalFieldWarning(UserWarning):
    """An endpoint refuses what a request can do without."""


class OptionalFields:
    """The optional fields that one endpoint rejects."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.notes: list[str] = []  # what was refused, in words
        self._refused: set[str] = set()

    def left_in(self, request: Request) -> Request:
        """The request without the fields that were rejected before."""
        for name in self._refused:
            request = _without(request, name)
        return request

    def named_in(self, request: Request, rejection: str) -> str | None:
        """The optional field that the endpoint's message names; None if it is about something else."""
        return next((name for name in _optional_of(request) if _NAMES[name].search(rejection)), None)

    def without(self, request: Request, name: str) -> Request:
        """The request without an optional field."""
        return _without(request, name)

    def note(self, name: str, rejection: str) -> None:
        """Remember that the endpoint rejects an optional field, with one note."""
        if name in self._refused:
            return
        self._refused.add(name)
        self.notes.append(f"{self.model} is asked without {name}, because the endpoint rejects it ({rejection})")
        warnings.warn(self.notes[-1], OptionalFieldWarning, stacklevel=3)


def without_alternatives(request: Request, answer: Answer) -> Answer:
    """The answer without the probabilities of other tokens, if nobody asked for them: some servers always send them."""
    if answer.top_logprobs is None or request.parameters.top_logprobs is not None:
        return answer
    return msgspec.structs.replace(answer, tokens=None, top_logprobs=None)


def _optional_of(request: Request) -> list[str]:
    probabilities = request.parameters.top_logprobs is not None
    # First the one whose name is the more particular: the message about it may also contain "JSON", or "completion".
    optional = [_PROBABILITIES] * probabilities + [_SCHEMA] * (request.schema is not None)
    return optional + [SEVERAL] * (request.count > 1)


def _without(request: Request, name: str) -> Request:
    if name == SEVERAL:
        return request.alone if request.count > 1 else request
    if name == _SCHEMA:
        return dataclasses.replace(request, schema=None)
    return dataclasses.replace(request, parameters=msgspec.structs.replace(request.parameters, top_logprobs=None))


@dataclass(frozen=True)
class Api:
    """An API of models."""

    base_url: str  # up to the version
    key_env: str
    key_header: str
    key_prefix: str = field(default="", kw_only=True)
    reserved: tuple[str, ...]  # fields of the body that `extra` may not set
    headers: Mapping[str, str] = field(default_factory=dict)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


_MODELS = msgspec.json.Decoder(_Models)


class EndpointModel(Endpoint):
    """A model behind an API. A class for an API has `api`, `body_of`, `url` and `answer_from`."""

    is_cacheable = True
    api: Api
    query = ""  # of every address, with its question mark

    def __init__(self, provider: str, model: str, config: GenerationConfig) -> None:
        if not model:
            raise ConfigError(f"`model` must have a name after {provider}:, such as {provider}:my-model")
        for name in self.api.reserved:
            if name in config.parameters.extra:
                raise ConfigError(f"`extra` must not set {name!r}: one text is asked for, from the model of the run")
        self.model = model
        self.label = f"{provider}:{model}" + (f"@{config.revision}" if config.revision else "")
        self.base_url = checked_url(config.base_url) if config.base_url else self.api.base_url
        further, secrets = headers_from_environment(config.headers)
        self.key = key_from_environment(config.key_env or self.api.key_env, secrets)
        refuse_key_in(config, self.key, "the settings of the generation")
        headers = {} if self.key.value is None else {self.api.key_header: self.api.key_prefix + self.key.value}
        self.client = HttpClient(self.key, {**self.api.headers, **headers, **further}, subject=model)
        self._running, self._resting = Counter[str](), dict[str, float]()  # by address
        self._probe = Probe(self, on=config.use_probe)
        self._optional = OptionalFields(self.label)
        if config.concurrency is not None:
            self.client.connections = config.concurrency
        if config.timeout is not None:
            self.client.timeout = config.timeout

    @property
    def notes(self) -> list[str]:
        """What the endpoint did not grant, in words."""
        return self._optional.notes

    @property
    @abstractmethod
    def url(self) -> str:
        """Where requests are sent."""

    @abstractmethod
    def body_of(self, request: Request) -> bytes:
        """The body of a request, in a fixed order of fields."""

    @abstractmethod
    def answer_from(self, content: bytes) -> Answer:
        """The answer in the body of a reply."""

    async def answer(self, request: Request) -> Answer:
        """Ask the endpoint, which is tried first."""
        await self._probe.before(request)
        return await self.ask(request)

    async def ask(self, request: Request) -> Answer:
        """Ask the endpoint; without what it does not know, if the request can do without."""
        request = self._optional.left_in(request)
        try:
            answer = await self._answer_to(request)
        except RejectedError as rejection:
            is_about_content = isinstance(rejection, FilteredError)
            name = None if is_about_content else self._optional.named_in(request, str(rejection))
            if name is None:
                raise
            answer = await self.ask(self._optional.without(request, name))
            self._optional.note(name, str(rejection))
        return without_alternatives(request, answer)

    async def _answer_to(self, request: Request) -> Answer:
        """The answer to a request as it is; some APIs give several."""
        return self.answer_from(await self._posted(self.body_of(request)))

    @property
    def urls(self) -> Sequence[str]:
        """All addresses at which the model is; requests are shared between them."""
        return [self.url]

    async def _posted(self, body: bytes) -> bytes:
        """The reply to a request, at the address with the fewest requests; one that has failed rests for a while."""
        urls, now = self.urls, time.monotonic()
        url = min(urls, key=lambda each: (self._resting.get(each, 0.0) > now, self._running[each]))
        self._running[url] += 1
        try:
            return await self.client.post(url, body)
        except RETRYABLE:
            self._resting[url] = time.monotonic() + REST
            raise
        finally:
            self._running[url] -= 1

    async def models(self) -> list[str]:
        """The names of the endpoint's models."""
        content = await self.client.get(f"{self.base_url}/models{self.query}")
        return [model.id for model in decoded(content, _MODELS).data]


def encoded(body: Mapping[str, Any], extra: Mapping[str, Any]) -> bytes:
    """A body as JSON, with the fields that the user adds, in a fixed order."""
    added = {name: msgspec.Raw(msgspec.json.encode(extra[name], order="deterministic")) for name in sorted(extra)}
    return msgspec.json.encode({**body, **added})


def base64_text(content: bytes) -> msgspec.Raw:
    """Content as a JSON string in base64."""
    return json_string(b64encode(content))


def json_string(content: bytes) -> msgspec.Raw:
    """A JSON string that needs no escapes: not decoded and not searched, because it may have megabytes."""
    return msgspec.Raw(b'"' + content + b'"')


def images_of(part: Media, api: str) -> list[Media]:
    """The images of a part: itself, or the frames of a video."""
    if part.kind == "image":
        return [part]
    if part.frames:
        return [Media("image", "image/jpeg", frame) for frame in part.frames]
    advice = ". Send frames of it as images: the setting `frames: 8`" if part.kind == "video" else ""
    raise RejectedError(f"{api} takes no {part.kind}{advice}")
