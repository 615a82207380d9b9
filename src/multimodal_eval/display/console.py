"""Text and tables on the terminal. Texts come from files: no markup or control character in them has an effect.

Tables fit the terminal, and no name is cut, whatever its width.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from textwrap import fill
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.visible import unprotected, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.measure import Measurement
    from rich.table import Column, Table
    from rich.text import Text


_HEAD = 14  # characters of a line in the head of a column, if the table is too wide
_NAME = 15  # characters of a line in a column of names, if that keeps the table in one piece


def console(**settings: Any) -> Console:
    """Standard output; if it is not a terminal, as wide as COLUMNS says, or else 120 columns.

    Strings are printed as they are, without markup. A table whose numbers do not fit is printed in several blocks.
    """
    from rich.console import Console
    from rich.table import Table

    class Terminal(Console):
        def print(self, *objects: Any, **settings: Any) -> None:
            for thing in objects:
                for shown in _blocks(self, thing) if isinstance(thing, Table) else [thing]:
                    super().print(shown, **settings)
            if not objects:
                super().print(**settings)

        def on_broken_pipe(self) -> None:  # Rich would end the process with code 1
            raise BrokenPipeError

        def render_str(self, text: str, **settings: Any) -> Text:
            return super().render_str(visible(text), **settings)

    # Rich's own escape sequences must pass; its texts are escaped above.
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal() else 120
    shown = {"file": unprotected(sys.stdout), "width": width, **settings}
    return Terminal(**shown, markup=False, highlight=False, emoji=False)


def styled(*pieces: str | tuple[str, str]) -> Text:
    """A text from pieces, each with or without a style: ("refused", "red"), ": no gold labels"."""
    from rich.text import Text

    styles = [("", piece) if isinstance(piece, str) else (piece[1], piece[0]) for piece in pieces]
    return Text.assemble(*((visible(text), style) for style, text in styles))


def warning(line: str) -> Text:
    """A warning: a yellow exclamation mark and the line."""
    return styled(("!", "yellow"), f" {as_text(line)}")


def as_text(text: str) -> str:
    """A text on one line: line breaks and other characters that are not printable are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def fitting(out: Console, tables: Sequence[Table]) -> tuple[Table, bool]:
    """The first table that the terminal is wide enough for, else the last; and if it is in one piece when folded."""
    table = next((table for table in tables if _widths(out, table).maximum <= out.width), tables[-1])
    return table, len([*_blocks(out, table)]) == 1


def _widths(out: Console, table: Table) -> Measurement:
    """The width with every word on a separate line, and without wrapped lines."""
    from rich.measure import Measurement

    return Measurement.get(out, out.options.update(max_width=10_000), table)


def _blocks(out: Console, table: Table) -> Iterator[Table]:
    """The table with folded text columns, or if it is too wide, blocks of its number columns, each with all texts."""
    left = [column for column in table.columns if not column.no_wrap]
    numbers = [column for column in table.columns if column.no_wrap]
    is_wide = bool(numbers) and _widths(out, table).minimum > out.width
    heads = [column.header for column in numbers]
    _wrap_heads(out, numbers, heads, _HEAD if is_wide else None)
    for column in left:
        if column.overflow == "ellipsis":
            column.overflow = "fold"
    if _widths(out, table).minimum > out.width:
        table.padding = (0, 1, 0, 0)
    if _widths(out, table).minimum > out.width:
        _wrap_heads(out, numbers, heads, 1)
    if _widths(out, table).minimum > out.width:
        table.padding = 0
    if numbers and _widths(out, table).minimum > out.width:
        _fold(out, table, left)
    if not numbers or _widths(out, table).minimum <= out.width:
        yield table
        return
    while numbers:
        parts = [_part(table, [*left, *numbers[:count]]) for count in range(1, len(numbers) + 1)]
        count = max(1, bisect_right(parts, out.width, key=lambda part: _widths(out, part).minimum))
        yield parts[count - 1]
        numbers, table.title = numbers[count:], None


def _wrap_heads(out: Console, columns: Sequence[Column], heads: Sequence[RenderableType], width: int | None) -> None:
    """Make columns as narrow as their numbers, their heads in lines of this width, and words up to _HEAD allow."""
    for column, head in zip(columns, heads, strict=True):
        widest = max((out.measure(cell).maximum for cell in column.cells), default=0)
        if width is not None and isinstance(head, str):
            word = max(map(len, head.split()), default=1)
            column.header = fill(head, max(widest, width, min(word, _HEAD)))
        column.min_width = max(widest, out.measure(column.header).maximum)


def _fold(out: Console, table: Table, columns: Sequence[Column]) -> None:
    """Make text columns as narrow as the numbers beside them need it, or as blocks of them do."""
    for column in columns:
        column.max_width = 1
    room = out.width - _widths(out, table).minimum + len(columns)
    if room < min(out.width // 3, _NAME * len(columns)):  # the numbers come in blocks
        room = out.width // 2
    natural = {
        id(column): max(out.measure(cell).maximum for cell in (column.header, *column.cells)) for column in columns
    }
    for rank, column in enumerate(sorted(columns, key=lambda column: natural[id(column)])):  # what short ones leave
        column.max_width = max(1, min(natural[id(column)], room // (len(columns) - rank)))
        room -= column.max_width


def _part(table: Table, columns: Sequence[Column]) -> Table:
    """Some columns of a table."""
    part = copy(table)
    part.columns = [copy(column) for column in columns]
    for index, column in enumerate(part.columns):
        column._index = index
    return part
