"""CSV text whose cells no spreadsheet runs as formulas: the writer of all tables, and how they are read back.

A spreadsheet runs a cell that starts with `=`, `+`, `-` or `@`, in some languages also as full-width characters, and
may drop blanks, quotes and control characters before them. Such a text gets a leading apostrophe. Numbers do not.
An apostrophe more never makes a text harmless or harmful, so that taking one away gives exactly the text before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Cell", "csv_lines", "has_escapes", "unescaped"]

Cell = str | float | int | None

_STARTS_LIKE_A_FORMULA = re.compile(
    "[\\s\"'\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]*"  # what may be dropped
    "(?:(?<=[\t\r])|[=+\\-@＝＋－＠﹦﹢﹣﹫])"
)
_NEEDS_QUOTES = re.compile('[",\r\n]|^$|^\\s|\\s$')


def csv_lines(rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """The line of each row. A missing value is an empty cell, an empty text is `""`."""
    for row in rows:
        yield ",".join(map(_written, row)) + "\r\n"


def _written(cell: Cell) -> str:
    if isinstance(cell, str):
        text = f"'{cell}" if _STARTS_LIKE_A_FORMULA.match(cell) else cell
        return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else str(cell)


def has_escapes(header: Sequence[str]) -> bool:
    """Whether a table with these columns is one of samples and scores that was written here.

    In the tables of others, an apostrophe at the start of a text belongs to the text.
    """
    return {"row", "id"} <= {*header} and any(name.endswith(":status") for name in header)


def unescaped(text: str) -> str:
    """The text of a cell that `csv_lines` wrote."""
    return text[1:] if text.startswith("'") and _STARTS_LIKE_A_FORMULA.match(text) else text
