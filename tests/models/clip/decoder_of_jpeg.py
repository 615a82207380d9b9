"""Files for a decoder on the GPU, and one that works without a GPU."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from tests.golden.clip.images import golden_image

UNREADABLE = b"unreadable by the decoder"
REFUSED = b"refused by the decoder"


class ByPillow:
    """Stands in for nvJPEG, which needs a GPU: all files of one size or an error."""

    def __init__(self):
        self.seen = []

    def size(self, file):
        if UNREADABLE in file.tobytes():
            raise RuntimeError("nvJPEG cannot read: status 3")
        with Image.open(io.BytesIO(file.tobytes())) as image:
            return image.height, image.width

    def __call__(self, files, height, width):
        contents = [file.tobytes() for file in files]
        self.seen.extend(contents)
        if any(REFUSED in content for content in contents):
            raise RuntimeError("nvJPEG cannot decode: status 4")
        import torch

        images = [np.asarray(Image.open(io.BytesIO(content))) for content in contents]
        assert {image.shape for image in images} == {(height, width, 3)}
        return torch.from_numpy(np.stack(images))


def jpeg_file(number, comment=b""):
    file = io.BytesIO()
    golden_image(number, (40, 30) if number % 3 else (31, 47)).convert("RGB").save(file, "JPEG", comment=comment)
    return file.getvalue()
