"""Judges and people: judges against human labels, what is known about them, samples to label, metrics and people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.core.display import DASH, number, p_value
from multimodal_eval.core.judge_records import Calibration, JudgeFindings, JudgesReport
from multimodal_eval.report.displays.blocks import Block, Folded, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import ShownFigure, curve, figure_table, interval
from multimodal_eval.report.wording import counted, estimate

if TYPE_CHECKING:
    from multimodal_eval.analysis.meta import MetaEvaluation
    from multimodal_eval.run.calibrate import CalibratedRun
    from multimodal_eval.run.label_plan import Forecast, LabelPlan

__all__ = [
    "calibrated_run_blocks",
    "calibration_blocks",
    "judge_findings_blocks",
    "judges_report_blocks",
    "label_plan_blocks",
    "meta_evaluation_blocks",
]


def calibration_blocks(calibration: Calibration) -> list[Block]:
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


def calibrated_run_blocks(result: CalibratedRun) -> list[Block]:
    """One section per metric."""
    shown: list[Block] = []
    for metric, content in result.metrics.items():
        shown += [Text(f"{result.name}, {metric}", tone="strong"), *calibration_blocks(content)]
    if result.left_out:
        shown.append(Text(f"{result.left_out:,} labels of the file are of other runs, and are left out", tone="quiet"))
    return shown


def judge_findings_blocks(findings: JudgeFindings) -> list[Block]:
    """Who judged, how consistent the verdicts are, and what human labels say."""
    title = f"Judge ({findings.form}): {', '.join(findings.models)}, {findings.questions:,} questions"
    shown: list[Block] = [Text(title, tone="strong")]
    if figures := list(_figures(findings)):
        shown.append(figure_table(figures, "finding", ["of"]))
    failed = {**findings.unreadable, **findings.failed}
    notes = [*findings.warnings, *(f"{count:,} × {reason}" for reason, count in failed.items())]
    if findings.injections:
        notes.append(f"{findings.injections:,} answers address the judge")
    shown.append(Notes(notes))
    return [*shown, *([] if findings.calibration is None else calibration_blocks(findings.calibration))]


def _figures(findings: JudgeFindings) -> Iterator[ShownFigure]:
    unit = (0, 1)
    if (flips := findings.flips) is not None:
        named = {
            "verdicts that turn around with the order": flips.flips,
            "verdicts that differ between the orders": flips.disagreements,
            "verdicts for the answer shown first": flips.first,
        }
        for name, rate in named.items():
            yield ShownFigure(name, rate.value, rate.low, rate.high, [f"{rate.total:,}"], unit)
    if (length := findings.length) is not None:
        rate = length.longer_wins
        yield ShownFigure(
            "pairs that the longer answer wins", rate.value, rate.low, rate.high, [f"{rate.total:,}"], unit
        )
    for member in findings.panel:
        mean = member.mean
        yield ShownFigure(f"mean of {member.model}", mean.value, mean.low, mean.high, [""], unit)
    for each in findings.agreement:
        name = f"Krippendorff's alpha between {each.between}"
        yield ShownFigure(name, each.alpha.value, each.alpha.low, each.alpha.high, [f"{each.units:,}"])


def judges_report_blocks(report: JudgesReport) -> list[Block]:
    """One section per metric."""
    shown: list[Block] = []
    for metric, findings in report.metrics.items():
        shown += [Text(metric, tone="strong"), *judge_findings_blocks(findings)]
    return shown or [Text("no judge was asked")]


def label_plan_blocks(plan: LabelPlan) -> list[Block]:
    """The interval now, and with the samples that are drawn."""
    title = f"{plan.metric}: {plan.known:,} of {plan.samples:,} samples labelled, {plan.drawn:,} drawn for labelling"
    shown: list[Block] = [Text(title, tone="strong")]
    if rows := list(_rows(plan)):
        shown.append(Table(["interval of the corrected score", "labels", "± at 95 %"], rows))
    if plan.forecast is None:
        shown.append(Text("How narrow the interval will be is known from 20 labels on.", tone="quiet"))
    else:
        shown.append(Text(_sentence(plan.forecast)))
    return [*shown, Notes(plan.notes)]


def _rows(plan: LabelPlan) -> Iterator[Row]:
    if plan.half_width is not None:
        yield Row(["now", f"{plan.known:,}", f"{plan.half_width:.4f}"])
    if (forecast := plan.forecast) is not None:
        yield Row(["with the samples drawn here", f"{forecast.labels:,}", f"{forecast.half_width:.4f}"], is_strong=True)
        yield Row(["drawn uniformly", f"{forecast.labels:,}", f"{forecast.uniform:.4f}"])
        yield Row(["without the judge", f"{forecast.labels:,}", f"{forecast.alone:.4f}"])


def _sentence(forecast: Forecast) -> str:
    needed = "" if forecast.needed is None else f" The wanted width needs {counted(forecast.needed, 'label')}."
    more = (
        ""
        if forecast.calls_per_label is None
        else (f" One more label is as good as about {forecast.calls_per_label:,.0f} more judged samples.")
    )
    return (
        f"The judge correlates with the labels by {forecast.correlation:.2f}: {counted(forecast.labels, 'label')} are "
        f"worth {forecast.worth:,.0f} without a judge.{more}{needed}"
    )


def meta_evaluation_blocks(meta: MetaEvaluation) -> list[Block]:
    """The chosen coefficient of each metric, the pairs of metrics, then all coefficients."""
    title = (
        f"{meta.coefficient} with {counted(meta.n_judgments, 'human judgment')} of {counted(meta.n_samples, 'sample')}"
    )
    figures = [
        ShownFigure(name, figure.value, figure.low, figure.high)
        for name, coefficients in meta.metrics.items()
        if (figure := coefficients.get(meta.coefficient)) is not None
    ]
    every = [
        Row([name, coefficient, number(figure.value), interval(figure.low, figure.high)])
        for name, coefficients in meta.metrics.items()
        for coefficient, figure in coefficients.items()
    ]
    pairs = [
        Row(
            [
                f"{pair.metric} − {pair.other}",
                number(pair.difference),
                interval(pair.low, pair.high),
                p_value(pair.p_holm),
            ]
        )
        for pair in meta.pairs
    ]
    left_out = [f"{each.judgments:,} judgments left out: {each.reason}" for each in meta.left_out]
    shown: list[Block] = [Text(title, tone="strong"), figure_table(figures, "metric")]
    if pairs:
        shown.append(Table(["difference", "value", "95 % interval", "p (Holm)"], pairs))
    heads = ["metric", "coefficient", "value", "95 % interval"]
    return [*shown, Notes([*meta.notes, *left_out]), Folded("All coefficients", [Table(heads, every, left=2)])]
