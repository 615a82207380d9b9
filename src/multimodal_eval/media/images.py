"""Pictures from wherever a sample names them, checked before they are decoded, as eight-bit RGB."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.media.data_uris import decode_data_uri
from multimodal_eval.media.files import path_of_file_url, read_file
from multimodal_eval.media.pixels import as_rgb
from multimodal_eval.media.policy import MediaPolicy, current_policy
from multimodal_eval.media.webp import webp_size

if TYPE_CHECKING:
    from PIL import Image, ImageFile

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SLASHED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

# Format, how such a file begins, and the class that reads it. Anything else is not opened at all.
_FORMATS = (
    ("PNG", re.compile(rb"\x89PNG\r\n\x1a\n"), "PngImagePlugin", "PngImageFile"),
    ("JPEG", re.compile(rb"\xff\xd8\xff"), "JpegImagePlugin", "JpegImageFile"),
    ("WebP", re.compile(rb"RIFF....WEBP", re.DOTALL), "WebPImagePlugin", "WebPImageFile"),
    ("GIF", re.compile(rb"GIF8[79]a"), "GifImagePlugin", "GifImageFile"),
    ("BMP", re.compile(rb"BM"), "BmpImagePlugin", "BmpImageFile"),
    ("TIFF", re.compile(rb"II[*+]\0|MM\0[*+]"), "TiffImagePlugin", "TiffImageFile"),
)


def load_image_any(source: Any, *, policy: MediaPolicy | None = None) -> Image.Image:
    """The picture as eight-bit RGB, upright, transparency over white.

    `source` is a path, a `file:` URL, a data URI, bytes, a Pillow image, or an http(s) URL where the policy allows it.
    PNG, JPEG, WebP, GIF, BMP and TIFF are read. Raises `ImageError` with the reason where there is no such picture.
    `policy` defaults to the context's, which in a call from Python takes any path and no URL.
    """
    rules = policy or current_policy()
    if _is_picture(source):
        return _checked_picture(source, rules)
    return _decoded(image_bytes(source, policy=rules), rules)


def image_bytes(source: Any, *, policy: MediaPolicy | None = None) -> bytes:
    """The raw content of a picture, for a checksum; given to `load_image_any`, it is decoded without its source.

    A Pillow image has no content of its own: it becomes an uncompressed BMP of its RGB pixels, the same bytes for
    the same pixels.
    """
    rules = policy or current_policy()
    if _is_picture(source):
        buffer = io.BytesIO()
        _checked_picture(source, rules).save(buffer, format="BMP")
        return buffer.getvalue()
    if isinstance(source, bytes | bytearray | memoryview):
        return _sized(bytes(source), rules)
    if isinstance(source, PathLike):
        return read_file(_text(source), rules)
    if isinstance(source, str):
        return _content_named(source, rules)
    raise ImageError(f"a picture must be a path, an address, bytes or a Pillow image. Got {shorten(source)} instead")


def _text(path: PathLike[Any]) -> str:
    name = path.__fspath__()
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def is_url(source: object) -> bool:
    """Whether a source names a picture on the network."""
    return isinstance(source, str) and _scheme(source) in ("http", "https")


def _scheme(name: str) -> str:
    found = _SCHEME.match(name)
    return found[1].lower() if found else ""


def _content_named(name: str, policy: MediaPolicy) -> bytes:
    """What a text names: its scheme tells, and without one it is a path."""
    scheme = _scheme(name)
    if scheme == "data":
        return decode_data_uri(name, policy.max_bytes)
    if is_url(name):
        return _fetched(name, policy)
    if scheme == "file":
        return read_file(path_of_file_url(name), policy)
    if _SLASHED.match(name):  # "a: b.png" is a path, "ftp://…" is not
        raise ImageError(f"{shorten(name)}: addresses of the kind {scheme!r} are not opened")
    return read_file(name, policy)


def _fetched(url: str, policy: MediaPolicy) -> bytes:
    if not policy.allow_urls:
        raise ImageError(f"{shorten(url)} is on the network. Allow that with --allow-image-urls")
    from multimodal_eval.media.remote import fetch

    return fetch(url, max_bytes=policy.max_bytes, max_seconds=policy.max_seconds)


def _sized(content: bytes, policy: MediaPolicy) -> bytes:
    if len(content) > policy.max_bytes:
        raise ImageError(f"a picture of {len(content):,} bytes, over the limit of {policy.max_bytes:,}")
    return content


def _is_picture(source: object) -> bool:
    """Whether this is a Pillow image, without importing Pillow for everything that is not."""
    if isinstance(source, str | bytes | bytearray | memoryview | PathLike) or not hasattr(source, "getexif"):
        return False
    from PIL import Image

    return isinstance(source, Image.Image)


def _checked_picture(image: Image.Image, policy: MediaPolicy) -> Image.Image:
    """A Pillow image is taken as it stands, at the frame where it stands."""
    _refuse_size(image.size, policy)
    with _decoding("the picture"):
        return as_rgb(image)


def _decoded(content: bytes, policy: MediaPolicy) -> Image.Image:
    if not content:
        raise ImageError("the picture is empty: 0 bytes")
    name, reader = _reader(content)
    if name == "WebP":  # its reader reserves the whole canvas when it is made
        _refuse_size(webp_size(content), policy)
    with _decoding(f"the {name} picture"), _silent(name):
        image: ImageFile.ImageFile = reader(io.BytesIO(content))  # reads the header only
        _refuse_size(image.size, policy)
        if getattr(image, "is_animated", False):
            what = "pages" if name == "TIFF" else "frames"
            raise ImageError(f"the {name} picture has several {what}, and which of them is meant is not known")
        _refuse_size(image.size, policy)  # a GIF's second look may find it larger than its header said
        return as_rgb(image)


def _reader(content: bytes) -> tuple[str, Any]:
    for name, beginning, module, kind in _FORMATS:
        if beginning.match(content):
            return name, getattr(import_module(f"PIL.{module}"), kind)
    known = ", ".join(name for name, *_ in _FORMATS)
    raise ImageError(f"the content is no {known} picture. It begins with {shorten(content[:16])}")


def _refuse_size(size: tuple[int, int], policy: MediaPolicy) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise ImageError(f"the picture has no pixels: {width} x {height}")
    if width * height > policy.max_pixels:
        raise ImageError(f"the picture has {width} x {height} pixels, over the limit of {policy.max_pixels:,}")


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Whatever a decoder raises means that the picture cannot be decoded."""
    try:
        yield
    except ImageError:
        raise
    except Exception as error:  # noqa: BLE001 - decoders of damaged files raise anything
        raise ImageError(f"{what} cannot be decoded: {type(error).__name__}: {error}") from None


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Pillow's readers of GIF and TIFF warn of large pictures by themselves; the limit here is the policy's.

    The others warn only in `Image.open`, which is not used: changing the filters is not safe among threads
    before Python 3.14, and so is left to the two formats that need it.
    """
    if name not in ("GIF", "TIFF"):
        yield
        return
    from PIL.Image import DecompressionBombWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompressionBombWarning)
        yield
