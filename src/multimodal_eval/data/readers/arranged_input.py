"""An input in another order, or with every sample several times: for runs that ask a model.

Samples are *drawn* in the order of the SHA-256 of a seed and their id. This order is random with respect to everything
else, the same on every machine, and does not depend on the order of the file.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.arrow import integers
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import InputFile, Source
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.parts import Input, Part
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["ArrangedInput", "Draw", "epoch_id", "sample_id"]


def epoch_id(sample: str, epoch: int) -> str:
    """The id of a sample in an epoch, which starts at 1."""
    return f"{sample}#{epoch}"


def sample_id(row: str) -> str:
    """The id of the sample, from its id in an epoch."""
    return row.rpartition("#")[0]


class Draw(msgspec.Struct, frozen=True):
    """The order in which samples are drawn."""

    seed: int
    first: frozenset[str] | None = None  # ids that are drawn before all others, in an order of their own
    first_in: str = ""  # the run with these ids

    def order(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The places of the ids in the order of drawing."""
        if self.first is not None and self.first.isdisjoint(ids):
            raise ConfigError(
                f"no sample of the input is in the run {self.first_in}. Compare with a run of the same data"
            )
        return np.array(sorted(range(len(ids)), key=lambda place: self._key(ids[place])), np.int64)

    def _key(self, name: str) -> tuple[bool, bytes]:
        kind = "drawn" if self.first is None else "paired"
        digest = hashlib.sha256(f"{kind}\0{self.seed}\0{name}".encode(errors="surrogatepass")).digest()
        return self.first is not None and name not in self.first, digest


class ArrangedInput(Input, msgspec.Struct, frozen=True):
    """The samples of another input: drawn in a random order, each repeated for a number of epochs."""

    source: Input
    epochs: int = 1
    draw: Draw | None = None
    most_rows: int | None = None  # of a run that stopped after so many rows
    change: Callable[[Sequence[pa.Table]], Iterator[pa.Table]] | None = None  # of all tables: a probe

    def describe(self) -> list[InputFile]:
        """The input files for run.json."""
        return self.source.describe()

    def recipe(self) -> Source | None:
        """How to open the input again."""
        return self.source.recipe()

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The checked samples in parts of at most `most`. Samples are drawn from the first `limit` ones."""
        tables = self._tables(problems, summary, most, limit)
        if self.change is not None and (every := list(tables)):
            tables = self.change(every)
        left = sys.maxsize if self.most_rows is None else self.most_rows
        for table in tables if self.draw is None else self._drawn(list(tables), self.draw):
            rows = np.repeat(np.arange(len(table), dtype=np.int64), self.epochs)
            size = _part_size(table, most)
            for start in range(0, min(len(rows), left), size):
                yield _TablePart(self._repeated(table, rows[start : min(start + size, left)], start))
            left = max(0, left - len(rows))
        summary.samples *= self.epochs

    def places(self) -> Iterator[tuple[str | None, int, str | None]]:
        """(file, line, id) of every record, for messages about samples that were read before."""
        for file, line, name in self.source.places():
            if self.epochs == 1 or name is None:
                yield file, line, name
            else:
                yield from ((file, line, epoch_id(name, epoch)) for epoch in range(1, self.epochs + 1))

    def _tables(self, problems: Problems, summary: Summary, most: int, limit: int | None) -> Iterator[pa.Table]:
        for part in self.source.parts(problems, summary, most, limit):
            table = part.table(0)
            if self.epochs > 1 and table.column("epoch").null_count < len(table):
                raise ConfigError(
                    "`epochs` asks for every sample several times, but these samples have an `epoch` already. "
                    "Set epochs to 1, or remove the column `epoch`"
                )
            yield table

    @staticmethod
    def _drawn(tables: Sequence[pa.Table], draw: Draw) -> Iterator[pa.Table]:
        import pyarrow as pa

        if tables:
            table = pa.concat_tables(tables)
            order = draw.order(table.column("id").to_pylist())
            yield table.take(integers(order))

    def _repeated(self, table: pa.Table, rows: NDArray[np.int64], start: int) -> pa.Table:
        """The rows of a table, each with the id of its epoch. The epochs of a sample are one group."""
        if self.epochs == 1:
            return table.slice(int(rows[0]), len(rows))
        import pyarrow as pa

        taken = table.take(integers(rows))
        ids, groups = taken.column("id").to_pylist(), taken.column("group").to_pylist()
        epochs = ((np.arange(start, start + len(rows)) % self.epochs) + 1).tolist()
        columns = {
            "id": [epoch_id(name, epoch) for name, epoch in zip(ids, epochs, strict=True)],
            "group": [group or name for group, name in zip(groups, ids, strict=True)],
            "epoch": epochs,
        }
        for name, values in columns.items():
            place = taken.schema.get_field_index(name)
            taken = taken.set_column(place, taken.schema.field(place), pa.array(values, taken.schema.field(place).type))
        return taken


def _part_size(table: pa.Table, most: int) -> int:
    """The rows of a part, fewer if they have large media."""
    per_row = table.nbytes / max(1, len(table))
    return max(1, min(most, int(parts.MEDIA_BYTES / max(1.0, per_row))))


class _TablePart:
    """A part that consists of a table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def samples(self, fields: Collection[str]) -> Sequence[Sample]:
        """The samples, with at least the given fields."""
        from multimodal_eval.data.runs.sample_table import to_samples

        return to_samples(self._table)

    def table(self, first_row: int) -> pa.Table:
        """The table to store; `first_row` is the number of the first sample in the input."""
        rows = integers(np.arange(first_row, first_row + len(self._table)))
        return self._table.set_column(0, self._table.schema.field(0), rows).combine_chunks()
