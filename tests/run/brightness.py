"""A metric that opens images."""

from __future__ import annotations

from multimodal_eval import Sample, metric
from multimodal_eval.core.errors import ImageError
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.media.images import load_image_any


@metric("brightness", needs=("image",), bounds=(0, 255), version="1")
def brightness(sample: Sample) -> Score:
    """The red of the first pixel."""
    try:
        return Score(float(load_image_any(sample.image).getpixel((0, 0))[0]))  # type: ignore[index]
    except ImageError as refused:
        return unscored("error", str(refused))
