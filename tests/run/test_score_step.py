"""The work on one part, without an engine, and the parts that are announced ahead of it."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.score import joined
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.plan import make_plan
from multimodal_eval.run.step import RunContext
from multimodal_eval.run.steps.score import CRASHED, Score, Upcoming

SAMPLES = [Sample(id=str(number), generated_answer="x" * number) for number in range(1, 6)]


@pytest.fixture
def step(tmp_path):
    @metric("length", bounds=(0, None), version="1")
    def length(sample):
        return float(len(sample.generated_answer))

    evaluate(SAMPLES, metrics=["length"], output=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    return Score(RunContext(make_plan(overlaid(None, metrics=["length"])), folder, folder.read_info()))


@pytest.mark.parametrize("crashing", [[0], [4], [0, 3], [0, 1, 2, 3, 4]])
def test_rows_that_crash_a_metric_are_errors_and_the_others_keep_their_scores(step, crashing):
    step.exclude(0, {"length": crashing})
    assert step.part(0) is None
    table = step.run.folder.read_part("scores", 0)
    assert table.column("length").to_pylist() == [None if row in crashing else row + 1.0 for row in range(5)]
    assert table.column("length:status").to_pylist() == ["error" if row in crashing else "ok" for row in range(5)]
    reasons = dict.fromkeys(crashing, CRASHED.reason)
    assert table.column("length:reason").to_pylist() == [reasons.get(row) for row in range(5)]


def test_batches_of_a_part_are_scored_in_order(step, monkeypatch):
    samples = step.run.folder.read_batch(0)
    whole = step.scored(step.run.plan.metrics[0], samples)
    monkeypatch.setattr("multimodal_eval.run.steps.score.BATCH", 2)
    for threads in (1, 3):
        step.threads = threads
        assert list(step.scored(step.run.plan.metrics[0], samples)) == list(whole)
    assert list(joined([whole])) == list(whole)
    assert whole.values.tolist() == [1, 2, 3, 4, 5]


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
