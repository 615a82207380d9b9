"""A file of labels as ratings: one record per annotator and labelled answer or comparison, with the last label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.labels.human import HumanLabel, last_labels, read_labels
from multimodal_eval.data.readers.layouts import Long, Record

__all__ = ["COLLECTED", "collected_ratings"]

COLLECTED = Long("unit", "annotator", "label")  # the layout of `collected_ratings`


def collected_ratings(path: Path) -> Iterator[tuple[int, Record]]:
    """(line, rating) of every label that counts. The unit is the run, what it is compared with, the metric and the id.

    The columns `id`, `run` and `metric` can group units.
    """
    for label in last_labels(_labels(path)):
        unit = msgspec.json.encode(label.unit).decode()
        rating = {"unit": unit, "annotator": label.annotator, "label": label.label}
        yield label.line or 0, {**rating, "id": label.id, "run": label.run, "metric": label.metric}


def _labels(path: Path) -> list[HumanLabel]:
    try:
        return read_labels(path)
    except InputError as error:
        hint = "For a file with other columns, name them: see `mmeval agree --help`."
        raise InputError([replace(problem, hint=hint) for problem in error.problems], error.total) from None
