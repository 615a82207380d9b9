"""Images are opened late, a few at a time."""

from __future__ import annotations

import threading

import numpy as np

from multimodal_eval.models.clip.lazy_images import LazyImage, open_in_groups
from tests.golden.clip.images import golden_image


def test_few_images_are_open_at_the_same_time():
    lock, open_images, peak = threading.Lock(), set(), 0

    def load(number):
        nonlocal peak
        with lock:
            open_images.add(number)
            peak = max(peak, len(open_images))
        return golden_image(1, (4, 4))

    images = [LazyImage(bytes([number]), lambda number=number: load(number)) for number in range(200)]
    seen = []
    for positions, group in open_in_groups(images, lambda image: np.asarray(image.open()), group_size=8):
        assert len(group) == len(positions) <= 8
        seen += positions
        with lock:
            open_images.difference_update(positions)
    assert seen == list(range(200))
    assert peak <= 16
