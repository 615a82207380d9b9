"""Metrics, such as a judge, against human labels and ratings, and which samples to label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import DASH, p_value, printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import Calibration, Rate
from multimodal_eval.display.blocks import (
    Block,
    Chart,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Grid,
    GridCell,
    GridRow,
    Row,
    Series,
    Table,
    Text,
    Tone,
    Verdict,
)
from multimodal_eval.display.wording import counted, estimate

if TYPE_CHECKING:
    from multimodal_eval.analysis.meta import MetaEvaluation, MetaSuite, MetricPair
    from multimodal_eval.run.calibrate import CalibratedDifference, CalibratedRun
    from multimodal_eval.run.label_plan import Forecast, LabelPlan

__all__ = [
    "COEFFICIENTS",
    "calibrated_differences",
    "calibrated_run_blocks",
    "calibration_blocks",
    "label_plan_blocks",
    "meta_evaluation_blocks",
    "meta_suite_blocks",
    "rate_figure",
]

_UNIT = (0.0, 1.0)


def rate_figure(rate: Rate, name: str = "") -> Figure:
    """A share as a figure: how many of how many."""
    return Figure(
        rate.value, None, rate.low, rate.high, "", n_scored=rate.count, n_total=rate.total, name=name, bounds=_UNIT
    )


def calibration_blocks(calibration: Calibration, name: str = "") -> Iterator[Block]:
    """What people would say, the scores by every method, how well metric and labels agree, and the curve."""
    labelled = f"{calibration.labels:,} of {calibration.samples:,} samples labelled in {calibration.column}"
    yield from _verdict(calibration)
    scores = [
        FigureRow(replace(figure, name=by, n_scored=scored, n_total=calibration.samples), is_strong=is_main)
        for by, figure, scored, is_main in _scores(calibration)
    ]
    title = f"{printed(name)}: {labelled}" if name else labelled
    yield Figures(scores, ("by",), title=title, counts="samples used")
    worth = "" if calibration.worth is None else f"worth {calibration.worth:,.0f} labels alone; "
    weight = f"{worth}weight of the metric (lambda): {calibration.power:.2f}"
    yield Figures(list(_agreement(calibration)), ("metric and labels",), value="value", caption=weight, counts="labels")
    if calibration.curve:
        points = [Figure(each.human, None, each.low, each.high, "", n_scored=each.n) for each in calibration.curve]
        series = Series("mean label", points, [each.judge for each in calibration.curve])
        yield Chart("curve", [series], "labels by score", "score", counts="labels")
    yield from map(Finding, (*calibration.notes, *_undefined(calibration)))


def _verdict(calibration: Calibration) -> Iterator[Verdict]:
    corrected = calibration.corrected
    if corrected.value is None or corrected.low is None or corrected.high is None or calibration.judge.value is None:
        yield Verdict(f"Not known: {corrected.method}.", "What would people say?", "warning")
        return
    outside = not corrected.low <= calibration.judge.value <= corrected.high
    figure = estimate(corrected.value, corrected.low, corrected.high)
    alone = estimate(calibration.judge.value, calibration.judge.low, calibration.judge.high)
    place = "outside" if outside else "inside"
    sentence = f"{figure}, corrected by the labels. The metric alone is {place} of this interval: {alone}."
    yield Verdict(sentence, "What would people say?", "warning" if outside else "")


def _scores(calibration: Calibration) -> Iterator[tuple[str, Figure, int, bool]]:
    """Who says it, the score, the samples that it uses, and whether it is the one to report."""
    labels, samples = calibration.labels, calibration.samples
    yield "metric alone", calibration.judge, samples, False
    yield "labels alone", calibration.human, labels, False
    yield "both: PPI++", calibration.corrected, samples, True
    if calibration.classical is not None:
        yield "both: PPI (lambda = 1)", calibration.classical, samples, False
    if calibration.rogan_gladen is not None:
        yield "both: Rogan-Gladen", calibration.rogan_gladen, samples, False


def _agreement(calibration: Calibration) -> Iterator[FigureRow]:
    rates = {
        "equal labels": calibration.agreement,
        "sensitivity: score 1 for label 1": calibration.sensitivity,
        "specificity: score 0 for label 0": calibration.specificity,
    }
    for name, rate in rates.items():
        if rate is not None:
            yield FigureRow(rate_figure(rate, name))
    for name, figure in (("Cohen's kappa", calibration.kappa), ("Pearson's correlation", calibration.correlation)):
        if figure is not None:
            yield FigureRow(replace(figure, name=name, n_scored=calibration.labels))


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


def calibrated_run_blocks(result: CalibratedRun) -> Iterator[Block]:
    """One section per metric."""
    for metric, calibration in result.metrics.items():
        yield from calibration_blocks(calibration, f"{result.name}, {printed(metric)}")
    if result.left_out:
        yield Text(f"{result.left_out:,} labels in the file are of other runs, and are left out", tone="quiet")


def calibrated_differences(pairs: Sequence[CalibratedDifference]) -> Iterator[Block]:
    """The differences of runs, corrected by human labels."""
    if not pairs:
        return
    rows = [FigureRow(pair.difference, (printed(pair.metric), pair.first, pair.second)) for pair in pairs]
    title = "differences, calibrated by human labels"
    yield Figures(rows, ("metric", "A", "B"), value="B - A", title=title, is_difference=True)
    yield from map(Finding, dict.fromkeys(pair.difference.method for pair in pairs if pair.difference.low is None))


def label_plan_blocks(plan: LabelPlan) -> Iterator[Block]:
    """The half width of the interval now, and with the samples that are drawn."""
    if rows := list(_widths(plan)):
        title = f"{printed(plan.metric)}: {plan.known:,} of {plan.samples:,} samples labelled"
        yield Table(["interval of the corrected score", "labels", "± at 95%"], rows, title=title)
    if plan.forecast is None:
        yield Text("How narrow the interval will be is known from 20 labels on (--human).")
    else:
        yield from map(Text, _forecast(plan.forecast))
    for note in plan.notes:
        yield Text(note, tone="quiet")


def _widths(plan: LabelPlan) -> Iterator[Row]:
    if plan.half_width is not None:
        yield Row(["now", f"{plan.known:,}", f"{plan.half_width:.4f}"])
    if (forecast := plan.forecast) is not None:
        yield Row(["with the samples drawn here", f"{forecast.labels:,}", f"{forecast.half_width:.4f}"], is_strong=True)
        yield Row(["drawn uniformly", f"{forecast.labels:,}", f"{forecast.uniform:.4f}"])
        yield Row(["without the judge", f"{forecast.labels:,}", f"{forecast.alone:.4f}"])
        if forecast.needed is not None:
            yield Row(["wanted", f"{forecast.needed:,}", DASH])


def _forecast(forecast: Forecast) -> Iterator[str]:
    worth = f"{counted(forecast.labels, 'label')} are worth {forecast.worth:,.0f} without a judge"
    yield f"The judge correlates with the labels by {forecast.correlation:.2f}: {worth}."
    if forecast.calls_per_label is not None:
        yield f"One more label is as good as about {forecast.calls_per_label:,.0f} more judged samples."


COEFFICIENTS = {
    "tau_b": "tau-b",
    "tau_c": "tau-c",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "acc_eq": "acc_eq",
    "strict": "accuracy, ties wrong",
    "auroc": "AUROC",
    "system_tau_b": "systems, tau-b",
    "system_spearman": "systems, Spearman",
    "system_pearson": "systems, Pearson",
}
CEILING = "one annotator"


def meta_evaluation_blocks(meta: MetaEvaluation) -> Iterator[Block]:
    """Every coefficient of each metric, the pairs of metrics, calibrations, and what is left out."""
    what = {"pairs": "pair", "foils": "pair", "systems": "battle"}.get(meta.form, "sample")
    judged = f"{counted(meta.n_judgments, 'human judgment')} of {counted(meta.n_samples, what)}"
    title = f"{meta.name}: " * bool(meta.name) + f"agreement with {judged} in {counted(meta.n_clusters, 'cluster')}"
    yield Figures(
        list(_coefficients(meta)), ("metric", "coefficient"), (), ("epsilon",), "value", title, counts="judgments"
    )
    if meta.pairs:
        pairs = [_pair(pair, meta) for pair in meta.pairs]
        title = f"{_head(meta.coefficient)} of A minus that of B"
        note = "▲ A agrees better, ▼ B agrees better, beyond chance: Holm-corrected p at most 0.05"
        yield Figures(
            pairs, ("A", "B"), (), ("p (Holm)",), "A - B", title, note, is_difference=True, counts="judgments"
        )
    for name, calibration in meta.calibrations.items():
        yield from calibration_blocks(calibration, name)
    for left in meta.left_out:
        yield Finding(f"{left.judgments:,} judgments excluded: {left.reason}")
    yield from map(Finding, meta.notes)
    yield from _undefined_coefficients(meta)
    if signatures := list(dict.fromkeys(text for text in meta.signatures.values() if text)):
        yield Folded("signatures", [Text(f"  {text}", tone="quiet", is_code=True) for text in signatures])


def meta_suite_blocks(suite: MetaSuite) -> Iterator[Block]:
    """One grid of metrics by sets, in which every set has the coefficient that is published for it, and the notes."""
    names = list(dict.fromkeys(name for each in suite.sets for name in each.metrics))
    rows = [GridRow(printed(name), [_cell(each, name) for each in suite.sets]) for name in names]
    if any(each.ceiling for each in suite.sets):
        ends = [each.ceiling.get(each.coefficient) for each in suite.sets]
        rows.append(GridRow(CEILING, [GridCell(figure, "" if figure else DASH) for figure in ends]))
    yield Grid(
        "metric",
        [each.name for each in suite.sets],
        rows,
        below=[
            [_head(each.coefficient), f"{each.n_judgments:,} judgments", f"{each.n_clusters:,} images"]
            for each in suite.sets
        ],
        title="agreement with people, times 100",
        caption=f"{BEST} the best of its column, and those not significantly worse (paired tests, Holm)",
        digits=1,
        scale=100,
    )
    for each in suite.sets:
        yield from (
            Finding(f"{each.name}: {left.judgments:,} judgments excluded: {left.reason}") for left in each.left_out
        )
    yield from map(Finding, dict.fromkeys(note for each in suite.sets for note in each.notes))


BEST = "▲"


def _cell(meta: MetaEvaluation, name: str) -> GridCell:
    figure = meta.metrics.get(name, {}).get(meta.coefficient)
    if figure is None or figure.value is None:
        return GridCell(text=DASH)
    values = {other: figures[meta.coefficient].value for other, figures in meta.metrics.items()}
    best = max((value, other) for other, value in values.items() if value is not None)[1]
    worse = [pair for pair in meta.pairs if {pair.metric, pair.other} == {best, name} and pair.better == best]
    return GridCell(replace(figure, direction="higher"), mark="" if worse else BEST, is_strong=name == best)


def _head(coefficient: str) -> str:
    return COEFFICIENTS.get(coefficient, coefficient)


def _coefficients(meta: MetaEvaluation) -> Iterator[FigureRow]:
    ceiling = {CEILING: meta.ceiling} if meta.ceiling else {}
    for name, figures in {**meta.metrics, **ceiling}.items():
        shown = name if name == CEILING else printed(name)
        for coefficient, figure in figures.items():
            epsilon = "" if figure.epsilon is None else f"{figure.epsilon:.4g}"
            names = (shown, _head(coefficient))
            counts = replace(figure, n_scored=meta.n_judgments, direction="higher", level=meta.level, name=name)
            yield FigureRow(counts, names, after=[epsilon], is_strong=coefficient == meta.coefficient)
            shown = ""


def _pair(pair: MetricPair, meta: MetaEvaluation) -> FigureRow:
    ends = pair.difference, pair.stderr, pair.low, pair.high
    figure = Figure(*ends, pair.method, n_scored=meta.n_judgments, direction="higher", level=meta.level)
    tone: Tone = "" if pair.better is None else "good" if pair.better == pair.metric else "bad"
    return FigureRow(figure, (printed(pair.metric), printed(pair.other)), after=[p_value(pair.p_holm)], tone=tone)


def _undefined_coefficients(meta: MetaEvaluation) -> Iterator[Finding]:
    """Why values or intervals are missing; those with the same reason share a finding."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, figures in meta.metrics.items():
        for coefficient, figure in figures.items():
            if figure.low is None:
                reasons.setdefault((name, figure.method), []).append(_head(coefficient))
    for (name, method), heads in reasons.items():
        yield Finding(f"{method} ({', '.join(heads)})", about=[name])
