"""Pictures are opened late, a few at a time."""

from __future__ import annotations

import threading

import numpy as np

from multimodal_eval.models.clip.pictures import Picture, opened
from tests.golden.clip.pictures import picture


def test_few_pictures_are_open_at_a_time():
    lock, alive, most = threading.Lock(), set(), 0

    def show(number):
        nonlocal most
        with lock:
            alive.add(number)
            most = max(most, len(alive))
        return picture(1, (4, 4))

    pictures = [Picture(bytes([number]), lambda number=number: show(number)) for number in range(200)]
    seen = []
    for positions, group in opened(pictures, np.asarray, at_once=8):
        assert len(group) == len(positions) <= 8
        seen += positions
        with lock:
            alive.difference_update(positions)
    assert seen == list(range(200))
    assert most <= 16
