"""Load a sample's image from a path, a URL, a data URI, bytes or a Pillow image.

Reference:
    Masinter (1998). The "data" URL scheme. RFC 2397.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from os import PathLike
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.media.files import path_of_file_url, read_file
from multimodal_eval.media.pixels import checked_image, decoded
from multimodal_eval.media.policy import MediaPolicy, current_policy

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["image_bytes", "load_image_any"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SLASHED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def load_image_any(source: Any, *, policy: MediaPolicy | None = None) -> Image.Image:
    """The image as eight-bit RGB, upright, with transparency over white.

    `source` is a path, a `file:` URL, a data URI, bytes, a Pillow image, or an http(s) URL if the policy allows it.
    Reads PNG, JPEG, WebP, GIF, BMP and TIFF. Raises `ImageError` with the reason if the image cannot be loaded.
    `policy` defaults to the policy of the context. In a call from Python, that one accepts any path and no http URL.
    """
    rules = policy or current_policy()
    if _is_pillow_image(source):
        return checked_image(source, rules)
    return decoded(image_bytes(source, policy=rules), rules)


def image_bytes(source: Any, *, policy: MediaPolicy | None = None) -> bytes:
    """The raw content of an image, for a checksum. `load_image_any` decodes it without the original source.

    A Pillow image becomes an uncompressed BMP of its RGB pixels: the same bytes for the same pixels.
    """
    rules = policy or current_policy()
    if _is_pillow_image(source):
        buffer = io.BytesIO()
        checked_image(source, rules).save(buffer, format="BMP")
        return buffer.getvalue()
    if isinstance(source, bytes | bytearray | memoryview):
        return _sized(bytes(source), rules)
    if isinstance(source, PathLike):
        return read_file(_text(source), rules)
    if isinstance(source, str):
        return _content_named(source, rules)
    raise ImageError(f"an image must be a path, a URL, bytes or a Pillow image. Got {shorten(source)} instead")


def _text(path: PathLike[Any]) -> str:
    name = path.__fspath__()
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def is_url(source: object) -> bool:
    """Whether a source is an http or https URL."""
    return isinstance(source, str) and _scheme(source) in ("http", "https")


def _scheme(name: str) -> str:
    match = _SCHEME.match(name)
    return match[1].lower() if match else ""


def _content_named(name: str, policy: MediaPolicy) -> bytes:
    """The content that a string names: a URL by its scheme, and a path without one."""
    scheme = _scheme(name)
    if scheme == "data":
        return _decode_data_uri(name, policy.max_bytes)
    if is_url(name):
        return _fetched(name, policy)
    if scheme == "file":
        return read_file(path_of_file_url(name), policy)
    if _SLASHED.match(name):  # "a: b.png" is a path, "ftp://…" is not
        raise ImageError(f"{shorten(name)}: URLs with the scheme {scheme!r} are not opened")
    return read_file(name, policy)


def _fetched(url: str, policy: MediaPolicy) -> bytes:
    if not policy.allow_urls:
        raise ImageError(f"{shorten(url)} is on the network. Allow that with --allow-image-urls")
    from multimodal_eval.media.remote import fetch

    return fetch(url, max_bytes=policy.max_bytes, max_seconds=policy.max_seconds)


def _sized(content: bytes, policy: MediaPolicy) -> bytes:
    if len(content) > policy.max_bytes:
        raise ImageError(f"the image has {len(content):,} bytes, over the limit of {policy.max_bytes:,}")
    return content


def _is_pillow_image(source: object) -> bool:
    """Whether this is a Pillow image. Pillow is imported only if it may be one."""
    if isinstance(source, str | bytes | bytearray | memoryview | PathLike) or not hasattr(source, "getexif"):
        return False
    from PIL import Image

    return isinstance(source, Image.Image)


def _decode_data_uri(uri: str, max_bytes: int) -> bytes:
    """The content of a data URI, base64 or percent-encoded. Its media type is ignored."""
    head, comma, payload = uri.partition(",")
    if not comma:
        raise ImageError(f"{shorten(uri)} is not a data URI: it has no comma")
    if len(payload) > 3 * max_bytes:  # a percent-encoded byte takes three characters
        raise ImageError(f"the data URI has more than {max_bytes:,} bytes")
    content = unquote_to_bytes(payload)
    if head.rstrip().lower().endswith(";base64"):
        try:
            content = base64.b64decode(_padded(b"".join(content.split())), validate=True)
        except binascii.Error as error:
            raise ImageError(f"the data URI's base64 cannot be decoded: {error}") from None
    if len(content) > max_bytes:
        raise ImageError(f"the data URI has more than {max_bytes:,} bytes")
    return content


def _padded(text: bytes) -> bytes:
    """The text with its trailing `=`, which many programs omit."""
    return text + b"=" * (-len(text) % 4)
