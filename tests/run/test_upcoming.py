"""Parts are announced in time, once, and only as many as fit into memory."""

from __future__ import annotations

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.sample import Sample
from multimodal_eval.run.steps.score import Upcoming


def batch_of(part):
    return Batch.of([Sample(id=f"{part}-{row}") for row in range(256)])


class Reading:
    """Which parts were read and announced."""

    def __init__(self):
        self.read, self.announced = [], []

    def __call__(self, upcoming, part):
        batch = upcoming.batch(part, self._read, lambda samples: self.announced.append(samples[0].id))
        assert batch[0].id == f"{part}-0"

    def _read(self, part):
        self.read.append(part)
        return batch_of(part)


def test_two_parts_are_announced_ahead_and_every_part_is_read_once():
    upcoming, reading = Upcoming([3, 4, 6, 7, 9]), Reading()
    reading(upcoming, 3)
    assert reading.announced == ["3-0", "4-0", "6-0"]  # two times 256 samples ahead
    reading(upcoming, 4)
    assert reading.announced == ["3-0", "4-0", "6-0", "7-0"]
    for part in (6, 7, 9):
        reading(upcoming, part)
    assert reading.read == [3, 4, 6, 7, 9]


def test_a_second_thread_may_be_first():
    upcoming, reading = Upcoming([0, 1, 2]), Reading()
    reading(upcoming, 1)
    reading(upcoming, 0)
    reading(upcoming, 2)
    assert reading.read == [0, 1, 2]


def test_parts_that_are_added_later_and_parts_that_are_scored_again():
    upcoming, reading = Upcoming(), Reading()
    upcoming.add([2, 5])
    reading(upcoming, 2)
    upcoming.add([5, 8, 9, 11])
    reading(upcoming, 5)
    reading(upcoming, 2)  # once more, after a crash
    reading(upcoming, 7)  # not announced
    assert upcoming.parts == [2, 5, 8, 9, 11]
    assert sorted(reading.read) == [2, 2, 5, 7, 8, 9]
