"""Files whose rows have no ids: JSON Lines, JSON, CSV, TSV and Parquet. Rows are numbered from 0, as lm-eval does.

An input without PREDICTIONS whose first rows have no `id` is read in this format, with a note. Tasks of lm-eval and
lmms-eval choose it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from multimodal_eval.data.datasets.dataset_format import DatasetFormat
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers.formats import SUFFIXES, reader_of
from multimodal_eval.data.readers.problems import Problems, Record

__all__ = ["FORMAT"]


class NumberedRows(DatasetFormat):
    """The format of plain files without ids."""

    name = "rows"
    suffixes = SUFFIXES
    files = "JSON Lines, JSON, CSV, TSV or Parquet without ids"
    takes = "all columns; the id is the number of the row, from 0"
    is_plain = True

    def recognises(self, head: Head) -> bool:
        """Never by the content of one row: it is chosen."""
        return False

    def part_name(self, path: Path) -> str:
        """The name of the file: its rows are numbered for themselves."""
        return path.name.partition(".")[0]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per row, with its number unless it has an id."""
        for number, (line, record) in enumerate(reader_of(path)(path, problems)):
            yield line, record if "id" in record else {"id": str(number), **record}


FORMAT = NumberedRows()
