"""Runs over the same samples: what can be said, their differences and why, needed samples; answers under every rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import DASH, number, p_value, printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import (
    Block,
    Chart,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Row,
    Series,
    Table,
    Text,
    Tone,
    Verdict,
)
from multimodal_eval.display.comparison_verdict import CORRECTED, MARGINS, carried, of_comparison
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison, System
    from multimodal_eval.analysis.crosswalk import Crosswalk, DifferingSample
    from multimodal_eval.analysis.power import PowerTable
    from multimodal_eval.analysis.run_slices import SlicedMetric
    from multimodal_eval.analysis.why import Example, Part, Why
    from multimodal_eval.analysis.why_pairs import Key

__all__ = [
    "crosswalk_blocks",
    "difference",
    "metric_comparison_blocks",
    "power_blocks",
    "run_comparison_blocks",
    "scores_of_runs",
    "two_runs",
    "why_blocks",
    "why_sentence",
]

_ROUNDING = 5e-5  # of shown scores
_TONES: dict[str, Tone] = {"better": "good", "worse": "bad"}


def run_comparison_blocks(comparison: RunComparison, *, with_scores: bool = True) -> Iterator[Block]:
    """Verdict, differences, the same without human labels, power, remarks, methods, signatures.

    `with_scores`: the scores of two runs, folded, beside their differences.
    """
    main = comparison.headline or (comparison.numbers[0].name if comparison.numbers else "")
    for verdict in of_comparison(comparison, main):
        yield Verdict(verdict.answer, verdict.question, verdict.tone)
    if len(comparison.runs) == 2:
        yield two_runs(comparison, main)
    else:
        for metric in comparison.numbers:
            yield _ranking(metric, comparison.level, comparison.selection)
            yield _pairs(metric, comparison.level)
    if rows := list(_uncorrected(comparison)):
        heads = ("metric", "A", "B") if len(comparison.runs) > 2 else ("metric",)
        title = "not corrected by human labels"
        yield Figures(rows, heads, ("A", "B"), ("labels",), "B - A", title, is_difference=True)
    for each in comparison.slices:
        yield _slices(each)
        yield from (Finding(line, about=[each.metric]) for line in each.warnings)
    yield from _remarks(comparison, main)
    yield Text(comparison.test, tone="quiet")
    yield Folded("wins and needed samples", [_power(comparison)])
    if len(comparison.runs) == 2 and with_scores:
        yield Folded("scores of each run", scores_of_runs(comparison))
    signatures = [Row([printed(metric.name), metric.signature]) for metric in comparison.numbers]
    yield Folded("signatures", [Table(["metric", "signature"], signatures, left=2)])


def metric_comparison_blocks(metric: MetricComparison) -> list[Block]:
    """The scores of the runs, then every pair."""
    signature = Folded("Signature", [Text(metric.signature, is_code=True)])
    return [_ranking(metric, None), _pairs(metric, None), signature]


def _counted(
    metric: MetricComparison, figure: Figure, level: float | None, name: str, labels: int | None = None
) -> Figure:
    """A figure of the comparison, with the samples that it is about, or the labels that correct it."""
    return Figure(
        figure.value,
        figure.stderr,
        figure.low,
        figure.high,
        figure.method,
        n_scored=metric.samples,
        n_total=metric.samples + metric.left_out,
        labels=labels,
        direction="lower" if metric.direction == "lower" else "higher",
        name=name,
        level=level,
    )


def difference(metric: MetricComparison, pair: Pair, level: float | None = None) -> Figure:
    """The second run of a pair minus the first."""
    figure = Figure(pair.difference, pair.stderr, pair.low, pair.high, pair.method)
    return _counted(metric, figure, level, metric.name)


def scores_of_runs(comparison: RunComparison) -> list[Figures]:
    """Two runs in one table; the ranks of several, metric by metric."""
    if len(comparison.runs) > 2:
        return [_ranking(metric, comparison.level, comparison.selection) for metric in comparison.numbers]
    scores = [
        _score(metric, system, comparison.level, series)
        for metric in comparison.numbers
        for series, system in enumerate(metric.systems, 1)
    ]
    return [Figures(scores, ("metric", "run"))]


def _score(metric: MetricComparison, system: System, level: float | None, series: int) -> FigureRow:
    figure = Figure(system.value, system.stderr, system.low, system.high, system.method)
    shown = _counted(metric, figure, level, system.name, system.labels)
    return FigureRow(shown, (metric.name, system.name), series=series)


def two_runs(comparison: RunComparison, main: str, title: str = "", heads: Sequence[str] = ("A", "B")) -> Figures:
    """The scores of both runs, and the second minus the first."""
    rows = []
    for metric in comparison.numbers:
        (pair,) = metric.pairs
        rows.append(
            FigureRow(
                difference(metric, pair, comparison.level),
                before=[number(system.value) for system in metric.systems],
                after=[p_value(pair.p_value)],
                is_main=metric.name == main,
                remark=CORRECTED if metric.is_corrected else "",
                tone=_TONES.get(pair.verdict, ""),
            )
        )
    a, b = heads
    if not title:
        first, second = comparison.runs
        title = f"{a} = {first}, {b} = {second}, {counted(comparison.samples, 'sample')}{comparison.selection}"
    return Figures(rows, ("metric",), (a, b), ("p",), f"{b} - {a}", title, is_difference=True, counts="scored in both")


def _ranking(metric: MetricComparison, level: float | None, selection: str = "") -> Figures:
    sign = 1 if metric.direction == "lower" else -1
    rows = []
    for system in sorted(metric.systems, key=lambda system: (system.rank or 0, sign * system.value)):
        figure = Figure(system.value, system.stderr, system.low, system.high, system.method)
        rank = DASH if system.rank is None else str(system.rank)
        if system.ranks is not None and system.ranks[0] < system.ranks[1]:
            rank += f" ({system.ranks[0]} … {system.ranks[1]})"  # the ranks that chance leaves possible
        rows.append(FigureRow(_counted(metric, figure, level, system.name, system.labels), (rank, system.name)))
    marks = (" ↓" if metric.direction == "lower" else "") + (CORRECTED if metric.is_corrected else "")
    title = f"{printed(metric.name)}{marks}, {counted(metric.samples, 'sample')}{selection}"
    return Figures(rows, ("rank", "run"), value="value", title=title)


def _pairs(metric: MetricComparison, level: float | None) -> Figures:
    rows = [
        FigureRow(
            difference(metric, pair, level),
            (pair.first, pair.second),
            after=[p_value(pair.p_value)],
            tone=_TONES.get(pair.verdict, ""),
        )
        for pair in metric.pairs
    ]
    title = f"{printed(metric.name)}{CORRECTED if metric.is_corrected else ''}: B - A"
    return Figures(rows, ("A", "B"), (), ("p",), "B - A", title, is_difference=True)


def _uncorrected(comparison: RunComparison) -> Iterator[FigureRow]:
    """The differences that human labels correct, as they are without them, and how many labels there are."""
    several = len(comparison.runs) > 2
    for metric in comparison.numbers:
        systems = {system.name: system for system in metric.systems}
        for pair in metric.pairs:
            a, b = systems[pair.first], systems[pair.second]
            if pair.uncorrected is None or a.uncorrected is None or b.uncorrected is None:
                continue
            labels = f"{a.labels:,}" if a.labels == b.labels else f"{a.labels:,}, {b.labels:,}"
            names = (metric.name, pair.first, pair.second) if several else (metric.name,)
            figure = _counted(metric, pair.uncorrected, comparison.level, metric.name)
            yield FigureRow(figure, names, [number(a.uncorrected.value), number(b.uncorrected.value)], [labels])


def _power(comparison: RunComparison) -> Table:
    """Wins, ties and losses, the detectable difference, and the samples needed."""
    several = len(comparison.runs) > 2
    rows = []
    for metric in comparison.numbers:
        for pair in metric.pairs:
            names = [printed(metric.name), *([pair.first, pair.second] if several else [])]
            counts = f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}"
            needed = DASH if pair.needed is None else f"{pair.needed:,}"
            rows.append(Row([*names, counts, number(pair.detectable), needed]))
    left = ["metric", "A", "B"] if several else ["metric"]
    explained = (
        "detectable: the smallest true difference that this many samples show with 80% probability; needed: samples "
        "that show a difference of this size (or --effect) with 80% probability"
    )
    return Table([*left, "B better / tie / worse", "detectable", "needed"], rows, len(left), caption=explained)


def _remarks(comparison: RunComparison, main: str) -> Iterator[Finding]:
    """What to know about the differences; metrics with the same remark share it. The verdict says those of `main`."""
    remarks: dict[str, list[str]] = {}
    for name in comparison.left_out:
        remarks.setdefault("not scored in all runs and excluded", []).append(name)
    for metric in comparison.numbers:
        lines = []
        if metric.clusters is not None:
            lines.append(f"standard errors and p-values are based on {metric.clusters:,} groups, not on samples")
        if metric.name != main or len(comparison.runs) > 2:
            lines += (line for pair in metric.pairs for line in _pair_remarks(comparison, metric, pair))
        for line in dict.fromkeys([*lines, *_label_remarks(metric)]):
            remarks.setdefault(line, []).append(metric.name)
    for line, names in remarks.items():
        yield Finding(line, about=names)


def _pair_remarks(comparison: RunComparison, metric: MetricComparison, pair: Pair) -> Iterator[str]:
    """What is shown about a margin, and a sample that carries much of the difference."""
    of_pair = f" ({pair.second} - {pair.first})" if len(metric.pairs) > 1 else ""
    if pair.margin is not None:
        yield f"{MARGINS[pair.margin]} of {comparison.margin:g}{of_pair}"
    if pair.carried_by is not None:
        yield carried(pair.carried_by, of_pair)


def _slices(sliced: SlicedMetric) -> Figures:
    """The differences within the values of a column."""
    rows = [
        FigureRow(
            Figure(
                each.difference,
                None,
                each.low,
                each.high,
                each.method,
                n_scored=each.samples,
                n_total=each.total,
                name=each.value,
            ),
            (each.value,),
            after=[p_value(each.p_value)],
        )
        for each in sliced.slices
    ]
    title = f"{printed(sliced.metric)} by {sliced.column}: {sliced.second} - {sliced.first}, for all slices together"
    return Figures(rows, (sliced.column,), (), ("p",), "B - A", title, is_difference=True)


def _label_remarks(metric: MetricComparison) -> Iterator[str]:
    """Why differences are not corrected although runs have human labels, and what labels turn around."""
    if metric.remark is not None:
        yield metric.remark
    for pair in metric.pairs:
        without = pair.uncorrected
        if without is not None and _side(pair.low, pair.high) * _side(without.low, without.high) < 0:
            yield "people say the opposite. The labels reverse the order of the two runs"
    if any(_has_other_weight(metric, pair) for pair in metric.pairs):
        yield (
            "the corrected B - A is not the difference of the corrected scores: the judge has the weight (lambda) that "
            "suits differences"
        )


def _side(low: float | None, high: float | None) -> int:
    """On which side of zero an interval is; 0 if it includes zero."""
    return 0 if low is None or high is None else int(low > 0) - int(high < 0)


def _has_other_weight(metric: MetricComparison, pair: Pair) -> bool:
    """Whether the corrected difference is shown as another number than the difference of both scores."""
    values = {system.name: system.value for system in metric.systems}
    difference = values[pair.second] - values[pair.first]
    return pair.uncorrected is not None and abs(pair.difference - difference) > _ROUNDING


# How many samples a comparison needs, and which difference it can show.

_BAR = 30  # characters of a power of 1


def power_blocks(table: PowerTable) -> Iterator[Block]:
    """Numbers of samples with what they detect, then how many a difference needs, and what is assumed."""
    heads = ["samples", "detectable"] + ([] if table.effect is None else [f"power at {table.effect:g}", ""])
    rows = []
    for point in table.points:
        cells = [f"{point.samples:,}", number(point.detectable)]
        if point.power is not None:
            cells += [f"{point.power:.0%}", ("█" * round(_BAR * point.power)).ljust(_BAR, "░")]
        rows.append(Row(cells, is_strong=point.samples == table.needed))
    yield Table(heads, rows, 0, f"paired comparison: {table.spread.source}")
    if table.needed is not None:
        shown = f"detect a difference of {table.effect:g} with {table.wanted:.0%} probability"
        yield Text(f"{counted(table.needed, 'sample')} {shown}")
    spread = table.spread
    kind = (
        f"shares: {spread.lost:.2%} of the samples differ in each direction and cancel out"
        if spread.lost is not None
        else f"scores: the paired differences have the standard deviation {spread.deviation:.4f}"
    )
    groups = f"; design effect of groups {spread.design_effect:.2f}" if spread.design_effect != 1 else ""
    yield Text(f"{kind}{groups}", tone="quiet")
    yield Text(
        f"detectable: the smallest difference detected with {table.wanted:.0%} probability at p < .05", tone="quiet"
    )


_LETTERS = 60  # of an answer
_SAMPLES = 5


def crosswalk_blocks(crosswalk: Crosswalk, samples: int = _SAMPLES) -> Iterator[Block]:
    """The score under each rule, the differences from the first, and samples that the rules score differently."""
    first = crosswalk.rules[0].rule
    scores, changes = [], []
    for place, rule in enumerate(crosswalk.rules, 1):
        names = (str(place), rule.rule)
        scores.append(FigureRow(_of(rule.score, rule.scored, crosswalk.samples), names, after=[f"{rule.unread:,}"]))
        if rule.difference is not None:
            changes.append(FigureRow(_of(rule.difference, rule.compared, crosswalk.samples), names))
    title = f"{printed(crosswalk.metric)} by {crosswalk.option}, {counted(crosswalk.samples, 'sample')}"
    heads, unread = ("", crosswalk.option), "unread: answers in which the rule found nothing; they have the value "
    yield Figures(scores, heads, (), ("unread",), title=title, caption=f"{unread}that its origin gives")
    if changes:
        over = "over the samples that both rules score"
        yield Figures(
            changes, heads, (), (), "difference", f"minus {first}", over, is_difference=True, counts="compared"
        )
    numbers = [str(place) for place in range(1, len(crosswalk.rules) + 1)]
    matrix = [
        Row(
            [place, rule.rule, *("·" if str(other) == place else f"{count:,}" for other, count in enumerate(counts, 1))]
        )
        for place, rule, counts in zip(numbers, crosswalk.rules, crosswalk.disagreements, strict=True)
    ]
    yield Table([*heads, *numbers], matrix, 2, "samples that two rules score differently")
    unequal = "samples are not scored equally by all rules"
    yield Finding(unequal, level="note", count=crosswalk.differing, total=crosswalk.samples)
    if samples and crosswalk.examples:
        readings = [_readings(sample, crosswalk) for sample in crosswalk.examples[:samples]]
        yield Folded("samples that the rules read differently", readings, in_text=True)


def _of(figure: Figure, scored: int, total: int) -> Figure:
    return replace(figure, n_scored=scored, n_total=total, direction=figure.direction or "higher")


def _readings(sample: DifferingSample, crosswalk: Crosswalk) -> Table:
    """What the rules read in the answer, and which rule read it."""
    answer = " ".join(sample.answer.split())
    shown = answer if len(answer) <= _LETTERS else f"… {answer[-_LETTERS:]}"
    by_reading: dict[str, list[str]] = {}
    for rule, reading in zip(crosswalk.rules, sample.readings, strict=True):
        by_reading.setdefault(reading, []).append(rule.rule)
    rows = [Row([reading, ", ".join(rules)]) for reading, rules in by_reading.items()]
    return Table(["read", "by"], rows, 2, f"{sample.id}: {shown} (gold: {sample.gold[:_LETTERS]})")


_EXAMPLE_LETTERS = 160  # of an answer
_SHOWN = 3  # reasons in the sentence


def why_blocks(why: Why, samples: int = 2) -> Iterator[Block]:
    """The answer, its parts, what is not known, and some samples of each part. Shown parts add up to the total."""
    digits = 2 if why.unit == "points" else 4
    shown = _adding_up(why, digits)
    kept = [part for part in why.parts if part.value or part.moved or part.last]
    yield Verdict(why_sentence(why))
    if kept:
        yield _waterfall(why, kept, shown, digits)
        yield _table(why, kept, shown, digits)
    for part in kept:
        if part.settle:
            yield Finding(part.settle, level="note", about=[f"{part.name} ({part.confidence})"])
    for note in why.notes:
        yield Finding(note, level="note")
    for part in kept:
        if samples and part.examples:
            rows = [row for example in part.examples[:samples] for row in _sample_rows(example)]
            heads = ["sample", "side", "answer", "read", "gold", "score"]
            yield Folded(f"moved by {part.name}", [Table(heads, rows, 5, has_lines=True)])


def why_sentence(why: Why) -> str:
    """`4.11 points: 2.67 from reading …`, with the largest parts first."""
    digits = 2 if why.unit == "points" else 4
    shown = _adding_up(why, digits)
    parts = sorted((part for part in why.parts if part.value), key=lambda part: -abs(part.value))
    unit = "points" if why.unit == "points" else printed(why.unit)
    side = "above" if why.difference > 0 else "below"
    start = f"{why.b} is {float(abs(why.difference)):.{digits}f} {unit} {side} {why.a}"
    if not why.difference:
        start = f"{why.a} and {why.b} are equal"
    if not parts:
        return f"{start}, and no part of the chain differs"
    reasons = [_phrase(part, shown[part.key], digits) for part in parts[:_SHOWN]]
    if rest := parts[_SHOWN:]:
        total = sum((shown[part.key] for part in rest), Fraction(0))
        reasons.append(f"{_signed(total, digits)} from {', '.join(part.name for part in rest)}")
    return f"{start}: {'; '.join(reasons)}"


def _phrase(part: Part, value: Fraction, digits: int) -> str:
    moved = f" ({counted(part.moved, 'sample')}, {part.confidence})" if part.moved else f" ({part.confidence})"
    return f"{_signed(value, digits)} from {part.name}{f': {part.why}' if part.why else ''}{moved}"


def _signed(value: Fraction, digits: int) -> str:
    return f"{float(round(value, digits)):+.{digits}f}"


def _adding_up(why: Why, digits: int) -> dict[Key, Fraction]:
    """The parts, rounded so that they add up to the rounded difference: the largest remainders are rounded up."""
    unit = Fraction(1, 10**digits)
    scaled = [part.value / unit for part in why.parts]
    whole = [floor(value) for value in scaled]
    missing = round(why.difference / unit) - sum(whole)
    order = sorted(range(len(scaled)), key=lambda place: whole[place] - scaled[place])
    for place in order[:missing]:
        whole[place] += 1
    return {part.key: value * unit for part, value in zip(why.parts, whole, strict=True)}


def _waterfall(why: Why, parts: Sequence[Part], shown: Mapping[Key, Fraction], digits: int) -> Chart:
    """A, the steps, and B on one scale."""
    first, second = why.headlines
    figures = [_plain(first, why.a)]
    starts, at = [0.0], float(first)
    for part in parts:
        figures.append(_plain(shown[part.key], part.name))
        starts.append(at)
        at += float(part.value)
    figures.append(_plain(second, why.b))
    title = f"{printed(why.metrics[0])} of {why.a} to {printed(why.metrics[1])} of {why.b}, in {why.unit}"
    return Chart("waterfall", [Series("", figures, [*starts, 0.0])], title)


def _plain(value: Fraction, name: str) -> Figure:
    return Figure(float(value), None, None, None, "", name=name)


def _table(why: Why, parts: Sequence[Part], shown: Mapping[Key, Fraction], digits: int) -> Figures:
    rows = []
    for part in parts:
        last = _signed(part.last, digits)
        after = [last, f"{part.moved:,}", part.confidence, ", ".join(part.ids[:3]) + (", …" if part.moved > 3 else "")]
        rows.append(FigureRow(replace(part.figure, value=float(shown[part.key])), (part.name, part.why), after=after))
    both = f"{why.samples[2]:,} of {why.samples[0]:,} and {why.samples[1]:,} samples are in both"
    caption = f"{both}; if last: the same part taken at the end of the chain; sum of the parts: exactly the difference"
    heads, heads_after = ("part", "what differs"), ("if last", "moved", "confidence", "samples")
    return Figures(rows, heads, (), heads_after, why.unit, "parts", caption, is_difference=True, digits=digits)


def _sample_rows(example: Example) -> Iterator[Row]:
    for place, side in enumerate("AB"):
        cells = [example.id if place == 0 else "", side]
        cells += [_short(text[place]) for text in (example.answer, example.read, example.gold)]
        value = example.values[place]
        yield Row([*cells, "unscored" if value is None else f"{value:.4g}"])


def _short(text: str | None) -> str:
    """The end of a text, where the answer is."""
    words = " ".join((text or "").split())
    return words if len(words) <= _EXAMPLE_LETTERS else f"… {words[-_EXAMPLE_LETTERS:]}"
