"""The size of an image from its first bytes, without decoding it."""

from __future__ import annotations

import io
import warnings

__all__ = ["image_size"]


def image_size(content: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None if the content is not an image that Pillow knows."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its size: nothing is decoded here
            with Image.open(io.BytesIO(content)) as image:
                return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
