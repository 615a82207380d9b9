"""A run and what human labels say about its metrics."""

from __future__ import annotations

from multimodal_eval.report.displays import calibration
from multimodal_eval.report.displays.blocks import Block, Text
from multimodal_eval.run.calibrate import CalibratedRun

__all__ = ["blocks"]


def blocks(result: CalibratedRun) -> list[Block]:
    """One section per metric."""
    shown: list[Block] = []
    for metric, content in result.metrics.items():
        shown += [Text(f"{result.name}, {metric}", tone="strong"), *calibration.blocks(content)]
    if result.left_out:
        shown.append(Text(f"{result.left_out:,} labels of the file are of other runs, and are left out", tone="quiet"))
    return shown
