"""A file of labels as ratings: one record per annotator and labelled answer or comparison, with the last label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from multimodal_eval.data.labels.human import last_labels, read_labels
from multimodal_eval.data.readers.layouts import Long, Record

__all__ = ["COLLECTED", "collected_ratings"]

COLLECTED = Long("unit", "annotator", "label")  # the layout of `collected_ratings`


def collected_ratings(path: Path) -> Iterator[tuple[int, Record]]:
    """(line, rating) of every label that counts. The unit is the run, what it is compared with, the metric and the id.

    The columns `id`, `run` and `metric` can group units.
    """
    for label in last_labels(read_labels(path)):
        unit = msgspec.json.encode(label.unit).decode()
        rating = {"unit": unit, "annotator": label.annotator, "label": label.label}
        yield label.line or 0, {**rating, "id": label.id, "run": label.run, "metric": label.metric}
