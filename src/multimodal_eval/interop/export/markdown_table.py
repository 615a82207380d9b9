"""Runs as a table of GitHub Markdown, with its explanation below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.markdown import MarkdownRenderer
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.score_grid import OPTIONS, grid_table, score_grid

__all__ = ["OPTIONS", "export"]


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """The table of one or more runs."""
    grid = score_grid(runs, options)
    return Exported(text=MarkdownRenderer().page([grid_table(grid, options)]), notes=grid.notes)
