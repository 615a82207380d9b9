"""Any picture as eight-bit RGB, where that is well defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ImageError

if TYPE_CHECKING:
    from PIL import Image

_ORIENTATION = 0x0112  # the EXIF tag
_PLAIN = ("1", "L", "RGB", "RGBX", "CMYK", "YCbCr", "HSV", "P")
_WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
_SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N")


def as_rgb(image: Image.Image) -> Image.Image:
    """The picture upright and in RGB: transparency over white, 16-bit grey divided by 257.

    CMYK is converted by (255 - ink)(255 - black) / 255; colour profiles are not applied.
    """
    image.load()
    return _colours(_upright(image))


def _colours(image: Image.Image) -> Image.Image:
    # Pillow before 11 opens 16-bit grey PNG files as 32-bit pictures; their values are the same.
    if image.mode in _SIXTEEN_BIT or (image.mode == "I" and image.format == "PNG"):
        return _from_sixteen_bits(image)
    if image.mode in _PLAIN or image.mode in _WITH_ALPHA:
        return _over_white(image) if image.has_transparency_data else image.convert("RGB")
    raise ImageError(f"a picture of mode {image.mode!r} has no well-defined conversion to RGB")


def _upright(image: Image.Image) -> Image.Image:
    """Turned as its EXIF orientation says; one that cannot be read says nothing."""
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
        turn = turns.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # noqa: BLE001 - damaged EXIF data raise whatever their parser ran into
        return image
    if turn is None:
        return image
    turned = image.transpose(turn)
    turned.format = image.format
    return turned


def _over_white(image: Image.Image) -> Image.Image:
    from PIL import Image

    with_alpha = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
    white = Image.new("RGBA", with_alpha.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, with_alpha).convert("RGB")


def _from_sixteen_bits(image: Image.Image) -> Image.Image:
    """round(value / 257): 0 stays 0 and 65,535 becomes 255. Pillow's own conversion would cut at 255."""
    import numpy as np
    from PIL import Image

    values = np.asarray(image).astype(np.uint32)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        values[values == transparent] = 65_535
    grey = ((values + 128) // 257).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
