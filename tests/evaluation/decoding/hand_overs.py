"""What decoding processes do with an image, in tests: defined in a module, so that these processes can import it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from multimodal_eval.models.clip.preprocessing import ClipImageSettings, HandOver, Preprocessing

PREPROCESSING = Preprocessing.of({}, ClipImageSettings)
WHOLE = HandOver(PREPROCESSING, 1 << 20)
CROPPED = HandOver(PREPROCESSING)
FILES = HandOver(PREPROCESSING, 1 << 20, 1 << 20)
FATAL = (13, 13)  # width and height


@dataclass(frozen=True)
class Fatal:
    """Kills its process when it gets an image of the size FATAL, and writes a line for every image."""

    log: Path

    def __call__(self, image):
        with self.log.open("a") as log:
            log.write(f"{os.getpid()}\n")
        if image.size == FATAL:
            os._exit(9)
        return np.asarray(image)


@dataclass(frozen=True)
class Failing:
    """Raises an exception that is not about the image."""

    def __call__(self, image):
        raise MemoryError


def exits(connection, shared):
    """A process that cannot start."""
    os._exit(3)
