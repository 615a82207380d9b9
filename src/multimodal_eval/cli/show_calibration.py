"""A judge against human labels as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.cli import terminal
from multimodal_eval.cli.show import DASH, as_text, interval, number, table_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from multimodal_eval.core.judge_records import Calibration, Rate
    from multimodal_eval.core.records import Figure


def show_calibration(title: str, calibration: Calibration, out: Console) -> None:
    """Print the scores of the judge and of the labels, how well they agree, and the calibration curve."""
    out.print(_scores(title, calibration))
    out.print(_agreement(calibration))
    if calibration.curve:
        out.print(_curve(calibration))
    for line in (*calibration.notes, *_undefined(calibration)):
        out.print(terminal.warning(line), soft_wrap=True)


def _scores(title: str, calibration: Calibration) -> Table:
    labels = f"{calibration.labels:,} of {calibration.samples:,} samples labelled in {as_text(calibration.column)}"
    table = table_of(f"{as_text(title)}: {labels}", ["by"], ["score", "std. error", "95 % interval"])
    rows: dict[str, Figure | None] = {
        "metric alone": calibration.judge,
        "labels alone": calibration.human,
        "both: PPI++": calibration.corrected,
        "both: PPI (lambda = 1)": calibration.classical,
        "both: Rogan-Gladen": calibration.rogan_gladen,
    }
    for name, figure in rows.items():
        if figure is not None:
            cells = [number(figure.value), number(figure.stderr), interval(figure.low, figure.high)]
            table.add_row(name, *cells, style="bold" if figure is calibration.corrected else "")
    return table


def _agreement(calibration: Calibration) -> Table:
    table = table_of("", ["metric and labels"], ["value", "95 % interval", "labels"])
    rates: dict[str, Rate | None] = {
        "equal labels": calibration.agreement,
        "sensitivity: score 1 for label 1": calibration.sensitivity,
        "specificity: score 0 for label 0": calibration.specificity,
    }
    for name, rate in rates.items():
        if rate is not None:
            table.add_row(name, number(rate.value), interval(rate.low, rate.high), f"{rate.count:,} / {rate.total:,}")
    for name, figure in (("Cohen's kappa", calibration.kappa), ("Pearson's correlation", calibration.correlation)):
        if figure is not None:
            table.add_row(name, number(figure.value), interval(figure.low, figure.high), f"{calibration.labels:,}")
    worth = DASH if calibration.worth is None else f"{calibration.worth:,.0f}"
    table.add_row("labels alone of the same precision", worth, "", "")
    table.add_row("weight of the metric (lambda)", f"{calibration.power:.2f}", "", "")
    return table


def _curve(calibration: Calibration) -> Table:
    table = table_of("labels by score", [], ["score", "mean label", "95 % interval", "labels"])
    for point in calibration.curve:
        between = interval(point.low, point.high)
        table.add_row(f"{point.judge:.4g}", number(point.human), between, f"{point.n:,}")
    return table


def _undefined(calibration: Calibration) -> Iterator[str]:
    """Why values are missing."""
    for name, figure in (
        ("the calibrated score", calibration.corrected),
        ("kappa", calibration.kappa),
        ("the correlation", calibration.correlation),
        ("Rogan-Gladen", calibration.rogan_gladen),
    ):
        if figure is not None and figure.low is None:
            yield f"{name}: {figure.method}"
