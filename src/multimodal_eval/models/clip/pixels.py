"""The bytes of an image as they are handed to an encoder, also by another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError
from multimodal_eval.models.clip.preprocessing import Preprocessing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class HandOver:
    """Turns an image into bytes of shape (height, width, channels).

    Images of more than `whole_up_to` pixels are resized and cropped by Pillow. Smaller ones are left to the encoder,
    with four bytes per pixel, as Pillow stores them: the fourth has no meaning.
    """

    preprocess: Preprocessing
    whole_up_to: int = 0

    def keeps_whole(self, width: int, height: int) -> bool:
        """Whether the bytes of an RGB image of this size are handed over as they are."""
        try:
            self.preprocess.passes(height, width)
        except ImageError:
            return False
        return width * height <= self.whole_up_to

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
