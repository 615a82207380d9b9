"""Pictures as a vision model wants them: resized, cropped, rescaled, normalised, as preprocessor_config.json says.

The arithmetic is that of transformers' CLIPImageProcessor and SiglipImageProcessor on Pillow images, to the last bit
with Pillow up to 12. Pillow 13 resizes some tall pictures in another order, with other last digits; here the order is
always that of 12, rows first, so that a score does not depend on Pillow's version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, TypeVar

import msgspec

from multimodal_eval.core.errors import ImageError, ModelError
from multimodal_eval.models.source import as_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

T = TypeVar("T")

BILINEAR, BICUBIC = 2, 3  # Pillow's numbers, which the configuration uses
MOST_PIXELS = 40_000_000  # of a picture at any moment on its way: a line of 1 x 15,000 becomes 224 x 3,360,000
_FIXED_POINT = 1 << 22  # Pillow's weights are whole multiples of 1 / this


class PictureSettings(msgspec.Struct, frozen=True, kw_only=True):
    """preprocessor_config.json. A setting that is missing has its default; one that is null is switched off."""

    do_resize: bool | None = True
    size: object
    resample: object = BICUBIC
    do_center_crop: bool | None
    crop_size: object = None
    do_rescale: bool | None = True
    rescale_factor: float | None = 1 / 255
    do_normalize: bool | None = True
    image_mean: tuple[float, ...] | None
    image_std: tuple[float, ...] | None


class ClipPictures(PictureSettings, frozen=True, kw_only=True):
    """With the defaults of CLIP."""

    size: object = 224
    crop_size: object = 224
    do_center_crop: bool | None = True
    image_mean: tuple[float, ...] | None = (0.48145466, 0.4578275, 0.40821073)
    image_std: tuple[float, ...] | None = (0.26862954, 0.26130258, 0.27577711)


class SiglipPictures(PictureSettings, frozen=True, kw_only=True):
    """With the defaults of SigLIP."""

    size: object = msgspec.field(default_factory=lambda: {"height": 224, "width": 224})
    do_center_crop: bool | None = False
    image_mean: tuple[float, ...] | None = (0.5, 0.5, 0.5)
    image_std: tuple[float, ...] | None = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Preprocessing:
    """One model's way from a picture to numbers."""

    shortest_edge: int | None  # or `exact`, or neither: no resizing
    exact: tuple[int, int] | None  # height, width
    resample: int
    crop: tuple[int, int] | None  # height, width
    scale: float | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    @classmethod
    def of(cls, settings: object, family: type[PictureSettings]) -> Preprocessing:
        """Read a preprocessor_config.json; what it leaves out is its family's default."""
        chosen = as_record(settings, family, "preprocessor_config.json")
        shortest, exact = _resizing(chosen.size) if chosen.do_resize else (None, None)
        if chosen.resample not in (BILINEAR, BICUBIC):
            raise ModelError(f"pictures are resized bilinear (2) or bicubic (3). Got `resample`: {chosen.resample!r}")
        return cls(
            shortest,
            exact,
            BILINEAR if chosen.resample == BILINEAR else BICUBIC,
            _height_and_width(chosen.crop_size) if chosen.do_center_crop else None,
            _given(chosen.rescale_factor, "rescale_factor") if chosen.do_rescale else None,
            _given(chosen.image_mean, "image_mean") if chosen.do_normalize else None,
            _given(chosen.image_std, "image_std") if chosen.do_normalize else None,
        )

    def resized_to(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of a picture of that size after resizing."""
        if self.exact is not None:
            return self.exact
        if self.shortest_edge is None:
            return height, width
        longer = int(self.shortest_edge * max(height, width) / min(height, width))
        return (longer, self.shortest_edge) if width <= height else (self.shortest_edge, longer)

    def passes(self, height: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Width and height after the rows are resized, and after the columns are; ImageError where that is too much."""
        tall, wide = self.resized_to(height, width)
        if wide * max(height, tall) > MOST_PIXELS:
            raise ImageError(
                f"a picture of {width} x {height} is too long and thin: it would have {wide} x {max(height, tall)} "
                f"pixels when it is resized, over the limit of {MOST_PIXELS:,}"
            )
        return (wide, height), (wide, tall)

    def __call__(self, image: Image.Image) -> NDArray[np.float32]:
        """One picture as (channels, height, width)."""
        import numpy as np

        image = image.convert("RGB")
        for size in self.passes(image.height, image.width):
            if size != image.size:
                image = image.resize(size, self.resample)
        pixels = np.asarray(image)
        if self.crop is not None:
            pixels = centre(pixels, *self.crop)
        # In float64 and then rounded, and the table of 256 values is shorter than the picture.
        values = np.arange(256, dtype=np.float64)
        table = (values if self.scale is None else values * self.scale).astype(np.float32)
        if self.mean is None or self.std is None:
            return np.ascontiguousarray(table[pixels].transpose(2, 0, 1))
        mean, std = (np.array(values, np.float32)[:, None] for values in (self.mean, self.std))
        tables = (table - mean) / std
        return np.stack([tables[channel][pixels[..., channel]] for channel in range(3)])


def centre(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The middle of a picture of (height, width, channels); a smaller one is set amid black."""
    import numpy as np

    above, left = (-(-max(0, wanted - has) // 2) for wanted, has in zip((height, width), pixels.shape, strict=False))
    below = max(0, height - pixels.shape[0]) - above
    right = max(0, width - pixels.shape[1]) - left
    if above or below or left or right:
        pixels = np.pad(pixels, ((above, below), (left, right), (0, 0)))
    top, first = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[top : top + height, first : first + width]


def _resizing(size: object) -> tuple[int | None, tuple[int, int] | None]:
    if isinstance(size, int):  # as early configurations write it
        return size, None
    if isinstance(size, Mapping) and "shortest_edge" in size and "longest_edge" not in size:
        return int(size["shortest_edge"]), None
    return None, _height_and_width(size)


def _height_and_width(size: object) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    if isinstance(size, Mapping):
        height, width = size.get("height"), size.get("width")
        if isinstance(height, int | float) and isinstance(width, int | float):
            return int(height), int(width)
    raise ModelError(f"a picture's size must be a `shortest_edge`, or `height` and `width`. Got {size!r}")


def _given(value: T | None, name: str) -> T:
    if value is None:
        raise ModelError(f"preprocessor_config.json: the setting {name!r} is needed. Got null instead.")
    return value


def matrices(preprocess: Preprocessing, height: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pillow's resizing as matrices: weights for the columns and for the rows of a picture, only those the crop keeps.

    Pillow up to 12 resizes rows first, rounds to whole numbers, and then columns; with these a GPU does the same.
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

    kept_weights = np.zeros((kept, size), np.float32)
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
        rounded = np.trunc(weights * _FIXED_POINT + np.copysign(0.5, weights))
        kept_weights[before + place, low:high] = rounded / _FIXED_POINT
    return kept_weights


def _cubic(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic with a = -1/2."""
    import numpy as np

    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return np.where(distance < 1, near, np.where(distance < 2, far, 0.0))
