"""What models behind an HTTP API have in common: the address, the key, the client, and the probe."""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.http import HttpClient, checked_url, decoded
from multimodal_eval.generate.probe import Endpoint, Probe
from multimodal_eval.generate.protocol import Answer, FilteredError, Media, RejectedError, Request
from multimodal_eval.generate.providers.wishes import Wishes, without_alternatives
from multimodal_eval.generate.secrets import key_from_environment, refuse_key_in

__all__ = ["Api", "EndpointModel", "base64_text", "encoded", "images_of", "json_string"]


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
        self.key = key_from_environment(config.key_env or self.api.key_env)
        refuse_key_in(config, self.key, "the settings of the generation")
        headers = {} if self.key.value is None else {self.api.key_header: self.api.key_prefix + self.key.value}
        self.client = HttpClient(self.key, {**self.api.headers, **headers}, subject=model)
        self._probe = Probe(self, on=config.use_probe)
        self._wishes = Wishes(self.label)
        if config.concurrency is not None:
            self.client.connections = config.concurrency
        if config.timeout is not None:
            self.client.timeout = config.timeout

    @property
    def notes(self) -> list[str]:
        """What the endpoint did not grant, in words."""
        return self._wishes.notes

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
        request = self._wishes.left_in(request)
        try:
            answer = self.answer_from(await self.client.post(self.url, self.body_of(request)))
        except RejectedError as rejection:
            is_about_content = isinstance(rejection, FilteredError)
            wish = None if is_about_content else self._wishes.named_in(request, str(rejection))
            if wish is None:
                raise
            answer = await self.ask(self._wishes.without(request, wish))
            self._wishes.note(wish, str(rejection))
        return without_alternatives(request, answer)

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
    advice = ". Send frames of it as images: --frames 8" if part.kind == "video" else ""
    raise RejectedError(f"{api} takes no {part.kind}{advice}")
