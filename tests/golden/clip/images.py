"""The images for the golden values of CLIP, and the folders of the tiny models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

TINY_CLIP, TINY_LEGACY, TINY_SIGLIP = (
    Path(__file__).parent / name for name in ("tiny-clip", "tiny-clip-legacy", "tiny-siglip")
)


def pixels(number: int, size: tuple[int, int]) -> np.ndarray:
    """Waves and noise, the same on every machine."""
    width, height = size
    rng = np.random.default_rng(number)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    waves = [np.sin(x / (3 + number + c) + c) * np.cos(y / (4 + c) - number) for c in range(3)]
    return np.clip(128 + 80 * np.stack(waves, -1) + rng.integers(-40, 40, (height, width, 3)), 0, 255).astype(np.uint8)


def golden_image(number: int, size: tuple[int, int]) -> Image.Image:
    return Image.fromarray(pixels(number, size))
