"""What is known about all judges of a run."""

from __future__ import annotations

from multimodal_eval.core.judge_records import JudgesReport
from multimodal_eval.report.displays import judge_findings
from multimodal_eval.report.displays.blocks import Block, Text

__all__ = ["blocks"]


def blocks(report: JudgesReport) -> list[Block]:
    """One section per metric."""
    shown: list[Block] = []
    for metric, findings in report.metrics.items():
        shown += [Text(metric, tone="strong"), *judge_findings.blocks(findings)]
    return shown or [Text("no judge was asked")]
