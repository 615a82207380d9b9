"""Decode usual JPEG files straight into given memory, with the package simplejpeg (of the extra `[torch]`).

Pillow and simplejpeg use the same library, libjpeg-turbo, so the pixels are the same to the last bit, which is checked
once per process. Pillow reads the header first, under the same policy. Whatever is unusual is left to Pillow: other
colours than RGB, an image to turn upright, and a file with the smallest fault.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from multimodal_eval.media.pixels import header
from multimodal_eval.media.policy import MediaPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

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
