"""Pictures as a vision model wants them: resized, cropped, rescaled, normalised, as preprocessor_config.json says.

The arithmetic is that of transformers' CLIPImageProcessor and SiglipImageProcessor on Pillow images, to the last bit
with Pillow up to 12. Pillow 13 resizes some tall pictures in another order, with other last digits; here the order is
always that of 12, rows first, so that a score does not depend on Pillow's version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

BILINEAR, BICUBIC = 2, 3  # Pillow's numbers, which the configuration uses
MOST_PIXELS = 40_000_000  # of a picture at any moment on its way: a line of 1 x 15,000 becomes 224 x 3,360,000
CLIP_DEFAULTS: Mapping[str, Any] = {
    "size": {"shortest_edge": 224},
    "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
SIGLIP_DEFAULTS: Mapping[str, Any] = {
    "size": {"height": 224, "width": 224},
    "do_center_crop": False,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
_COMMON: Mapping[str, Any] = {
    "do_resize": True,
    "resample": BICUBIC,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
}


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
    def of(cls, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Preprocessing:
        """Read a preprocessor_config.json; what it leaves out is its family's default."""
        chosen = {**_COMMON, **defaults, **settings}
        shortest, exact = _resizing(chosen["size"]) if chosen["do_resize"] else (None, None)
        if chosen["resample"] not in (BILINEAR, BICUBIC):
            raise ModelError(
                f"pictures are resized bilinear (2) or bicubic (3). Got `resample`: {chosen['resample']!r}"
            )
        normalised = chosen["do_normalize"]
        return cls(
            shortest,
            exact,
            int(chosen["resample"]),
            _height_and_width(chosen["crop_size"]) if chosen["do_center_crop"] else None,
            float(chosen["rescale_factor"]) if chosen["do_rescale"] else None,
            tuple(chosen["image_mean"]) if normalised else None,
            tuple(chosen["image_std"]) if normalised else None,
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


def _resizing(size: Any) -> tuple[int | None, tuple[int, int] | None]:
    if isinstance(size, int):  # as early configurations write it
        return size, None
    if isinstance(size, Mapping) and "shortest_edge" in size and "longest_edge" not in size:
        return int(size["shortest_edge"]), None
    return None, _height_and_width(size)


def _height_and_width(size: Any) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    try:
        return int(size["height"]), int(size["width"])
    except (KeyError, TypeError):
        raise ModelError(f"a picture's size must be a `shortest_edge`, or `height` and `width`. Got {size!r}") from None
