"""Blocks as plain text, for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from multimodal_eval.core.visible import visible
from multimodal_eval.report.displays.blocks import Block, Card, Cell, Drawing, Gallery, Lines, Notes, Row, Table, Text
from multimodal_eval.report.plain_text import shortened

__all__ = ["as_text"]

_LONGEST = 200  # characters of a cell or a field


def as_text(blocks: Sequence[Block]) -> str:
    """The blocks, without drawings and folded parts. Control characters are escaped."""
    return "\n".join(line.rstrip() for block in blocks for line in _lines(block))


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        yield _plain(f"{block.lead} {block.text}" if block.lead else block.text)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Notes):
        yield from (f"! {_plain(line)}" for line in block.lines)
    elif isinstance(block, Gallery):
        for card in block.cards:
            yield from _card(card)


def _plain(text: str) -> str:
    return visible(" ".join(shortened(text, _LONGEST * 5).split()))


def _cell(cell: Cell) -> str:
    if isinstance(cell, Drawing):
        return ""
    text = ", ".join(cell.lines) if isinstance(cell, Lines) else cell
    return visible(" ".join(shortened(text, _LONGEST).split()))


def _table(table: Table) -> Iterator[str]:
    rows = [row for row in table.rows if not row.is_axis]
    drawn = {column for row in rows for column, cell in enumerate(row.cells) if isinstance(cell, Drawing)}
    kept = [column for column in range(len(table.heads)) if column not in drawn]
    if table.title:
        yield _plain(table.title)
    cells = [[_plain(table.heads[column]) for column in kept], *(_kept(row, kept) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(kept))]
    sides = [str.ljust if column < table.left else str.rjust for column in kept]
    for row in cells:
        yield "  ".join(side(text, width) for text, width, side in zip(row, widths, sides, strict=True))


def _kept(row: Row, columns: Sequence[int]) -> list[str]:
    return [_cell(row.cells[column]) for column in columns]


def _card(card: Card) -> Iterator[str]:
    scores = "  ".join(f"{_plain(name)} {_plain(value)}" for name, value in card.scores)
    yield f"{_plain(card.title)}  {scores}"
    for name, text in card.fields:
        yield f"    {_plain(name)}: {_cell(text)}"
    yield from (f"    ! {_plain(remark)}" for remark in card.remarks)
