"""Runs, rules, systems and weights side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.analysis.compare import NOT_SHOWN, MetricComparison, RunComparison
from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
from multimodal_eval.analysis.preferences import Preference, conclusion
from multimodal_eval.core.display import DASH, number, p_comparison, p_value
from multimodal_eval.core.judge_records import rates_by_the_judge
from multimodal_eval.report.charts.dots import DotChart, against, difference_chart, leader, series
from multimodal_eval.report.comparison_verdict import of_comparison
from multimodal_eval.report.displays.blocks import Block, Cell, Folded, Lines, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import ShownFigure, axis, bar, dots, figure_table, interval, percent
from multimodal_eval.report.wording import Verdict, counted, labels, signed

if TYPE_CHECKING:
    from multimodal_eval.analysis.composite import RunSensitivity, Sensitivity
    from multimodal_eval.analysis.crosswalk import Crosswalk
    from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable
    from multimodal_eval.analysis.leaderboard import Leaderboard, Standing

__all__ = [
    "crosswalk_blocks",
    "leaderboard_blocks",
    "metric_comparison_blocks",
    "preference_blocks",
    "rating_table_blocks",
    "run_comparison_blocks",
    "sensitivity_blocks",
]


def metric_comparison_blocks(metric: MetricComparison) -> list[Block]:
    """The scores of the runs, then every pair."""
    arrow = " ↓" if metric.direction == "lower" else ""
    scored = f"{metric.samples:,} of {counted(metric.samples + metric.left_out, 'sample')}"
    scores = [ShownFigure(system.name, system.value, system.low, system.high) for system in metric.systems]
    pairs = [
        ShownFigure(
            f"{pair.second} − {pair.first}",
            pair.difference,
            pair.low,
            pair.high,
            [p_value(pair.p_holm), f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}", pair.verdict],
            tone={"better": "good", "worse": "bad"}.get(pair.verdict, "unknown"),
        )
        for pair in metric.pairs
    ]
    return [
        Text(f"{metric.name}{arrow}, {scored} scored in all runs", tone="strong"),
        figure_table(scores, "run"),
        figure_table(pairs, "difference", ["p (Holm)", "better / tie / worse", "verdict"], sign="+"),
        Folded("Signature", [Table(["signature"], [Row([metric.signature])])]),
    ]


_SHORT = {NOT_SHOWN: "not shown"}  # the column has little room


def run_comparison_blocks(comparison: RunComparison) -> list[Block]:
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


def crosswalk_blocks(crosswalk: Crosswalk) -> list[Block]:
    """The score under each rule, and samples that the rules score differently."""
    title = f"{crosswalk.metric} under {counted(len(crosswalk.rules), 'rule')}, {counted(crosswalk.samples, 'sample')}"
    figures = [
        ShownFigure(
            rule.rule,
            rule.score.value,
            rule.score.low,
            rule.score.high,
            [
                ""
                if rule.difference is None
                else signed(rule.difference.value, rule.difference.low, rule.difference.high),
                f"{rule.scored:,}",
                f"{rule.unread:,}",
            ],
            bounds=(0, 1),
        )
        for rule in crosswalk.rules
    ]
    heads = ["id", "answer", "expected", *(rule.rule for rule in crosswalk.rules)]
    rows = [Row([each.id, each.answer, each.gold, *each.readings]) for each in crosswalk.examples]
    return [
        Text(title, tone="strong"),
        figure_table(figures, "rule", ["minus the first", "scored", "unread"]),
        Text(f"Not scored equally by all rules: {counted(crosswalk.differing, 'sample')}."),
        Folded("Samples that the rules read differently", [Table(heads, rows, left=len(heads))]),
    ]


def sensitivity_blocks(result: Sensitivity) -> list[Block]:
    """The composites under varied weights, who swaps ranks, and the parts of each run."""
    title = f"The composite under varied weights, {counted(result.samples, 'sample')}"
    varied = [ShownFigure(run.run, run.value, run.low, run.high, bounds=(0, 1)) for run in result.runs]
    shown: list[Block] = [Text(title, tone="strong"), figure_table(varied, "run")]
    shown += [Text(f"{a} and {b} swap ranks in {percent(share)} of the draws.") for a, b, share in result.flips]
    shown += [_parts(run) for run in result.runs]
    if result.left_out:
        shown.append(Notes([f"left out: {counted(result.left_out, 'sample')} without a composite"]))
    method = (
        f"The intervals hold 95 % of {result.draws:,} draws of weights around the configured ones (Dirichlet, "
        f"concentration {result.concentration:g}, seed {result.seed}). Effective weight: the part's share of the "
        "composite's variance. Without: the composite if the part's weight is distributed over the others."
    )
    return [*shown, Text(method, tone="quiet")]


def _parts(run: RunSensitivity) -> Table:
    rows = [
        Row(
            [
                part.part,
                bar(part.effective or 0.0),
                percent(part.weight),
                percent(part.effective),
                number(part.mean),
                number(part.without),
            ]
        )
        for part in run.parts
    ]
    return Table(["part", "", "weight", "effective weight", "mean", "without"], rows, title=f"Parts of {run.run}")


_OTHERS = 6  # columns of other metrics


def leaderboard_blocks(board: Leaderboard) -> list[Block]:
    """Best first."""
    arrow = " ↓" if board.direction == "lower" else ""
    count = counted(len(board.standings), "submission")
    title = f"Leaderboard by {board.number}{arrow}: {count}, {counted(board.samples, 'sample')}"
    notes = [f"{refused.name} is refused: {refused.reason}" for refused in board.refused]
    if board.left_out:
        notes.append(f"left out for all: {counted(board.left_out, 'sample')}")
    if any(row.failures for row in board.standings):
        notes.append(f"{rule_in_words(board.failed_answers)}.")
    failed = (row for row in board.standings if row.failures)
    notes += [f"{row.name}: failed answers: {failures_in_words(row.failures)}" for row in failed]
    shown: list[Block] = [Text(title, tone="strong")]
    if board.standings:
        more = ["tied with places", "behind", "p", *(["calibrated"] if _has_labels(board) else [])]
        shown.append(figure_table([_figure(row, board) for row in board.standings], "place", more))
        shown.append(Text("tied with: places from which it does not differ beyond chance.", tone="quiet"))
    shown.append(Notes(notes))
    if board.standings and (others := [name for name in board.standings[0].numbers if name != board.number][:_OTHERS]):
        rows = [Row([row.name, *(number(row.numbers.get(name)) for name in others)]) for row in board.standings]
        shown.append(Folded("Other metrics", [Table(["submission", *others], rows)]))
    shown.append(Folded("Signature", [Table(["signature"], [Row([board.signature])])]))
    return shown


def _has_labels(board: Leaderboard) -> bool:
    return any(row.calibrated is not None for row in board.standings)


def _figure(row: Standing, board: Leaderboard) -> ShownFigure:
    places = {other.name: other.place for other in board.standings}
    tied = DASH if row.tied_with is None else ", ".join(map(str, sorted(places[name] for name in row.tied_with)))
    behind = number(row.behind) if row is not board.standings[0] else ""
    more = [tied, behind, "" if row.p_value is None else p_value(row.p_value)]
    if _has_labels(board):
        more.append(DASH if row.calibrated is None else number(row.calibrated.value))
    return ShownFigure(f"{row.place}. {row.name}", row.value, row.low, row.high, more)


def preference_blocks(preference: Preference) -> list[Block]:
    """The win rate, what length and order change, and the conclusion."""
    title = f"{preference.system} against {preference.baseline} by {preference.metric}"
    p = "" if preference.p_value is None else f", {p_comparison(preference.p_value)}"
    counts = (
        f"{counted(preference.wins, 'win')}, {counted(preference.ties, 'tie')} and {preference.losses:,} losses in "
        f"{preference.scored:,} of {counted(preference.pairs, 'pair')}{p}"
    )
    named = {
        f"win rate of {preference.system}": preference.win_rate,
        "at equal lengths": preference.length_controlled,
        "pairs whose winner changes with the order": preference.flips,
        "verdicts for the answer shown first": preference.first,
    }
    figures = [
        ShownFigure(name, figure.value, figure.low, figure.high, bounds=(0, 1), is_strong=figure is preference.win_rate)
        for name, figure in named.items()
        if figure is not None
    ]
    failures = [f"{failure.id}: {failure.reason}" for failure in preference.failures]
    verdict = Text(conclusion(preference), "Verdict:", "good" if preference.better is not None else "")
    return [Text(title, tone="strong"), verdict, Text(counts), figure_table(figures, "share"), Notes(failures)]


def rating_table_blocks(table: RatingTable) -> list[Block]:
    """Ratings with intervals and the ranks that they allow."""
    title = f"Ratings of {counted(len(table.systems), 'system')} by {table.metric} ({table.scale} scale)"
    figures = [
        ShownFigure(
            system.name,
            system.rating,
            system.low,
            system.high,
            [_ranks(system), f"{system.wins:,.10g} / {system.ties:,.10g} / {system.losses:,.10g}"],
        )
        for system in table.systems
    ]
    shown: list[Block] = [Text(title, tone="strong"), figure_table(figures, "system", ["rank", "wins / ties / losses"])]
    notes = [rates_by_the_judge(table.metric), *table.notes]
    if table.unscored:
        notes.append(f"{counted(table.unscored, 'comparison')} of {table.samples:,} have no verdict")
    method = Text(f"{table.model}; {table.method}", tone="quiet")
    return [*shown, method, Notes(notes), Folded("Signature", [Table(["signature"], [Row([table.signature])])])]


def _ranks(system: RatedSystem) -> str:
    same = system.best_rank == system.worst_rank
    return f"{system.best_rank}" if same else f"{system.best_rank} to {system.worst_rank}"
