"""How many samples a comparison needs, and which difference it can show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.core.display import number
from multimodal_eval.display.blocks import Block, Row, Table, Text
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.power import PowerTable

__all__ = ["power_blocks"]

_BAR = 30  # characters of a power of 1


def power_blocks(table: PowerTable) -> Iterator[Block]:
    """Numbers of samples with what they detect, then how many a difference needs, and what is assumed."""
    heads = ["samples", "detectable"] + ([] if table.effect is None else [f"power at {table.effect:g}", ""])
    rows = []
    for point in table.points:
        cells = [f"{point.samples:,}", number(point.detectable)]
        if point.power is not None:
            cells += [f"{point.power:.0%}", ("█" * round(_BAR * point.power)).ljust(_BAR, "░")]
        rows.append(Row(cells, is_strong=point.samples == table.needed))
    yield Table(heads, rows, 0, f"paired comparison: {table.spread.source}")
    if table.needed is not None:
        shown = f"show a difference of {table.effect:g} with {table.wanted:.0%} probability"
        yield Text(f"{counted(table.needed, 'sample')} {shown}")
    spread = table.spread
    kind = (
        f"shares: {spread.lost:.2%} of the samples differ in each direction and cancel out"
        if spread.lost is not None
        else f"scores: the paired differences have the standard deviation {spread.deviation:.4f}"
    )
    groups = f"; design effect of groups {spread.design_effect:.2f}" if spread.design_effect != 1 else ""
    yield Text(f"{kind}{groups}", tone="quiet")
    yield Text(f"detectable: shown with {table.wanted:.0%} probability at p < .05", tone="quiet")
