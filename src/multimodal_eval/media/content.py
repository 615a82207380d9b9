"""The bytes of media: from a path, a URL, a data URI or memory, if the policy allows it.

Reference:
    Masinter (1998). The "data" URL scheme. RFC 2397.
"""

from __future__ import annotations

import base64
import binascii
import re
import stat
from collections.abc import Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from multimodal_eval.core.errors import ImageError, MediaError, shorten
from multimodal_eval.media.policy import OUTSIDE, MediaPolicy

__all__ = ["is_url", "media_bytes"]


# Read the bytes of a media file if the policy allows it.


def path_of_file_url(url: str, error: type[MediaError] = ImageError) -> str:
    """The path in a `file:` URL of this machine. Raises `error` if there is none."""
    try:
        parts = urlsplit(url)
    except ValueError as fault:
        raise error(f"{shorten(url)} is not a file URL: {fault}") from None
    if parts.netloc.lower() not in ("", "localhost"):
        raise error(f"{shorten(url)} names a file on another machine")
    return unquote(parts.path)


def read_file(path: str | Path, policy: MediaPolicy, error: type[MediaError] = ImageError) -> bytes:
    """The content of a regular file. Raises `error` if the file cannot be read or the policy does not allow it."""
    try:
        file = _allowed(Path(path), policy, error)
        status = file.stat()
        # Reading a pipe could block forever, and a device may never end.
        if not stat.S_ISREG(status.st_mode):
            raise error(f"{shorten(str(path))} is not a regular file")
        if status.st_size > policy.max_bytes:
            raise error(_too_large(path, policy))
        with file.open("rb") as stream:
            content = stream.read(status.st_size + 1)  # to allocate a buffer for the limit would take longer
            if len(content) > status.st_size:  # it has grown since the check, or it states no size
                content += stream.read(policy.max_bytes + 1 - len(content))
    except MediaError:
        raise
    except FileNotFoundError:
        roots = [] if policy.root is None or Path(path).is_absolute() else [*policy.roots, policy.root]
        where = f" in {_named(roots)}" if roots else ""
        where += "" if policy.advice == OUTSIDE else f". {policy.advice}"
        raise error(f"there is no file {shorten(str(path))}{where}") from None
    except (OSError, ValueError, RuntimeError) as fault:  # no permission, a NUL in the name, a link loop
        raise error(f"{shorten(str(path))} cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    if len(content) > policy.max_bytes:  # it has grown since the check
        raise error(_too_large(path, policy))
    return content


def _too_large(path: str | Path, policy: MediaPolicy) -> str:
    return f"{shorten(str(path))} is larger than {policy.max_bytes:,} bytes"


def _allowed(path: Path, policy: MediaPolicy, error: type[MediaError]) -> Path:
    """The path with links and `..` resolved. A path outside the roots is refused before the file is accessed."""
    if policy.root is None:
        return path
    roots = _resolved((*policy.roots, policy.root))
    files = [(root / path).resolve() for root in roots]
    if not policy.allow_outside:
        files = [file for file in files if any(file.is_relative_to(root) for root in roots)]
    if not files:
        raise error(f"{shorten(str(path))} is outside {_named(roots)}. {policy.advice}")
    return next((file for file in files[:-1] if file.exists()), files[-1])


@lru_cache(maxsize=16)
def _resolved(roots: tuple[Path, ...]) -> list[Path]:
    """The folders without links. If one of them is moved later, its files count as outside."""
    return [root.resolve() for root in roots]


def _named(roots: Sequence[Path]) -> str:
    """The folder, or the folders, for a message."""
    names = " and ".join(repr(str(root)) for root in dict.fromkeys(roots))
    return f"the folder {names}" if len(set(roots)) == 1 else f"the folders {names}"


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
    return _named_bytes(source, policy, error) if isinstance(source, str) else None


def is_url(source: object) -> bool:
    """Whether a source is an http or https URL."""
    return isinstance(source, str) and _scheme(source) in ("http", "https")


def is_local(source: object) -> bool:
    """Whether a source names a file of this machine, by a path or a `file:` URL."""
    if not isinstance(source, str):
        return False
    return _scheme(source) == "file" or not (source[:5].lower() == "data:" or _SLASHED.match(source))


def _text(path: PathLike[Any]) -> str:
    name = path.__fspath__()
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def _scheme(name: str) -> str:
    match = _SCHEME.match(name)
    return match[1].lower() if match else ""


def _named_bytes(name: str, policy: MediaPolicy, error: type[MediaError]) -> bytes:
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
