"""Load a sample's image from a path, a URL, a data URI, bytes or a Pillow image."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.media.content import media_bytes
from multimodal_eval.media.policy import MediaPolicy, current_policy, fault_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image, ImageFile

    Pixels = NDArray[np.uint8]

__all__ = ["image_bytes", "load_image_any"]


# Decode an image to eight-bit RGB. It is checked first, and refused if its conversion to RGB is not well defined.
#
# Reference:
#     Google. WebP Container Specification (RFC 9649), sections 2.5 to 2.7 (the size in the header).

# Format, first bytes, and the class that reads it. No other content is opened.
_FORMATS = (
    ("PNG", re.compile(rb"\x89PNG\r\n\x1a\n"), "PngImagePlugin", "PngImageFile"),
    ("JPEG", re.compile(rb"\xff\xd8\xff"), "JpegImagePlugin", "JpegImageFile"),
    ("WebP", re.compile(rb"RIFF....WEBP", re.DOTALL), "WebPImagePlugin", "WebPImageFile"),
    ("GIF", re.compile(rb"GIF8[79]a"), "GifImagePlugin", "GifImageFile"),
    ("BMP", re.compile(rb"BM"), "BmpImagePlugin", "BmpImageFile"),
    ("TIFF", re.compile(rb"II[*+]\0|MM\0[*+]"), "TiffImagePlugin", "TiffImageFile"),
)
_ORIENTATION = 0x0112  # the EXIF tag
_PLAIN = ("1", "L", "RGB", "RGBX", "CMYK", "YCbCr", "HSV", "P")
_WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
_SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N")


def checked_image(image: Image.Image, policy: MediaPolicy) -> Image.Image:
    """The current frame of a Pillow image as eight-bit RGB."""
    _refuse_size(image.size, policy)
    with _decoding("the image"):
        rgb = _as_rgb(image)
        return rgb.copy() if rgb is image else rgb


def decoded(content: bytes, policy: MediaPolicy) -> Image.Image:
    """The content of an image file as eight-bit RGB. Raises `ImageError` with the reason if that is not possible."""
    with _opened(content, policy) as (_, image):
        return _as_rgb(image)


@dataclass(frozen=True, slots=True)
class Header:
    """What an image file says about itself: PNG, JPEG, WebP, GIF, BMP or TIFF, and how its pixels are stored."""

    format: str
    size: tuple[int, int]  # width and height, before it is turned upright
    mode: str  # Pillow's name of the kind of pixels
    is_upright: bool


def header(content: bytes, policy: MediaPolicy) -> Header:
    """The header of an image file, which is checked but not decoded. Raises `ImageError` as `decoded` does."""
    with _opened(content, policy) as (name, image):
        return Header(name, image.size, image.mode, _turn(image) is None)


@contextmanager
def _opened(content: bytes, policy: MediaPolicy) -> Iterator[tuple[str, ImageFile.ImageFile]]:
    """The format of an image file, and the file after the checks of its header."""
    if not content:
        raise ImageError("the image is empty: 0 bytes")
    name, reader = _reader(content)
    if name == "WebP":  # its reader allocates the whole canvas when it is created
        _refuse_size(_webp_size(content), policy)
    with _decoding(f"the {name} image"), _silent(name):
        image: ImageFile.ImageFile = reader(io.BytesIO(content))  # reads the header only
        _refuse_size(image.size, policy)
        if getattr(image, "is_animated", False):
            what = "pages" if name == "TIFF" else "frames"
            raise ImageError(f"the {name} image has several {what}, and it is unclear which one is meant")
        _refuse_size(image.size, policy)  # counting the frames of a GIF may have enlarged it
        yield name, image


def _reader(content: bytes) -> tuple[str, Any]:
    for name, prefix, module, reader in _FORMATS:
        if prefix.match(content):
            return name, getattr(import_module(f"PIL.{module}"), reader)
    known = ", ".join(name for name, *_ in _FORMATS)
    raise ImageError(f"the content is in none of the image formats {known}")


def _refuse_size(size: tuple[int, int], policy: MediaPolicy) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise ImageError(f"the image has no pixels: {width} x {height}")
    if width * height > policy.max_pixels:
        raise ImageError(f"the image has {width} x {height} pixels, over the limit of {policy.max_pixels:,}")


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Turn any exception of a decoder into an `ImageError`."""
    try:
        yield
    except ImageError:
        raise
    except Exception as error:  # noqa: BLE001 - decoders of damaged files raise anything
        raise ImageError(f"{what} cannot be decoded: {fault_text(error)}") from None


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Silence the warning of Pillow's GIF and TIFF readers about large images: the policy sets the limit.

    The other readers warn only in `Image.open`, which is not used. Changing the warning filters is not thread-safe
    before Python 3.14, so this is limited to the two formats that need it.
    """
    if name not in ("GIF", "TIFF"):
        yield
        return
    from PIL.Image import DecompressionBombWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompressionBombWarning)
        yield


def _webp_size(content: bytes) -> tuple[int, int]:
    """Width and height from the first chunk: VP8X (extended), VP8L (lossless) or VP8 (lossy)."""
    kind, payload = content[12:16], content[20:30]
    if kind == b"VP8X" and len(payload) == 10:
        return _little_endian(payload[4:7]) + 1, _little_endian(payload[7:10]) + 1
    if kind == b"VP8L" and len(payload) >= 5 and payload[0] == 0x2F:
        bits = _little_endian(payload[1:5])  # 14 bits each, minus 1
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(payload) == 10 and payload[3:6] == b"\x9d\x01\x2a":
        return _little_endian(payload[6:8]) & 0x3FFF, _little_endian(payload[8:10]) & 0x3FFF
    raise ImageError("the WebP image has no readable header")


def _little_endian(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _as_rgb(image: Image.Image) -> Image.Image:
    """The image upright and in RGB: transparency over white, 16-bit grey divided by 257.

    CMYK is converted by (255 - ink)(255 - black) / 255; colour profiles are not applied.
    """
    image.load()
    return _colours(_upright(image))


def _colours(image: Image.Image) -> Image.Image:
    # Pillow before 11 opens 16-bit grey PNG files as 32-bit images with the same values.
    if image.mode in _SIXTEEN_BIT or (image.mode == "I" and image.format == "PNG"):
        return _from_sixteen_bits(image)
    if image.mode in _PLAIN or image.mode in _WITH_ALPHA:
        if image.has_transparency_data:
            return _over_white(image)
        return image if image.mode == "RGB" else image.convert("RGB")
    raise ImageError(f"an image of mode {image.mode!r} has no well-defined conversion to RGB")


def _upright(image: Image.Image) -> Image.Image:
    """The image turned by its EXIF orientation."""
    turn = _turn(image)
    if turn is None:
        return image
    turned = image.transpose(turn)
    turned.format = image.format
    return turned


def _turn(image: Image.Image) -> Image.Transpose | None:
    """How the EXIF orientation turns an image. Unreadable EXIF data are ignored."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    try:
        return turns.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # noqa: BLE001 - damaged EXIF data can raise anything
        return None


def _over_white(image: Image.Image) -> Image.Image:
    from PIL import Image

    with_alpha = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
    white = Image.new("RGBA", with_alpha.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, with_alpha).convert("RGB")


def _from_sixteen_bits(image: Image.Image) -> Image.Image:
    """round(value / 257): 0 stays 0 and 65,535 becomes 255. Pillow's own conversion would clip at 255."""
    import numpy as np
    from PIL import Image

    values = np.asarray(image).astype(np.uint32)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        values[values == transparent] = 65_535
    grey = ((values + 128) // 257).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")


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


# Decode usual JPEG files straight into given memory, with the package simplejpeg (of the extra `[torch]`).
#
# Pillow and simplejpeg use the same library, libjpeg-turbo, so the pixels are the same to the last bit, which is
# checked once per process. Pillow reads the header first, under the same policy. Whatever is unusual is left to
# Pillow: other colours than RGB, an image to turn upright, and a file with the smallest fault.

_START = b"\xff\xd8\xff"
_CHANNELS = 4  # red, green, blue, and a byte without meaning


def decoded_into(
    memory: Pixels, content: bytes, policy: MediaPolicy, is_wanted: Callable[[int, int], bool]
) -> Pixels | None:
    """The pixels of a JPEG file at the start of `memory`, as (height, width, 4); None if Pillow has to decode it.

    `is_wanted` is asked with width and height before anything is decoded. Raises `ImageError` if the header is refused,
    with the reason that `pixels.decoded` gives.
    """
    decode = _decoder() if content.startswith(_START) else None
    if decode is None:
        return None
    head = header(content, policy)
    width, height = head.size
    size = width * height * _CHANNELS
    if head.mode != "RGB" or not head.is_upright or size > len(memory) or not is_wanted(width, height):
        return None
    try:
        pixels = decode(content, "RGBX", buffer=memory[:size])
    except Exception:  # noqa: BLE001 - Pillow says what is wrong, or decodes it anyway
        return None
    return pixels if pixels.shape == (height, width, _CHANNELS) else None


_END = b"\xff\xd9"
_SAMPLINGS = ({(1, 1)}, {(2, 1)}, {(2, 2)})  # of the brightness; the colours have (1, 1)


def usual_jpeg(content: bytes, policy: MediaPolicy, is_wanted: Callable[[int, int], bool]) -> bytes | None:
    """The content, if it is a JPEG file that a GPU decodes as Pillow does up to rounding: baseline, complete, upright.

    A GPU decodes half a file without a word, and knows nothing of colours other than YCbCr. Raises `ImageError` if the
    header is refused.
    """
    if not content.startswith(_START) or not content.endswith(_END):
        return None
    with _opened(content, policy) as (_, image):
        parts: Any = getattr(image, "layer", ())  # (number, horizontal and vertical sampling, table) of each colour
        is_usual = (
            image.mode == "RGB"
            and [part[0] for part in parts] == [1, 2, 3]
            and {part[1:3] for part in parts[:1]} in _SAMPLINGS
            and {part[1:3] for part in parts[1:]} == {(1, 1)}
            and not image.info.get("progressive")
            and image.info.get("adobe_transform", 1) == 1
            and _turn(image) is None
        )
        return content if is_usual and is_wanted(*image.size) else None


@cache
def _decoder() -> Callable[..., Any] | None:
    """The function of simplejpeg; None if it is not installed or if Pillow has another library with other pixels."""
    try:
        from simplejpeg import decode_jpeg
    except ImportError:
        return None
    return decode_jpeg if is_same_as_pillow(decode_jpeg) else None


def is_same_as_pillow(decode: Callable[..., Any]) -> bool:
    """Whether a decoder gives Pillow's pixels for small JPEG files of every usual kind."""
    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 256, (9, 12, 3)).astype(np.uint8)
    image = Image.fromarray(noise).resize((75, 53))
    for subsampling in (0, 1, 2):  # 4:4:4, 4:2:2, 4:2:0
        for progressive in (False, True):
            file = io.BytesIO()
            image.save(file, "JPEG", subsampling=subsampling, progressive=progressive, quality=85)
            try:
                pixels = decode(file.getvalue(), "RGBX")
            except Exception:  # noqa: BLE001 - a version with another interface
                return False
            if not np.array_equal(pixels[..., :3], np.asarray(Image.open(file))):
                return False
    return True
