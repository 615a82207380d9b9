"""Pillow's resizing as matrices: what each pixel of the result takes of the pixels of a row or column.

Pillow up to 12 resizes rows first, rounds to whole numbers, and then columns. With these matrices a GPU does the same.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from multimodal_eval.models.clip.preprocessing import BICUBIC, Preprocessing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FIXED_POINT = 1 << 22  # Pillow's weights are whole multiples of 1 / this


def matrices(preprocess: Preprocessing, height: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights for the columns and for the rows of a picture of that size, only those that the crop keeps.

    Shapes (kept height, height) and (kept width, width); a row of zeros is one that the crop adds in black.
    """
    tall, wide = preprocess.resized_to(height, width)
    kept = preprocess.crop or (tall, wide)
    return (
        _kept(height, tall, kept[0], preprocess.resample),
        _kept(width, wide, kept[1], preprocess.resample),
    )


def _kept(size: int, resized: int, kept: int, resample: int) -> NDArray[np.float32]:
    """The weights of one direction, (kept, size). Those of all `resized` pixels could fill any memory."""
    import numpy as np

    found = np.zeros((kept, size), np.float32)
    before = ceil(max(0, kept - resized) / 2)  # black rows before the picture
    first = max(0, (resized - kept) // 2)
    scale = size / resized
    stretch = max(scale, 1.0)
    reach = (2.0 if resample == BICUBIC else 1.0) * stretch
    for place in range(min(kept, resized)):
        centre = (first + place + 0.5) * scale
        low, high = max(0, int(centre - reach + 0.5)), min(size, int(centre + reach + 0.5))
        distances = np.abs((np.arange(low, high) - centre + 0.5) / stretch)
        weights = _cubic(distances) if resample == BICUBIC else np.maximum(0.0, 1.0 - distances)
        weights /= weights.sum()
        found[before + place, low:high] = np.trunc(weights * _FIXED_POINT + np.copysign(0.5, weights)) / _FIXED_POINT
    return found


def _cubic(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic with a = -1/2."""
    import numpy as np

    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return np.where(distance < 1, near, np.where(distance < 2, far, 0.0))
