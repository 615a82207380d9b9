"""Render a conversation as the text that a chat model was trained on, with the model's own Jinja template.

The template is the setting `chat_template` of tokenizer_config.json, the file chat_template.jinja, or the setting of a
GGUF file. It comes with the model, so it runs in Jinja's sandbox, which only reads the values that it is given. A model
without a template continues the plain text of the turns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn, TypedDict

import msgspec

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.source import Model

__all__ = ["ChatTemplate", "Message"]

_SETTINGS, _FILE = "tokenizer_config.json", "chat_template.jinja"
_LARGEST = 1 << 20  # bytes


class Message(TypedDict):
    """A turn, as templates read it."""

    role: str
    content: str


class _Named(msgspec.Struct, frozen=True):
    """A template of a model that has several."""

    name: str
    template: str


class _Token(msgspec.Struct, frozen=True):
    """A special token with settings of its own."""

    content: str


class _Settings(msgspec.Struct, frozen=True):
    """The settings of tokenizer_config.json that templates use."""

    chat_template: str | list[_Named] | None = None
    bos_token: str | _Token | None = None
    eos_token: str | _Token | None = None


class ChatTemplate:
    """The template of a model; `source` is None if it has none."""

    def __init__(self, model: Model) -> None:
        has_settings = (model.folder / _SETTINGS).is_file()
        settings = model.read(_SETTINGS, _Settings) if has_settings else _Settings()
        self.place = f"the chat template of {model.label}"
        self.source = _source(model, settings)
        self.values = {"bos_token": _text(settings.bos_token), "eos_token": _text(settings.eos_token)}
        self._template = None if self.source is None else self._compiled(self.source)

    def render(self, messages: Sequence[Message]) -> str:
        """The messages, followed by the start of the answer."""
        if self._template is None:
            return "\n".join(message["content"] for message in messages)
        from jinja2 import TemplateError

        try:
            return str(self._template.render(messages=list(messages), add_generation_prompt=True, **self.values))
        except (
            TemplateError,
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            MemoryError,
            RecursionError,
        ) as fault:
            raise ModelError(f"{self.place} cannot render a conversation: {type(fault).__name__}: {fault}") from None

    def _compiled(self, source: str) -> Any:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _as_json
        environment.globals["raise_exception"] = _refuse
        try:
            return environment.from_string(source)
        except (TemplateError, RecursionError, ValueError) as fault:
            raise ModelError(f"{self.place} is not a valid template: {fault}") from None


def _source(model: Model, settings: _Settings) -> str | None:
    if isinstance(settings.chat_template, str):
        return settings.chat_template
    if settings.chat_template:
        named = {entry.name: entry.template for entry in settings.chat_template}
        return named.get("default", settings.chat_template[0].template)
    path = model.folder / _FILE
    if path.is_file():
        if path.stat().st_size > _LARGEST:
            raise ModelError(f"{path} is too large for a chat template: more than {_LARGEST:,} bytes")
        return path.read_text(encoding="utf-8")
    return _from_gguf(model)


def _from_gguf(model: Model) -> str | None:
    """The template in the GGUF file that the model was converted from."""
    from multimodal_eval.models.formats.gguf import GgufFile

    files = sorted(model.folder.glob("*.gguf"))
    if len(files) != 1:
        return None
    source = GgufFile(model.file(files[0].name)).settings.get("tokenizer.chat_template")
    return source if isinstance(source, str) else None


def _text(token: str | _Token | None) -> str:
    if token is None:
        return ""
    return token if isinstance(token, str) else token.content


def _as_json(value: object, indent: int | None = None) -> str:
    """Like transformers: letters of every script, and no HTML escapes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)
