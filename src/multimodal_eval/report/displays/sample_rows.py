"""Some samples of a run as a gallery."""

from __future__ import annotations

from multimodal_eval.data.runs.sample_rows import SampleRows
from multimodal_eval.report.displays.blocks import Block, Gallery, Text
from multimodal_eval.report.displays.sample_row import card

__all__ = ["blocks"]

_MOST = 24  # cards


def blocks(rows: SampleRows) -> list[Block]:
    """The first samples, with their number if there are more."""
    shown: list[Block] = [Text(rows.title, tone="strong"), Gallery([card(row) for row in rows[:_MOST]])]
    more = len(rows) - _MOST
    return [*shown, *([Text(f"{more:,} more samples are not shown", tone="quiet")] if more > 0 else [])]
