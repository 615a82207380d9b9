"""Resize, crop, rescale and normalise images as specified in preprocessor_config.json.

The result equals that of transformers' CLIPImageProcessor and SiglipImageProcessor on Pillow images, to the last bit
with Pillow up to 12. Pillow 13 resizes some tall images in another order, which changes the last digits. Here the order
is always that of Pillow 12, rows first, so that a score does not depend on Pillow's version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from multimodal_eval.core.errors import ImageError, ModelError
from multimodal_eval.models.source import as_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    Pixels = NDArray[np.uint8]


T = TypeVar("T")

BILINEAR, BICUBIC = 2, 3  # Pillow's constants, which the configuration uses
MAX_PIXELS = 40_000_000  # of an image at any step: a line of 1 x 15,000 would become 224 x 3,360,000
_FIXED_POINT = 1 << 22  # Pillow's weights are whole multiples of 1 / this


class ImageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """preprocessor_config.json. A missing setting has its default; null switches a setting off."""

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


class ClipImageSettings(ImageSettings, frozen=True, kw_only=True):
    """The settings with the defaults of CLIP."""

    size: object = 224
    crop_size: object = 224
    do_center_crop: bool | None = True
    image_mean: tuple[float, ...] | None = (0.48145466, 0.4578275, 0.40821073)
    image_std: tuple[float, ...] | None = (0.26862954, 0.26130258, 0.27577711)


class SiglipImageSettings(ImageSettings, frozen=True, kw_only=True):
    """The settings with the defaults of SigLIP."""

    size: object = msgspec.field(default_factory=lambda: {"height": 224, "width": 224})
    do_center_crop: bool | None = False
    image_mean: tuple[float, ...] | None = (0.5, 0.5, 0.5)
    image_std: tuple[float, ...] | None = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of one model: from an image to an array."""

    shortest_edge: int | None  # or `exact`, or neither: no resizing
    exact: tuple[int, int] | None  # height, width
    resample: int
    crop: tuple[int, int] | None  # height, width
    scale: float | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    @classmethod
    def of(cls, settings: object, family: type[ImageSettings]) -> Preprocessing:
        """Read the content of a preprocessor_config.json. Missing settings have the defaults of `family`."""
        config = as_record(settings, family, "preprocessor_config.json")
        shortest, exact = _resizing(config.size) if config.do_resize else (None, None)
        if config.resample not in (BILINEAR, BICUBIC):
            raise ModelError(f"`resample` must be 2 (bilinear) or 3 (bicubic). Got {config.resample!r} instead.")
        return cls(
            shortest,
            exact,
            BILINEAR if config.resample == BILINEAR else BICUBIC,
            _height_and_width(config.crop_size) if config.do_center_crop else None,
            _required(config.rescale_factor, "rescale_factor") if config.do_rescale else None,
            _required(config.image_mean, "image_mean") if config.do_normalize else None,
            _required(config.image_std, "image_std") if config.do_normalize else None,
        )

    def resized_to(self, height: int, width: int) -> tuple[int, int]:
        """Height and width after an image of the given size is resized."""
        if self.exact is not None:
            return self.exact
        if self.shortest_edge is None:
            return height, width
        longer = int(self.shortest_edge * max(height, width) / min(height, width))
        return (longer, self.shortest_edge) if width <= height else (self.shortest_edge, longer)

    def passes(self, height: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Width and height after each resizing pass, rows first. ImageError if a pass exceeds the pixel limit."""
        tall, wide = self.resized_to(height, width)
        if wide * max(height, tall) > MAX_PIXELS:
            raise ImageError(
                f"an image of {width} x {height} is too long and thin: to resize it would take "
                f"{wide} x {max(height, tall)} pixels, over the limit of {MAX_PIXELS:,}"
            )
        return (wide, height), (wide, tall)

    def __call__(self, image: Image.Image) -> NDArray[np.float32]:
        """The image as an array of shape (channels, height, width)."""
        return self.normalised(self.cropped(image))

    def cropped(self, image: Image.Image) -> NDArray[np.uint8]:
        """The image resized and cropped, as bytes of shape (height, width, channels)."""
        import numpy as np

        image = image if image.mode == "RGB" else image.convert("RGB")
        for size in self.passes(image.height, image.width):
            if size != image.size:
                image = image.resize(size, self.resample)
        pixels = np.asarray(image)
        return pixels if self.crop is None else centre(pixels, *self.crop)

    def normalised(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The bytes of an image, rescaled and normalised, as an array of shape (channels, height, width)."""
        import numpy as np

        # Computed in float64, then rounded, for the 256 possible values instead of for every pixel.
        values = np.arange(256, dtype=np.float64)
        table = (values if self.scale is None else values * self.scale).astype(np.float32)
        if self.mean is None or self.std is None:
            return np.ascontiguousarray(table[pixels].transpose(2, 0, 1))
        mean, std = (np.array(values, np.float32)[:, None] for values in (self.mean, self.std))
        tables = (table - mean) / std
        return np.stack([tables[channel][pixels[..., channel]] for channel in range(3)])


def centre(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The centre of an image of shape (height, width, channels). A smaller image is padded with black."""
    import numpy as np

    above, left = (-(-max(0, target - size) // 2) for target, size in zip((height, width), pixels.shape, strict=False))
    below = max(0, height - pixels.shape[0]) - above
    right = max(0, width - pixels.shape[1]) - left
    if above or below or left or right:
        pixels = np.pad(pixels, ((above, below), (left, right), (0, 0)))
    top, first = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[top : top + height, first : first + width]


def _resizing(size: object) -> tuple[int | None, tuple[int, int] | None]:
    if isinstance(size, int):  # as in early configurations
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
    raise ModelError(f"an image size must have `shortest_edge`, or `height` and `width`. Got {size!r} instead.")


def _required(value: T | None, name: str) -> T:
    if value is None:
        raise ModelError(f"preprocessor_config.json: the setting {name!r} is required. Got null instead.")
    return value


def matrices(preprocess: Preprocessing, height: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pillow's resizing as matrices: weights for an image's columns and for its rows, limited to the crop.

    Pillow up to 12 resizes rows first, rounds to integers, and then resizes columns. With these matrices a GPU does the
    same. The shapes are (cropped height, height) and (cropped width, width). A row of zeros is black padding.
    """
    tall, wide = preprocess.resized_to(height, width)
    cropped = preprocess.crop or (tall, wide)
    return (
        _weights(height, tall, cropped[0], preprocess.resample),
        _weights(width, wide, cropped[1], preprocess.resample),
    )


def _weights(size: int, resized: int, cropped: int, resample: int) -> NDArray[np.float32]:
    """The weights of one direction, of shape (cropped, size). Those of all `resized` pixels may not fit into memory."""
    import numpy as np

    matrix = np.zeros((cropped, size), np.float32)
    before = ceil(max(0, cropped - resized) / 2)  # black rows before the image
    first = max(0, (resized - cropped) // 2)
    scale = size / resized
    stretch = max(scale, 1.0)
    reach = (2.0 if resample == BICUBIC else 1.0) * stretch
    for row in range(min(cropped, resized)):
        centre = (first + row + 0.5) * scale
        low, high = max(0, int(centre - reach + 0.5)), min(size, int(centre + reach + 0.5))
        distances = np.abs((np.arange(low, high) - centre + 0.5) / stretch)
        weights = _cubic(distances) if resample == BICUBIC else np.maximum(0.0, 1.0 - distances)
        weights /= weights.sum()
        rounded = np.trunc(weights * _FIXED_POINT + np.copysign(0.5, weights))
        matrix[before + row, low:high] = rounded / _FIXED_POINT
    return matrix


def _cubic(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic with a = -1/2."""
    import numpy as np

    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return np.where(distance < 1, near, np.where(distance < 2, far, 0.0))


# The bytes of an image as they are handed to an encoder, also by another process.


@dataclass(frozen=True)
class HandOver:
    """Turns an image into bytes of shape (height, width, channels).

    Images of more than `whole_up_to` pixels are resized and cropped by Pillow. Smaller ones are left to the encoder,
    with four bytes per pixel, as Pillow stores them: the fourth has no meaning. Usual JPEG files of up to `file_up_to`
    pixels are not decoded at all: the encoder gets the bytes of the file.
    """

    preprocess: Preprocessing
    whole_up_to: int = 0
    file_up_to: int = 0

    def keeps_whole(self, width: int, height: int) -> bool:
        """Whether the bytes of an RGB image of this size are handed over as they are."""
        return self._fits(width, height, self.whole_up_to)

    def keeps_file(self, width: int, height: int) -> bool:
        """Whether a usual JPEG file of this size is handed over as it is."""
        return self._fits(width, height, self.file_up_to)

    def _fits(self, width: int, height: int, most: int) -> bool:
        try:
            self.preprocess.passes(height, width)
        except ImageError:
            return False
        return width * height <= most

    def __call__(self, image: Image.Image) -> Pixels:
        """The bytes; ImageError if the image cannot be resized."""
        self.preprocess.passes(image.height, image.width)
        if image.height * image.width > self.whole_up_to:
            return self.preprocess.cropped(image)
        return _stored_bytes(image if image.mode == "RGB" else image.convert("RGB"))


@dataclass(frozen=True, eq=False)
class Decoding:
    """How other processes prepare the images of an encoder, and how this one takes over the result.

    `hand_over` is sent to the processes. `receive` copies the bytes of equally large images, of shape (images, height,
    width, channels), out of memory that is used again, and `pin` is told once about this memory. `cache` gives the file
    of the vectors whose images need not be decoded, if there is one.
    """

    hand_over: HandOver
    receive: Callable[[Pixels], Sequence[Any]]
    cache: Callable[[], Path | None]
    pin: Callable[[Pixels], None] | None = None


def _stored_bytes(image: Image.Image) -> Pixels:
    """The memory of an RGB image, without a copy. To pack three bytes per pixel would take a tenth of the decoding."""
    import numpy as np
    import pyarrow as pa

    try:
        memory = pa.array(image).values.buffers()[1]
    except ValueError:  # the rows are in several blocks
        return np.asarray(image.convert("RGBX"))
    return np.frombuffer(memory, np.uint8).reshape(image.height, image.width, 4)
