"""The samples of a file of instances in any order, as other programs write them.

The scores are collected first, then the samples are read, so that the memory is that of the scores.

Instances are about the same sample if they have the same id and the same hash of input and references; without a hash,
if they are of the same evaluation. If an id is used for several samples, ids are `EVALUATION/ID`. If a sample has a
score several times, it was answered several times: these are epochs, by the metadata `epoch`, or in the order of the
lines.
"""

from __future__ import annotations

import ast
from array import array
from collections import Counter
from collections.abc import Iterator
from math import nan
from pathlib import Path

from multimodal_eval.data.logs.eee_columns import columns_of
from multimodal_eval.data.logs.eee_records import Instance
from multimodal_eval.data.logs.eee_samples import ResultColumns, ScoreLine, instances, score_lines
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["collected"]

_LONGEST_LIST = 1_000_000  # characters of a list that was written as text
Place = tuple[str, str, int]  # id, hash or evaluation, epoch


def collected(path: Path, names: ResultColumns, problems: Problems) -> Iterator[Record]:
    """One record per sample and epoch, in order of first appearance, with the answer of its first instance."""
    scores, places = _Scores(names), _Places()
    for line, score_line in score_lines(path, Problems()):
        scores.add(places.of(score_line), score_line, problems, f"{path}", line)
    places = _Places()
    done = bytearray(len(scores))
    for line, instance in instances(path, problems):
        place = places.of(instance)
        row = scores.row(place)
        if row is not None and not done[row]:
            done[row] = 1
            yield line, _record(instance, scores.columns(place, row, instance.evaluation_name))


def _record(instance: Instance, scores: Columns) -> Columns:
    columns = {**columns_of(instance), **scores}
    if len(instance.input.reference) == 1:
        columns["references"] = _listed(instance.input.reference[0])
    return columns


def _listed(reference: str) -> list[str]:
    """The reference, or the references if a list was written as Python source."""
    if reference[:1] == "[" and reference[-1:] == "]" and len(reference) <= _LONGEST_LIST:
        try:
            values = ast.literal_eval(reference)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [reference]
        if isinstance(values, list) and values and all(isinstance(value, str) and value.strip() for value in values):
            return values
    return [reference]


class _Places:
    """Which sample and epoch a line is about. It depends on the lines before."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def of(self, line: ScoreLine | Instance) -> Place:
        """The place of the next line."""
        sample, data = str(line.sample_id), line.sample_hash or line.evaluation_name
        epoch = _epoch(line)
        if epoch is not None:
            return sample, data, epoch
        self._counts[sample, data, line.key] += 1
        return sample, data, self._counts[sample, data, line.key]


def _epoch(line: ScoreLine | Instance) -> int | None:
    """The epoch, if the line says it."""
    text = line.stated_epoch
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


class _Scores:
    """The scores of all samples, by column."""

    def __init__(self, names: ResultColumns) -> None:
        self._names = names
        self._rows: dict[Place, int] = {}
        self._values: dict[str, array[float]] = {}
        self._data: dict[str, str] = {}  # id -> the first hash
        self._has_epochs = self._has_same_ids = False

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, place: Place) -> int | None:
        """The row of a sample."""
        return self._rows.get(place)

    def add(self, place: Place, line: ScoreLine, problems: Problems, file: str, number: int) -> None:
        """Collect a score."""
        sample, data, epoch = place
        self._has_epochs |= epoch > 1
        self._has_same_ids |= self._data.setdefault(sample, data) != data
        row = self._rows.setdefault(place, len(self._rows))
        values = self._values.setdefault(self._names[line.key], array("d"))
        if len(values) <= row:
            values.extend([nan] * (row + 1 - len(values)))
        before, values[row] = values[row], line.evaluation.score
        if before == before and before != values[row]:
            message = f"the sample has two scores of {line.key!r}: {before:g} and {values[row]:g}"
            problems.add("DUPLICATE", message, file=file, line=number, id=sample)

    def columns(self, place: Place, row: int, evaluation: str) -> Columns:
        """The scores of a sample, and its id, epoch and group."""
        sample, _, epoch = place
        name = f"{evaluation}/{sample}" if self._has_same_ids else sample
        columns: Columns = {"id": name}
        if self._has_epochs:
            columns |= {"id": f"{name}#{epoch}", "epoch": epoch, "group": name}
        for column, values in self._values.items():
            value = values[row] if row < len(values) else nan
            if value == value:
                columns[column] = value
        return columns
