"""A comparison of runs: the verdict in sentences, and the paired differences of all metrics as a forest plot."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.analysis.compare import NOT_SHOWN, RunComparison
from multimodal_eval.report.charts.differences import against, difference_chart, leader
from multimodal_eval.report.charts.dots import DotChart, series
from multimodal_eval.report.charts.labels import labels
from multimodal_eval.report.displays.blocks import Block, Cell, Folded, Lines, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import axis, dots
from multimodal_eval.report.displays.figures import ShownFigure, figure_table, interval
from multimodal_eval.report.verdict.compared import of_comparison
from multimodal_eval.report.verdict.sentence import Verdict, counted

__all__ = ["blocks"]

_SHORT = {NOT_SHOWN: "not shown"}  # the column has little room


def blocks(comparison: RunComparison) -> list[Block]:
    """Verdict, forest plot, corrected differences, scores, signatures."""
    main = comparison.headline or (comparison.numbers[0].name if comparison.numbers else "")
    runs = " and ".join(comparison.runs) if len(comparison.runs) == 2 else f"{len(comparison.runs)} runs"
    title = f"Comparison of {runs} on {counted(comparison.samples, 'sample')}"
    shown: list[Block] = [Text(title, tone="strong")]
    shown += [as_text(verdict) for verdict in of_comparison(comparison, main)]
    chart = difference_chart(comparison, main)
    if chart is not None:
        shown += [_forest(chart, comparison, main), Text(_unit(comparison, main), tone="quiet")]
    if corrected := list(_corrected(comparison)):
        shown.append(
            figure_table(corrected, "metric", ["labels"], title="Differences corrected by human labels", sign="+")
        )
        shown.append(Notes(list(_reversed(comparison))))
    if comparison.left_out:
        shown.append(Notes([f"not scored in all runs: {', '.join(comparison.left_out)}"]))
    shown.append(Folded("Scores of each run", [_scores(comparison)]))
    signatures = Table(["metric", "signature"], [Row([m.name, m.signature]) for m in comparison.numbers], left=2)
    shown.append(Folded("Signatures: the settings that change a score", [signatures]))
    return shown


def as_text(verdict: Verdict) -> Text:
    """The question in bold, then the answer."""
    return Text(verdict.answer, verdict.question, verdict.tone)


def _forest(chart: DotChart, comparison: RunComparison, main: str) -> Table:
    """One row per metric; with more than two runs, one dot per run."""
    several = len(comparison.runs) > 2
    names = labels(comparison.runs)
    order = list(names)
    by_name = {metric.name: metric for metric in comparison.numbers}
    rows = []
    for each in chart.panels:
        for row in each.rows:
            cells: list[Cell] = [row.label + (" ↓" if row.is_lower_better else ""), dots(row, each)]
            if several:
                runs = [difference.run for difference in against(by_name[row.name], leader(comparison, main))]
                cells.append(Lines([names[run] for run in runs], [series(order.index(run)) for run in runs]))
            texts = [[_SHORT.get(text, text) for text in column] for column in row.texts]
            rows.append(Row([*cells, *map(Lines, texts)], row.is_main))
        rows.append(Row(["", axis(each), *[""] * (len(chart.heads) + several)], is_axis=True))
    heads = [head if head != chart.heads[0] else "difference [95 % interval]" for head in chart.heads]
    return Table(["metric", "", *(["run"] if several else []), *heads], rows, left=3 if several else 1)


def _unit(comparison: RunComparison, main: str) -> str:
    baseline = leader(comparison, main)
    what = f"{comparison.runs[1]} minus {baseline}" if len(comparison.runs) == 2 else f"each run minus {baseline}"
    return (
        f"Differences are {what}; dots to the right of the line are better. The scale is in standard deviations of the "
        f"paired differences. p: paired randomization, {comparison.rounds:,} rounds, seed {comparison.seed}."
    )


def _corrected(comparison: RunComparison) -> Iterator[ShownFigure]:
    """The differences for which both runs have human labels."""
    several = len(comparison.runs) > 2
    for metric in comparison.numbers:
        counts = {system.name: system.calibrated.labels for system in metric.systems if system.calibrated is not None}
        for pair in metric.pairs:
            if (figure := pair.calibrated) is None:
                continue
            name = f"{metric.name}: {pair.second} − {pair.first}" if several else metric.name
            both = {f"{counts[run]:,}" for run in (pair.first, pair.second) if run in counts}
            tone = "series-3"
            yield ShownFigure(f"{name}, metric alone", pair.difference, pair.low, pair.high, [""], tone="series-2")
            yield ShownFigure(
                f"{name}, corrected",
                figure.value,
                figure.low,
                figure.high,
                [", ".join(sorted(both))],
                tone=tone,
                is_strong=True,
            )


def _reversed(comparison: RunComparison) -> Iterator[str]:
    """Differences that human labels turn around: by the metric and by the labels, the interval excludes zero."""
    for metric in comparison.numbers:
        for pair in metric.pairs:
            corrected = pair.calibrated
            if corrected is not None and _side(pair.low, pair.high) * _side(corrected.low, corrected.high) < 0:
                yield f"{metric.name}: people say the opposite. The labels reverse the order of the two runs"


def _side(low: float | None, high: float | None) -> int:
    """On which side of zero an interval is; 0 if it includes zero."""
    return 0 if low is None or high is None else int(low > 0) - int(high < 0)


def _scores(comparison: RunComparison) -> Table:
    names = labels(comparison.runs)
    rows = [
        Row(
            [metric.name, names.get(system.name, system.name), f"{system.value:.4f}", interval(system.low, system.high)]
        )
        for metric in comparison.numbers
        for system in metric.systems
    ]
    return Table(["metric", "run", "score", "95 % interval"], rows, left=2)
