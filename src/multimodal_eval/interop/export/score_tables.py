"""Runs side by side, as tables of papers: LaTeX with booktabs rules, and GitHub Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.latex import LatexRenderer
from multimodal_eval.display.markdown import MarkdownRenderer
from multimodal_eval.interop.export import score_grid as grids
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.score_grid import grid_table, score_grid

__all__ = ["Latex", "Markdown"]

_LABEL = re.compile(r"[\w:.+/-]+", re.ASCII)
_PLAIN = 0x250  # below: letters that the default encoding of pdfLaTeX has


class Latex:
    """The table of one or more runs, to be included with `\\input`."""

    OPTIONS = Options(
        grids.OPTIONS,
        label=Option(str | None, None, help="the label, such as tab:results"),
        float=Option(bool, True, help="a whole table environment with a caption; false for the tabular alone"),
    )

    @staticmethod
    def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
        """The text of the table."""
        if options["label"] is not None and not _LABEL.fullmatch(options["label"]):
            raise ConfigError(f"label must have letters, digits and : . + / - _ only. Got {options['label']!r}.")
        grid = score_grid(runs, options)
        renderer = LatexRenderer(label=options["label"] or "", is_float=options["float"])
        text = renderer.page([grid_table(grid, options)])
        notes = list(grid.notes)
        if any(ord(character) >= _PLAIN for character in text):
            notes.append("names have letters outside Latin: compile with XeLaTeX or LuaLaTeX and a font that has them")
        return Exported(text=text, notes=tuple(notes))


class Markdown:
    """The table of one or more runs, with its explanation below."""

    OPTIONS = grids.OPTIONS

    @staticmethod
    def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
        """The text of the table."""
        grid = score_grid(runs, options)
        return Exported(text=MarkdownRenderer().page([grid_table(grid, options)]), notes=grid.notes)
