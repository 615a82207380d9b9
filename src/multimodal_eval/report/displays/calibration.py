"""A judge against human labels: its score, that of the labels, the corrected one, and how well they agree."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.core.display import DASH, number
from multimodal_eval.core.judge_records import Calibration
from multimodal_eval.report.displays.blocks import Block, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import curve
from multimodal_eval.report.displays.figures import ShownFigure, figure_table, interval
from multimodal_eval.report.figures import estimate

__all__ = ["blocks"]


def blocks(calibration: Calibration) -> list[Block]:
    """The scores on one scale, the agreement, and the calibration curve."""
    title = f"{calibration.labels:,} of {calibration.samples:,} samples have human labels ({calibration.column})"
    shown: list[Block] = [Text(title, tone="strong"), *_verdict(calibration)]
    shown.append(figure_table(list(_scores(calibration)), "score by"))
    shown.append(Table(["judge and labels", "value", "95 % interval", "labels"], list(_agreement(calibration))))
    if calibration.curve:
        shown.append(Text("The points are on the dashed line if the judge is right on average.", tone="quiet"))
        shown.append(curve(calibration.curve))
    shown.append(Notes(calibration.notes))
    return shown


def _verdict(calibration: Calibration) -> Iterator[Text]:
    corrected = calibration.corrected
    if corrected.value is None or corrected.low is None or corrected.high is None or calibration.judge.value is None:
        yield Text(corrected.method, "No corrected score:", "warning")
        return
    outside = not corrected.low <= calibration.judge.value <= corrected.high
    figure = estimate(corrected.value, corrected.low, corrected.high)
    alone = estimate(calibration.judge.value, calibration.judge.low, calibration.judge.high)
    known = "the judge's own score is outside of this interval" if outside else "the judge's own score is inside of it"
    worth = "" if calibration.worth is None else f" The labels are worth {calibration.worth:,.0f} without a judge."
    yield Text(
        f"{figure}, corrected by the labels; {known}: {alone}.{worth}",
        "What would people say?",
        "warning" if outside else "",
    )


def _scores(calibration: Calibration) -> Iterator[ShownFigure]:
    figures = {
        "judge alone": (calibration.judge, "series-2"),
        "labels alone": (calibration.human, "unknown"),
        "both: PPI++": (calibration.corrected, "series-3"),
        "both: PPI (lambda = 1)": (calibration.classical, "unknown"),
        "both: Rogan-Gladen": (calibration.rogan_gladen, "unknown"),
    }
    for name, (figure, tone) in figures.items():
        if figure is not None:
            is_main = figure is calibration.corrected
            yield ShownFigure(name, figure.value, figure.low, figure.high, is_strong=is_main, tone=tone)


def _agreement(calibration: Calibration) -> Iterator[Row]:
    rates = {
        "equal labels": calibration.agreement,
        "sensitivity: score 1 for label 1": calibration.sensitivity,
        "specificity: score 0 for label 0": calibration.specificity,
    }
    for name, rate in rates.items():
        if rate is not None:
            yield Row([name, number(rate.value), interval(rate.low, rate.high), f"{rate.count:,} / {rate.total:,}"])
    for name, figure in {"Cohen's kappa": calibration.kappa, "Pearson's correlation": calibration.correlation}.items():
        if figure is not None:
            yield Row([name, number(figure.value), interval(figure.low, figure.high), f"{calibration.labels:,}"])
    worth = DASH if calibration.worth is None else f"{calibration.worth:,.0f}"
    yield Row(["labels alone of the same precision", worth, "", ""])
    yield Row(["weight of the judge (lambda)", f"{calibration.power:.2f}", "", ""])
