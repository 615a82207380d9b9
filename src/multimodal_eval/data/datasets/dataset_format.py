"""What the readers of datasets have in common. They are formats as those of logs, without scores."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from multimodal_eval.data.logs.log_format import Head, LogInfo
from multimodal_eval.data.readers.formats import SUFFIXES, reader_of
from multimodal_eval.data.readers.problems import Problems, Record

__all__ = ["FORMAT", "DatasetFormat", "natural_key", "written_list"]


_DIGITS = re.compile(r"([0-9]+)")
_LONGEST_LIST = 1 << 20  # characters of a list that is written as text


class DatasetFormat:
    """A format of data without answers. A folder is read only if all its files with the suffix have the format."""

    harness = ""
    every_file = True
    is_plain = False  # whether the columns and cells are those of the file

    def part_name(self, path: Path) -> str:
        """Nothing: the ids of a dataset are unique in all its files."""
        return ""

    def info(self, path: Path) -> LogInfo:
        """A dataset has no scores."""
        return LogInfo(self.harness)

    def further_files(self, path: Path) -> Iterable[Path]:
        """Further files that are read, for run.json."""
        return ()


def natural_key(name: str) -> list[tuple[int, str]]:
    """Sorts names by the numbers in them: image_2 comes before image_10."""
    pieces = [(piece.lstrip("0") if place % 2 else piece, place % 2) for place, piece in enumerate(_DIGITS.split(name))]
    return [(len(piece) * is_number, piece) for piece, is_number in pieces]


def written_list(text: str) -> list[str] | None:
    """The texts of a list as Python prints it; None if the text is something else."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    if len(text) > _LONGEST_LIST:  # images in base64, which have no quotes and no escapes inside
        items = [item.strip().strip("'\"") for item in text[1:-1].split(",")]
        return items if all(items) else None
    try:
        with warnings.catch_warnings(action="ignore"):  # of Python's parser, about backslashes
            values = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    is_plain = isinstance(values, list) and all(isinstance(value, str | int | float) for value in values)
    return [str(value) for value in values] if is_plain else None


# Files whose rows have no ids: JSON Lines, JSON, CSV, TSV and Parquet. Rows are numbered from 0, as lm-eval does.
#
# An input without PREDICTIONS whose first rows have no `id` is read in this format, with a note. Tasks of lm-eval and
# lmms-eval choose it.


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
