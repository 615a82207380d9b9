"""Load a sample's image from a path, a URL, a data URI, bytes or a Pillow image."""

from __future__ import annotations

import io
from os import PathLike
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.media.content import media_bytes
from multimodal_eval.media.pixels import checked_image, decoded
from multimodal_eval.media.policy import MediaPolicy, current_policy

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["image_bytes", "load_image_any"]


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
    content = media_bytes(source, rules, ImageError, "image")
    if content is None:
        raise ImageError(f"an image must be a path, a URL, bytes or a Pillow image. Got {shorten(source)} instead")
    return content


def _is_pillow_image(source: object) -> bool:
    """Whether this is a Pillow image. Pillow is imported only if it may be one."""
    if isinstance(source, str | bytes | bytearray | memoryview | PathLike) or not hasattr(source, "getexif"):
        return False
    from PIL import Image

    return isinstance(source, Image.Image)
