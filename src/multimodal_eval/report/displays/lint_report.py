"""Findings of lint: what is suspicious, how often, why it matters, and examples."""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.records import Finding, LintReport
from multimodal_eval.report.displays.blocks import Block, Row, Table, Text
from multimodal_eval.report.displays.figures import percent

__all__ = ["blocks", "finding_rows"]

_EXAMPLES = 3


def blocks(report: LintReport) -> list[Block]:
    """One row per finding."""
    count = len(report.findings)
    title = f"Lint of {report.n:,} samples: {count or 'no'} finding{'' if count == 1 else 's'}"
    return [Text(title, tone="strong"), *([finding_rows(report.findings)] if count else [])]


def finding_rows(findings: Sequence[Finding]) -> Table:
    """The findings as a table."""
    return Table(["code", "finding", "why it matters", "samples", "share"], [*map(_row, findings)], left=3)


def _row(finding: Finding) -> Row:
    examples = ", ".join(finding.examples[:_EXAMPLES])
    what = finding.what if finding.metric is None else f"{finding.metric}: {finding.what}"
    shown = f"{what} (such as {examples})" if examples else what
    return Row([finding.code, shown, finding.why, f"{finding.count:,} / {finding.total:,}", percent(finding.share)])
