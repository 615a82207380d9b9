"""A run: its scores with intervals and coverage, warnings, signatures, findings."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.core.records import COMPOSITE, Entry, Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_text import figures_of, title_of
from multimodal_eval.report.displays.blocks import Block, Folded, Notes, Row, Table, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.displays.lint_report import finding_rows
from multimodal_eval.report.remarks import warnings

__all__ = ["blocks"]


def blocks(run: Run) -> list[Block]:
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
