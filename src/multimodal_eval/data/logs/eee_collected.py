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
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from math import nan
from pathlib import Path

from multimodal_eval.data.logs.eee_columns import columns_of
from multimodal_eval.data.logs.eee_records import Instance
from multimodal_eval.data.logs.eee_samples import ResultColumns, ScoreLine, score_lines, whole_instance
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["collected"]

_LONGEST_LIST = 1_000_000  # characters of a list that was written as text


def collected(path: Path, names: ResultColumns, problems: Problems) -> Iterator[Record]:
    """One record per sample and epoch, in order of first appearance, with the answer of its first instance."""
    scores = _Scores(names)
    for number, line in score_lines(path, problems):
        message = scores.add(line.score, number)
        if message is not None:
            problems.add("DUPLICATE", message, file=str(path), line=number, id=str(line.score.sample_id))
    row = 0
    for number, line in score_lines(path, Problems()):
        if row < len(scores) and scores.lines[row] == number:
            instance = whole_instance(line, problems, path, number)
            if instance is not None:
                yield number, _record(instance, scores.columns(row, instance))
            row += 1


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


def _epoch(line: ScoreLine) -> int | None:
    """The epoch, if the line says it."""
    text = line.stated_epoch
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


class _Scores:
    """The scores of all samples, by column. A row is a sample in an epoch; rows are in order of first appearance."""

    def __init__(self, names: ResultColumns) -> None:
        self._names = names
        self.lines: array[int] = array("q")  # the first line of each row
        self._epochs: array[int] = array("q")
        self._rows: dict[tuple[bytes, int], int] = {}  # sample and epoch
        self._values: dict[str, array[float]] = {}
        self._repeats: dict[tuple[int, str], int] = {}  # row of the first epoch, and column -> the last epoch
        self._data: dict[str, int] = {}  # id -> hash of its input and references
        self._has_same_ids = False

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: ScoreLine, number: int) -> str | None:
        """Collect a score. What is wrong, if it contradicts another one."""
        name, data = str(line.sample_id), line.sample_hash or line.evaluation_name
        sample = blake2b(f"{name}\0{data}".encode(errors="surrogatepass"), digest_size=12).digest()
        digest = int.from_bytes(sample[:7])
        self._has_same_ids |= self._data.setdefault(name, digest) != digest
        column = self._names[line.key]
        epoch = _epoch(line)
        row = self._row(sample, epoch or 1, number)
        if epoch is None and self._value(column, row) is not None:  # the sample was answered again
            self._repeats[row, column] = again = self._repeats.get((row, column), 1) + 1
            row = self._row(sample, again, number)
        before, score = self._value(column, row), line.evaluation.score
        self._values[column][row] = score
        if before is None or before == score:
            return None
        return f"the sample has two scores of {line.key!r}: {before:g} and {score:g}"

    def _row(self, sample: bytes, epoch: int, number: int) -> int:
        row = self._rows.setdefault((sample, epoch), len(self.lines))
        if row == len(self.lines):
            self.lines.append(number)
            self._epochs.append(epoch)
        return row

    def _value(self, column: str, row: int) -> float | None:
        values = self._values.setdefault(column, array("d"))
        if row >= len(values):
            values.extend([nan] * (row + 1 - len(values)))
        return values[row] if values[row] == values[row] else None

    @cached_property
    def _has_epochs(self) -> bool:
        """Whether some sample has an epoch after the first; asked when all scores are collected."""
        return max(self._epochs, default=1) > 1

    def columns(self, row: int, instance: Instance) -> Columns:
        """The scores of a row, and its id, epoch and group."""
        sample, epoch = str(instance.sample_id), self._epochs[row]
        name = f"{instance.evaluation_name}/{sample}" if self._has_same_ids else sample
        columns: Columns = {"id": name}
        if self._has_epochs:
            columns |= {"id": f"{name}#{epoch}", "epoch": epoch, "group": name}
        for column in self._values:
            value = self._value(column, row)
            if value is not None:
                columns[column] = value
        return columns
