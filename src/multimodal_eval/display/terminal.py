"""Blocks on the terminal, with Rich, and charts of characters on the scales of `display.scales`.

A table that is too wide loses its optional columns, or is turned round if that keeps it in one piece; nothing is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.figure import Figure
from multimodal_eval.core.visible import shortened
from multimodal_eval.display.blocks import (
    Block,
    Cell,
    Chart,
    Drawing,
    Finding,
    Folded,
    Gallery,
    Lines,
    Notes,
    Row,
    Strong,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.console import as_text, console, fitting, styled, warning
from multimodal_eval.display.figure_tables import as_figures, figure_table, in_words, shown_rows, without_drawings
from multimodal_eval.display.renderer import Renderer
from multimodal_eval.display.scales import Scale

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable

__all__ = ["TerminalRenderer", "axis_text", "bar_text", "dots_text", "step_text"]

WIDTH = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def dots_text(figure: Figure, scale: Scale, width: int = WIDTH) -> str:
    """`  ├───●──┤     `: the interval and the value."""
    cells = [" "] * width
    if figure.low is not None and figure.high is not None:
        first, last = _place(scale, figure.low, width), _place(scale, figure.high, width)
        cells[first : last + 1] = ["─"] * (last - first + 1)
        cells[first], cells[last] = "├", "┤"
    if figure.value is not None:
        cells[_place(scale, figure.value, width)] = "●"
    return "".join(cells)


def bar_text(share: float, width: int = WIDTH) -> str:
    """A share of the whole, to an eighth of a character."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(width)


def step_text(start: float, end: float, scale: Scale, width: int = WIDTH) -> str:
    """A step of a waterfall: from where the last one ended."""
    places = sorted(_place(scale, value, width) for value in (start, end))
    return (" " * places[0] + "█" * max(1, places[1] - places[0])).ljust(width)[:width]


def axis_text(scale: Scale, width: int = WIDTH) -> str:
    """The limits of the scale."""
    low, high = scale.ticks[0].label, scale.ticks[-1].label
    return low + high.rjust(width - len(low))


def _place(scale: Scale, value: float, width: int) -> int:
    return round(scale.at(value) / 100 * (width - 1))


_STYLES = {"good": "green", "bad": "red", "warning": "yellow", "quiet": "dim", "strong": "bold"}
_SIGNS = {"good": "▲ ", "bad": "▼ ", "warning": "! "}
_LONGEST = 400  # characters of a cell


class TerminalRenderer(Renderer[None]):
    """Prints; `page` returns what it printed. Folded blocks are printed if they say so, or with `unfolds`."""

    def __init__(self, out: Console | None = None, *, unfolds: bool = False) -> None:
        self.out = console() if out is None else out
        self.unfolds = unfolds
        self._has_table = False
        self.hidden: list[str] = []  # summaries of folded blocks that were not printed

    def _print(self, shown: RenderableType, style: str = "", *, wraps: bool = True) -> None:
        """A line, which is wrapped between words on a terminal; a file or a pipe gets the whole line."""
        self.out.print(shown, style=style or None, soft_wrap=not (wraps and self.out.is_terminal))

    def text(self, block: Text) -> None:
        """A line, which the terminal wraps."""
        lead = [(f"{as_text(block.lead)} ", "bold")] if block.lead else []
        sign = _SIGNS.get(block.tone, "")
        body = as_text(block.text)
        style = _STYLES.get(block.tone, "")
        if sign:
            self._print(styled((sign, style), *lead, body))
        else:
            self._print(styled(*lead, (body, style) if style else body), wraps=not block.is_code)

    def table(self, block: Table) -> None:
        """With as many of its columns as the terminal is wide enough for."""
        kept = without_drawings(block)
        if kept.title:
            if self._has_table:
                self.out.print()
            self._print(as_text(kept.title), "bold")
        self._has_table = True
        shown, is_whole = fitting(self.out, _narrower(kept))
        if not is_whole and _can_be_turned(kept):
            turned, is_whole = fitting(self.out, _narrower(_turned(kept)))
            shown = turned if is_whole else shown
        self.out.print(shown)
        if kept.caption:
            self.out.print(as_text(kept.caption), style="dim")

    def chart(self, block: Chart) -> None:
        """The figures, with a column of drawn characters."""
        from multimodal_eval.display.drawings import scale_of, step_scale, steps_of

        figures = as_figures(block)
        shown = [row.figure for row in shown_rows(figures)]
        if block.kind == "bars":
            drawn = [bar_text(figure.value or 0.0) for figure in shown]
            drawn.append("")
        elif block.kind == "waterfall":
            steps = steps_of(shown, [start for series in block.series for start in series.at])
            scale = step_scale(steps)
            drawn = [*(step_text(*step, scale) for step in steps), axis_text(scale)]
        else:
            scale = scale_of(shown, with_origin=block.with_origin)
            drawn = [*(dots_text(figure, scale) for figure in shown), axis_text(scale)]
        table = figure_table(figures, drawn)
        self.table(Table(table.heads, [*(_no_axis(row) for row in table.rows)], table.left, table.title, table.caption))

    def finding(self, block: Finding) -> None:
        """`! CODE: sentence`, then why it matters."""
        code = f"{block.code}: " if block.code else ""
        if block.level == "warning":
            self._print(warning(f"{code}{block.sentence}"))
        else:
            self._print(as_text(f"{code}{block.sentence}"))
        if block.figure is not None:
            self._print(as_text(f"  {in_words(block.figure)}"))
        for line in block.details:
            self._print(as_text(f"  {line}"), "dim")

    def verdict(self, block: Verdict) -> None:
        """The question in bold, the sentence, and the evidence."""
        self.text(Text(block.sentence, block.question, block.tone))
        for finding in block.evidence:
            self.finding(finding)

    def gallery(self, block: Gallery) -> None:
        """The texts of the samples."""
        for card in block.cards:
            scores = "  ".join(f"{name} {value}" for name, value in card.scores)
            self._print(styled((as_text(card.title), "bold"), as_text(f"  {scores}")))
            for name, text in card.fields:
                self._print(as_text(f"    {name}: {shortened(text, _LONGEST)}"))
            for remark in card.remarks:
                self._print(warning(remark))

    def notes(self, block: Notes) -> None:
        """Each with an exclamation mark."""
        for line in block.lines:
            self._print(warning(line))

    def folded(self, block: Folded) -> None:
        """The summary in bold, and the blocks below it."""
        if block.in_text or self.unfolds:
            self.out.print()
            self._print(as_text(block.summary), "bold")
            for each in block.blocks:
                self.block(each)
            self.out.print()
        else:
            self.hidden.append(block.summary)

    def drawing(self, block: Drawing) -> None:
        """Nothing."""

    def page(self, blocks: Sequence[Block]) -> str:
        """What was printed."""
        with self.out.capture() as captured:
            for block in blocks:
                self.block(block)
        return captured.get()


def _no_axis(row: Row) -> Row:
    return Row(row.cells, row.is_strong, is_quiet=row.is_quiet or row.is_axis, tone=row.tone)


def _can_be_turned(block: Table) -> bool:
    return block.left == 1 and all(isinstance(row.cells[0], str) for row in block.rows)


def _turned(block: Table) -> Table:
    """The table with a column for each row."""
    cells = [
        [Strong(cell) if row.is_strong and isinstance(cell, str) else cell for cell in row.cells] for row in block.rows
    ]
    columns = zip(block.heads, *cells, strict=True)
    heads = [cell.text if isinstance(cell, Strong) else str(cell) for cell in next(columns)]
    return Table(heads, [Row(column) for column in columns])


def _narrower(block: Table) -> list[RichTable]:
    """The table, then without each of its optional columns and those before it."""
    return [_rich(block, set(block.optional[:count])) for count in range(len(block.optional) + 1)]


def _rich(block: Table, omitted: set[str]) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    kept = [column for column, head in enumerate(block.heads) if head not in omitted or column < block.left]
    table = RichTable(
        box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_lines=block.has_lines
    )
    for column in kept:
        if column < block.left:
            table.add_column(as_text(block.heads[column]), overflow="fold")
        else:
            table.add_column(as_text(block.heads[column]), justify="right", no_wrap=True)
    for row in block.rows:
        style = "bold" if row.is_strong else "dim" if row.is_quiet else ""
        last = len(block.heads) - 1
        cells = [_cell(row.cells[c], _STYLES.get(row.tone, "") if c == last else "") for c in kept]
        table.add_row(*cells, style=style)
    return table


def _cell(cell: Cell, style: str) -> RenderableType:
    if isinstance(cell, Drawing):
        return ""
    if isinstance(cell, Lines) and cell.lines:
        first, *others = [as_text(shortened(line, _LONGEST)) for line in cell.lines]
        return styled((first, "bold" if cell.is_strong else ""), "\n".join(["", *others]))
    if isinstance(cell, Strong):
        return styled((as_text(shortened(cell.text, _LONGEST)), "bold"))
    text = as_text(shortened("" if isinstance(cell, Lines) else cell, _LONGEST))
    return styled((text, style)) if style else text
