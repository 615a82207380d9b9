"""Runs: scores with intervals and coverage, warnings, signatures, findings of lint; answers that are not scored yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from multimodal_eval.core.records import COMPOSITE, Entry, Figure, Finding, LintReport
from multimodal_eval.data.runs.run import Run, figures_of, title_of
from multimodal_eval.report.displays.blocks import Block, Folded, Gallery, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import ShownFigure, figure_table, percent
from multimodal_eval.report.displays.samples import card_of
from multimodal_eval.report.media import media_policy
from multimodal_eval.report.run_warnings import warnings
from multimodal_eval.report.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.run.generated import GeneratedRun

__all__ = ["finding_rows", "generated_run_blocks", "lint_report_blocks", "run_blocks"]


_EXAMPLES = 3


def lint_report_blocks(report: LintReport) -> list[Block]:
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


def run_blocks(run: Run) -> list[Block]:
    """The headline is in bold. Signatures and findings are folded."""
    shown: list[Block] = [Text(title_of(run), tone="strong"), figure_table(list(_figures(run)), "metric", ["scored"])]
    shown.append(Notes(warnings(run)))
    if run.info.unavailable:
        shown.append(Notes([f"{name} could not run: {reason}" for name, reason in run.info.unavailable.items()]))
    findings = run.folder.read_lint()
    if findings is not None and findings.findings:
        count = len(findings.findings)
        shown.append(Folded(f"{count} finding{'' if count == 1 else 's'} of lint", [finding_rows(findings.findings)]))
    signatures = {name: entry.signature or "" for name, entry in run.entries.items()}
    shown.append(Folded("Signatures: the settings that change a score", [_signatures(signatures)]))
    return shown


def _figures(run: Run) -> Iterator[ShownFigure]:
    for name, figure in figures_of(run).items():
        metric = name if name in run.entries else _metric_of(run, figure)
        bounds = run.info.bounds_of(metric)
        arrow = " ↓" if isinstance(figure, Entry) and figure.direction == "lower" else ""
        scored = f"{figure.n_scored:,} / {figure.n_total:,}" if isinstance(figure, Entry) else ""
        is_main = name == run.headline
        yield ShownFigure(name + arrow, figure.value, figure.low, figure.high, [scored], bounds, is_main)
        if isinstance(figure, Entry) and (corrected := figure.calibrated) is not None:
            labels = f"{corrected.labels:,} label{'' if corrected.labels == 1 else 's'}"
            yield ShownFigure(
                f"{name}, calibrated",
                corrected.value,
                corrected.low,
                corrected.high,
                [labels],
                bounds,
                is_main,
                "series-3",
            )


def _metric_of(run: Run, figure: Figure) -> str:
    """The metric that a part belongs to."""
    return next((name for name, entry in run.entries.items() if figure in entry.parts.values()), COMPOSITE)


def _signatures(signatures: dict[str, str]) -> Table:
    return Table(["metric", "signature"], [Row([name, text]) for name, text in signatures.items()], left=2)


_SHOWN = 6


def generated_run_blocks(run: GeneratedRun) -> list[Block]:
    """How many samples have an answer, and the first of them."""
    info = run.generation
    title = f"{counted(len(run), 'sample')} answered by {info.settings.get('model')}; not scored yet"
    rows = [Row([status, f"{count:,}"]) for status, count in info.statuses.items()]
    policy = media_policy(run.folder, run.info)
    cards = [card_of(sample, policy) for sample in islice(run.samples(), _SHOWN)]
    tokens = f"{info.input_tokens:,} tokens in, {info.output_tokens:,} out" if info.input_tokens else ""
    signature = Table(["signature"], [Row([info.signature])])
    return [
        Text(title, tone="strong"),
        Table(["status", "samples"], rows),
        *([Text(tokens, tone="quiet")] if tokens else []),
        Gallery(cards),
        Folded("Signature: the settings that change an answer", [signature]),
    ]
