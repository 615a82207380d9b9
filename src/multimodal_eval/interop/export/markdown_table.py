"""Runs as a table of GitHub Markdown, with its explanation below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export import score_grid as grids
from multimodal_eval.interop.export.escapes import markdown_text
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.score_grid import Mark, caption, grid_text, score_grid

__all__ = ["OPTIONS", "MarkdownStyle", "export"]

OPTIONS = Options(
    grids.OPTIONS, caption=Option(str | None, None, help="a sentence before the explanations, as plain text")
)
_MARKS: dict[Mark, str] = {"": "", "better": "†", "worse": "‡"}


class MarkdownStyle:
    """Bold as `**…**`, marks as characters."""

    missing = "–"
    plus_minus = "±"
    lower = "↓"

    def text(self, text: str) -> str:
        """Escaped, because names come from files."""
        return markdown_text(text)

    def value(self, digits: str, *, is_bold: bool, mark: Mark) -> str:
        """`**0.512**†`."""
        return (f"**{digits}**" if is_bold else digits) + _MARKS[mark]

    def spread(self, text: str) -> str:
        """As it is; a bracket is not the start of a link."""
        return text.replace("[", "\\[").replace("]", "\\]")

    def mark(self, mark: Mark) -> str:
        """The character."""
        return _MARKS[mark]


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """The table of one or more runs."""
    grid = score_grid(runs, options)
    style = MarkdownStyle()
    table = grid_text(grid, style, options)
    explained = caption(grid, style, options)
    if options["caption"] is not None:
        explained = f"{style.text(options['caption'])} {explained}".rstrip()
    lines = [_row(table.headers), "|---" + "|--:" * (len(table.headers) - 1) + "|", *map(_row, table.rows)]
    if explained:
        lines += ["", explained]
    return Exported(text="\n".join(lines) + "\n", notes=grid.notes)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
