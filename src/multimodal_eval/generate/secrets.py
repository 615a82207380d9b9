"""Keys of endpoints: read from the environment, sent in a header, and removed from every text that comes back.

An endpoint may repeat the key in an error, a reply or a redirect. The HTTP client removes it from the bytes that it
receives, so that nothing behind it (errors, the journal, the tables, the report) ever sees the key.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError

__all__ = ["Key", "headers_from_environment", "key_from_environment", "refuse_key_in", "refuse_secrets"]

REMOVED = "[key removed]"
# Names of fields with a key; `key`, `token` and the like at their end.
_SECRET_NAME = re.compile(r"(?i)(^|[-_.])(api[-_]?key|key|token|secret|password|authorization|bearer)$")
# Values that are a key, whatever their name: an HTTP header, or the prefix of a well-known service.
_SECRET_VALUE = re.compile(
    r"(?i:(bearer|basic)\s+\S{8,})|(sk|gsk|xai|hf|ghp|github_pat|xox[abp])[-_][A-Za-z0-9_-]{8,}"
    r"|AIza[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{12,}"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
SHORTEST = 8  # characters; shorter values, such as EMPTY or none, are placeholders that an answer may contain


class Key:
    """A key. Its value is in `value` only: printing the object does not show it. `others` are removed like it."""

    __slots__ = ("_forms", "name", "value")

    def __init__(self, value: str | None = None, name: str | None = None, others: Sequence[str] = ()) -> None:
        self.value, self.name = value, name
        secrets = [*others] if value is None else [value, *others]
        self._forms = tuple(form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret))

    def __repr__(self) -> str:
        return f"Key({self.name or 'none'})"

    def __reduce__(self) -> str:
        raise TypeError("a key cannot be pickled")

    def removed(self, content: bytes) -> bytes:
        """The content without the key. JSON stays JSON."""
        if not any(form in content for form in self._forms):
            return content
        try:
            return msgspec.json.encode(self._without(msgspec.json.decode(content)))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self._replaced(content)

    def removed_text(self, text: str) -> str:
        """The text without the key."""
        return self._replaced(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _replaced(self, content: bytes) -> bytes:
        for form in self._forms:
            content = content.replace(form, REMOVED.encode())
        return content

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.removed_text(value)
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, dict):
            return {self.removed_text(name): self._without(item) for name, item in value.items()}
        return value


def _forms(value: str) -> tuple[bytes, ...]:
    """The ways in which a reply may write the key: plain, as a JSON string, and in a URL."""
    as_json = msgspec.json.encode(value)[1:-1]
    forms = [
        value.encode(),
        as_json,
        as_json.replace(b"/", b"\\/"),
        quote(value, safe="").encode(),
        quote(value).encode(),
    ]
    return tuple(dict.fromkeys(sorted(forms, key=len, reverse=True)))


def headers_from_environment(headers: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Headers, in which $NAME is the value of an environment variable, and these values."""
    sent, secrets = {}, list[str]()
    for name, text in headers.items():
        is_secret = _SECRET_NAME.search(name) or _SECRET_VALUE.search(text)
        if is_secret and not _REFERENCE.search(text):
            raise ConfigError(
                f"`headers` must not have the value of {name!r}, because it is stored with the run. Put it into an "
                f"environment variable, and write its name: {name}: $MY_VARIABLE"
            )
        for variable in _REFERENCE.findall(text):
            if not (value := os.environ.get(variable, "").strip()):
                raise ConfigError(f"`headers`: {name} needs the environment variable ${variable}, which is not set")
            secrets.append(value)
        sent[name] = value = _REFERENCE.sub(lambda match: os.environ[match[1]].strip(), text)
        if not _HEADER.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise ConfigError(
                f"`headers`: {name!r} must be the name of a header, and its value one line of ASCII characters"
            )
    return sent, secrets


def key_from_environment(name: str, others: Sequence[str] = ()) -> Key:
    """The key in an environment variable; without a value if the variable is not set. `others` are removed like it."""
    if not _VARIABLE.fullmatch(name):
        raise ConfigError(
            "`key_env` must be the name of an environment variable, such as MY_KEY, and not the key itself. "
            "It must consist of letters, digits and _"
        )
    value = os.environ.get(name, "").strip()
    if not value:
        return Key(None, name, [*_proxy_secrets(), *others])
    if not value.isascii() or not value.isprintable():
        raise ConfigError(
            f"${name} must be one line of ASCII characters, because it is sent in an HTTP header. "
            "It contains a line break or another character. Set it again"
        )
    return Key(value, name, [*_proxy_secrets(), *others])


def refuse_secrets(config: GenerationConfig) -> None:
    """Refuse fields of the body that contain a key, at any depth, because the settings are stored with the run."""
    for path, value in _fields(config.parameters.extra):
        name, is_nested = path[-1], len(path) > 1
        is_named = bool(_SECRET_NAME.search(name))
        if is_named and is_nested:  # a JSON schema may have a property with such a name
            is_named = isinstance(value, str) and len(value) >= SHORTEST
        if is_named or (isinstance(value, str) and _SECRET_VALUE.fullmatch(value.strip())):
            raise ConfigError(
                f"`extra` must not set {'.'.join(path)!r}: it looks like a key, and it is stored with the run. Put the "
                "key into an environment variable and name it in `key_env`"
            )


def _fields(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The fields of a JSON object with their paths, and those of the objects and lists in them."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield (*path, str(name)), inner
        yield from _fields(inner, (*path, str(name)))


def refuse_key_in(config: msgspec.Struct, key: Key, what: str) -> None:
    """Refuse settings that contain a key, because they are stored with the run; `what` names them."""
    settings = msgspec.json.encode(config)
    if key.removed(settings) != settings:
        raise ConfigError(
            f"{what} contain the value of ${key.name}, and they are stored with the run. Remove it from them"
        )


def _proxy_secrets() -> list[str]:
    """The passwords of the proxies of the environment, plain and as they are sent."""
    secrets: list[str] = []
    for address in getproxies().values():
        try:
            parts = urlsplit(address)
        except ValueError:
            continue
        if parts.password:
            user, password = unquote(parts.username or ""), unquote(parts.password)
            secrets += [b64encode(f"{user}:{password}".encode()).decode(), password]
    return secrets
