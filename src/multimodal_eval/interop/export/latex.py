"""Runs as a LaTeX table with booktabs rules, as papers print them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export import score_grid as grids
from multimodal_eval.interop.export.escapes import latex_text
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.score_grid import Mark, caption, grid_text, score_grid

__all__ = ["OPTIONS", "LatexStyle", "export"]

OPTIONS = Options(
    grids.OPTIONS,
    caption=Option(str | None, None, help="a sentence before the explanations in the caption, as plain text"),
    label=Option(str | None, None, help="the label, such as tab:results"),
    float=Option(bool, True, help="a whole table environment with a caption; false for the tabular alone"),
)
_MARKS: dict[Mark, str] = {"": "", "better": r"\dagger", "worse": r"\ddagger"}
_LABEL = re.compile(r"[\w:.+/-]+", re.ASCII)
_PLAIN = 0x250  # below: letters that the default encoding of pdfLaTeX has


class LatexStyle:
    """Numbers in math mode; names and sentences escaped."""

    missing = "--"
    plus_minus = r"$\pm$"
    lower = r"$\downarrow$"

    def text(self, text: str) -> str:
        """Escaped, with a space that does not break before a percent sign."""
        return latex_text(text).replace(r" \%", r"~\%")

    def value(self, digits: str, *, is_bold: bool, mark: Mark) -> str:
        """`$\\mathbf{0.512}^{\\dagger}$`."""
        number = rf"\mathbf{{{digits}}}" if is_bold else digits
        return f"${number}{'^{' + _MARKS[mark] + '}' if mark else ''}$"

    def spread(self, text: str) -> str:
        """Smaller, after the value."""
        return rf"{{\scriptsize {text if text.startswith('$') else f'${text}$'}}}"

    def mark(self, mark: Mark) -> str:
        """`$^{\\dagger}$`."""
        return f"$^{{{_MARKS[mark]}}}$"


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """The table of one or more runs, to be included with `\\input`."""
    if options["label"] is not None and not _LABEL.fullmatch(options["label"]):
        raise ConfigError(f"label must have letters, digits and : . + / - _ only. Got {options['label']!r}.")
    grid = score_grid(runs, options)
    lines = "\n".join(_lines(grid, options))
    notes = list(grid.notes)
    if any(ord(character) >= _PLAIN for character in lines):
        notes.append("names have letters outside Latin: compile with XeLaTeX or LuaLaTeX and a font that has them")
    return Exported(text=lines + "\n", notes=tuple(notes))


def _lines(grid: grids.ScoreGrid, options: OptionValues) -> Iterator[str]:
    style = LatexStyle()
    table = grid_text(grid, style, options)
    explained = caption(grid, style, options)
    if options["caption"] is not None:
        explained = f"{style.text(options['caption'])} {explained}".rstrip()
    yield r"% needs \usepackage{booktabs}"
    if options["float"]:
        yield r"\begin{table}"
        yield r"\centering"
        yield rf"\caption{{{explained}}}"
        if options["label"] is not None:
            yield rf"\label{{{options['label']}}}"
    elif explained:
        yield f"% {explained}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(table.headers) - 1)}}}"
    yield r"\toprule"
    yield _row([table.headers[0], *(rf"\multicolumn{{1}}{{c}}{{{head}}}" for head in table.headers[1:])])
    yield r"\midrule"
    yield from map(_row, table.rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    if options["float"]:
        yield r"\end{table}"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
