"""The bytes of media: from a path, a URL, a data URI or memory, if the policy allows it.

Reference:
    Masinter (1998). The "data" URL scheme. RFC 2397.
"""

from __future__ import annotations

import base64
import binascii
import re
from os import PathLike
from typing import Any
from urllib.parse import unquote_to_bytes

from multimodal_eval.core.errors import MediaError, shorten
from multimodal_eval.media.files import path_of_file_url, read_file
from multimodal_eval.media.policy import MediaPolicy

__all__ = ["is_url", "media_bytes"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SLASHED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def media_bytes(source: Any, policy: MediaPolicy, error: type[MediaError], kind: str) -> bytes | None:
    """The content that a source holds or names; None if it is neither bytes, a path nor a string.

    Raises `error`, with `kind` ("image") in its message.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        if len(source) > policy.max_bytes:
            raise error(f"the {kind} has {len(source):,} bytes, over the limit of {policy.max_bytes:,}")
        return bytes(source)
    if isinstance(source, PathLike):
        return read_file(_text(source), policy, error)
    return _named(source, policy, error) if isinstance(source, str) else None


def is_url(source: object) -> bool:
    """Whether a source is an http or https URL."""
    return isinstance(source, str) and _scheme(source) in ("http", "https")


def _text(path: PathLike[Any]) -> str:
    name = path.__fspath__()
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def _scheme(name: str) -> str:
    match = _SCHEME.match(name)
    return match[1].lower() if match else ""


def _named(name: str, policy: MediaPolicy, error: type[MediaError]) -> bytes:
    """The content that a string names: a URL by its scheme, and a path without one."""
    scheme = _scheme(name)
    if scheme == "data":
        return _decode_data_uri(name, policy.max_bytes, error)
    if is_url(name):
        return _fetched(name, policy, error)
    if scheme == "file":
        return read_file(path_of_file_url(name, error), policy, error)
    if _SLASHED.match(name):  # "a: b.png" is a path, "ftp://…" is not
        raise error(f"{shorten(name)}: URLs with the scheme {scheme!r} are not opened")
    return read_file(name, policy, error)


def _fetched(url: str, policy: MediaPolicy, error: type[MediaError]) -> bytes:
    if not policy.allow_urls:
        raise error(f"{shorten(url)} is on the network. Allow that with --allow-image-urls")
    from multimodal_eval.media.remote import fetch

    try:
        return fetch(url, max_bytes=policy.max_bytes, max_seconds=policy.max_seconds)
    except MediaError as fault:
        raise fault if isinstance(fault, error) else error(str(fault)) from None


def _decode_data_uri(uri: str, max_bytes: int, error: type[MediaError]) -> bytes:
    """The content of a data URI, base64 or percent-encoded. Its media type is ignored."""
    head, comma, payload = uri.partition(",")
    if not comma:
        raise error(f"{shorten(uri)} is not a data URI: it has no comma")
    if len(payload) > 3 * max_bytes:  # a percent-encoded byte takes three characters
        raise error(f"the data URI has more than {max_bytes:,} bytes")
    content = unquote_to_bytes(payload)
    if head.rstrip().lower().endswith(";base64"):
        try:
            content = base64.b64decode(_padded(b"".join(content.split())), validate=True)
        except binascii.Error as fault:
            raise error(f"the data URI's base64 cannot be decoded: {fault}") from None
    if len(content) > max_bytes:
        raise error(f"the data URI has more than {max_bytes:,} bytes")
    return content


def _padded(text: bytes) -> bytes:
    """The text with its trailing `=`, which many programs omit."""
    return text + b"=" * (-len(text) % 4)
