"""CLIP's image preprocessing: resize the shortest edge (bicubic), crop the centre, normalise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

DRAWN = 224  # images are drawn at this size and then resized, as in inference
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)


def pixels(image: Image.Image, size: int) -> NDArray[np.uint8]:
    """The resized and cropped image, height x width x 3, before `normalised`."""
    width, height = image.size
    shorter = min(width, height)
    resized = image.convert("RGB").resize(
        (int(size * width / shorter), int(size * height / shorter)), Image.Resampling.BICUBIC
    )
    left, top = (resized.width - size) // 2, (resized.height - size) // 2
    return np.asarray(resized.crop((left, top, left + size, top + size)))


def save_preprocessor(folder: Path, size: int) -> None:
    """preprocessor_config.json for `CLIPImageProcessor`."""
    settings = {
        "image_processor_type": "CLIPImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": size},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": size, "width": size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": MEAN,
        "image_std": DEVIATION,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
