"""What a comparison says: which run is better, whether the samples suffice, and whether the metrics agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multimodal_eval.core.display import p_comparison, printed
from multimodal_eval.display.wording import Tone, Verdict, amount, counted, estimate, label, listed, plain, signed

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import Carrier, MetricComparison, Pair, RunComparison

__all__ = ["MARGINS", "Difference", "against", "carried", "leader", "of_comparison"]


CORRECTED = ", corrected by human labels"  # after the name of a metric
WHICH, ENOUGH, AGREE = "Which run is better?", "Are there enough samples?", "Do the metrics agree?"


def of_comparison(comparison: RunComparison, main: str) -> Iterator[Verdict]:
    """The conclusions by the headline metric, and by the other metrics. Nothing if the headline is not compared."""
    metric = next((each for each in comparison.numbers if each.name == main), None)
    if metric is None or not metric.pairs:
        return
    if len(comparison.runs) == 2:
        yield _which_of_two(metric, metric.pairs[0], comparison)
        yield from _enough(metric, metric.pairs[0])
        yield from _agreement_of_two(comparison, metric)
    else:
        best = leader(comparison, main)
        others = against(metric, best)
        yield _which_of_many(metric, best, others, comparison)
        yield from _enough(metric, _closest(metric, best))
        yield from _agreement_of_many(comparison, metric, best)


def _coverage(metric: MetricComparison, where: str) -> str:
    total = metric.samples + metric.left_out
    return f"{metric.samples:,} of {counted(total, 'sample')} {'is' if total == 1 else 'are'} scored in {where}"


def _p(p: float | None) -> str:
    return "" if p is None else f", {p_comparison(p)}"


def _which_of_two(metric: MetricComparison, pair: Pair, comparison: RunComparison) -> Verdict:
    first, second, name = label(pair.first), label(pair.second), _name(metric)
    scored = _coverage(metric, "both")
    people = _remarks(metric, pair, comparison)
    if pair.verdict in ("better", "worse"):
        by = amount(pair.difference, pair.low, pair.high)
        answer = f"{second} is {pair.verdict} than {first} by {by} on {name}{_p(pair.p_value)}{people}; {scored}."
        return Verdict(WHICH, answer, "good" if pair.verdict == "better" else "bad")
    if pair.stderr == 0 and pair.difference == 0 and pair.low is None:
        return Verdict(WHICH, f"{first} and {second} are identical by {name}; {scored}.")
    difference = signed(pair.difference, pair.low, pair.high)
    return Verdict(
        WHICH,
        f"No difference between {first} and {second} is shown on {name}: {second} minus {first} is "
        f"{difference}{_p(pair.p_value)}{people}; {scored}.",
    )


def _name(metric: MetricComparison) -> str:
    """The metric, and whether human labels correct it."""
    return f"{label(printed(metric.name))}{CORRECTED if metric.is_corrected else ''}"


def _remarks(metric: MetricComparison, pair: Pair, comparison: RunComparison) -> str:
    """What the verdict rests on: labels, one sample, no part of the composite; and what is shown about a margin."""
    remarks = ""
    if pair.uncorrected is not None:
        without = pair.uncorrected
        remarks += f"; uncorrected, the difference is {signed(without.value, without.low, without.high)}"
    if pair.carried_by is not None:
        remarks += f"; {carried(pair.carried_by)}"
    if metric.parts and pair.verdict in ("better", "worse") and not _is_supported(metric, pair, comparison):
        remarks += "; no part of the composite shows this difference"
    if pair.margin is not None:
        remarks += f"; {MARGINS[pair.margin]}"
    return remarks


def carried(carrier: Carrier, of_pair: str = "") -> str:
    """A sample that carries much of a difference."""
    without = signed(carrier.without, None, None)
    return (
        f"the sample {label(carrier.sample)} accounts for {carrier.share:.0%} of the difference{of_pair}, which is "
        f"{without} without it"
    )


MARGINS = {
    "equivalent": "the difference is shown to be smaller than the margin",
    "not inferior": "the second is shown not to be worse by the margin",
    "not shown": "it is not shown that the difference is smaller than the margin",
    "not tested": "the samples are too few to test the margin",
}


def _is_supported(metric: MetricComparison, pair: Pair, comparison: RunComparison) -> bool:
    """Whether a part differs in the same direction, by its own test."""
    gain = -pair.difference if metric.direction == "lower" else pair.difference
    for part in comparison.numbers:
        same = [each for each in part.pairs if (each.first, each.second) == (pair.first, pair.second)]
        if part.name in metric.parts and same and same[0].p_value is not None:
            shown = -same[0].difference if part.direction == "lower" else same[0].difference
            if same[0].p_value < 1 - comparison.level and shown * gain > 0:
                return True
    return False


def _which_of_many(
    metric: MetricComparison, best: str, others: Sequence[Difference], comparison: RunComparison
) -> Verdict:
    system = next(each for each in metric.systems if each.name == best)
    worse = [each for each in others if each.verdict == "worse"]
    tied = [each for each in others if each.verdict != "worse"]
    answer = f"{label(best)} has the best {_name(metric)}, {estimate(system.value, system.low, system.high)}"
    if worse:
        largest = p_comparison(max(each.p for each in worse if each.p is not None)).replace("=", "≤")
        answer += f"; it is better than {listed([each.run for each in worse])} ({largest})"
        pairs = {
            each.run: pair for each in worse for pair in metric.pairs if {pair.first, pair.second} == {best, each.run}
        }
        alone = [run for run, pair in pairs.items() if metric.parts and not _is_supported(metric, pair, comparison)]
        answer += f"; no part of the composite shows the difference from {listed(alone)}" if alone else ""
    if tied:
        answer += f"; no difference to {listed([each.run for each in tied])} is shown"
    scored = _coverage(metric, "all runs")
    return Verdict("Which run is best?", f"{answer}; {scored}.", "" if tied else "good")


def _closest(metric: MetricComparison, best: str) -> Pair:
    """The pair of the best run and the one that is closest to it."""
    pairs = [pair for pair in metric.pairs if best in (pair.first, pair.second)]
    return min(pairs, key=lambda pair: abs(pair.difference))


def _enough(metric: MetricComparison, pair: Pair) -> Iterator[Verdict]:
    """Whether the samples can show a difference of the observed size."""
    if pair.detectable is None:
        is_equal = pair.stderr == 0
        equal = "All paired differences are equal, so the number of samples that a test needs cannot be estimated."
        few = f"{counted(metric.samples, 'sample')} are too few for a test."
        yield Verdict(ENOUGH, equal if is_equal else few, "warning")
        return
    size = abs(pair.difference)
    is_larger = size >= pair.detectable
    half = pair.detectable, 0.0, pair.detectable  # two digits
    between = "" if is_two(metric) else f" between {label(pair.first)} and {label(pair.second)}"
    answer = (
        f"{counted(metric.samples, 'sample')} detect a true difference of {plain(*half)} or more with 80% "
        f"probability; the observed one{between}, {plain(size, pair.low, pair.high)}, is "
        f"{'at least as large' if is_larger else 'smaller'}"
    )
    if not is_larger and pair.needed is not None:
        answer += f", and would need about {counted(pair.needed, 'sample')}"
    yield Verdict(ENOUGH, f"{answer}.", "" if is_larger or pair.verdict in ("better", "worse") else "warning")


def is_two(metric: MetricComparison) -> bool:
    """Whether two runs are compared."""
    return len(metric.systems) == 2


@dataclass(frozen=True)
class _Side:
    """The metrics that favour one run, and those of them that do so beyond chance."""

    run: str
    metrics: list[str]
    certain: list[str]

    @property
    def favoured(self) -> str:
        """How many metrics favour the run, and if they are few, which."""
        count, certain = len(self.metrics), len(self.certain)
        if not count:
            return f"none favours {label(self.run)}"
        named = f" ({listed([printed(each) for each in self.metrics])})" if count <= 3 else ""
        if count == 1:
            return f"1{named} favours {label(self.run)}, {'' if certain else 'not '}beyond chance"
        beyond = "all" if certain == count else f"{certain:,}" if certain else "none"
        return f"{count:,}{named} favour {label(self.run)}, {beyond} of them beyond chance"


def _agreement_of_two(comparison: RunComparison, main: MetricComparison) -> Iterator[Verdict]:
    others = [metric for metric in comparison.numbers if metric.name != main.name and metric.pairs]
    if not others:
        return
    if len(others) == 1:
        yield _agreement_of_one(others[0], main)
        return
    first, second = comparison.runs
    sides = [_side(first, others, -1), _side(second, others, 1)]
    ahead = 0 if _gain(main) < 0 else 1
    chosen, other = sides[ahead], sides[1 - ahead]
    equal = len(others) - len(chosen.metrics) - len(other.metrics)
    ties = f"; {counted(equal, 'metric')} {'is' if equal == 1 else 'are'} equal" if equal else ""
    tone: Tone = "warning" if other.certain else ""
    answer = f"Of the {counted(len(others), 'other metric')}, {chosen.favoured}; {other.favoured}{ties}."
    if chosen.certain or other.certain:
        answer = f"{answer[:-1]} (after Holm's correction for the {len(others):,} metrics)."
    yield Verdict(AGREE, answer, tone)


def _agreement_of_one(other: MetricComparison, main: MetricComparison) -> Verdict:
    """Whether the only other metric says the same."""
    pair, gain = other.pairs[0], _gain(other)
    if gain == 0:
        return Verdict(AGREE, f"On the other metric, {label(printed(other.name))}, the runs are equal.")
    is_certain, agrees = pair.verdict in ("better", "worse"), gain * _gain(main) >= 0
    ahead = label(pair.second if gain > 0 else pair.first)
    also = " also" if agrees else ""
    beyond = f"{'' if is_certain else 'not '}beyond chance"
    answer = f"The other metric, {label(printed(other.name))},{also} favours {ahead}, {beyond}."
    return Verdict(AGREE, answer, "warning" if is_certain and not agrees else "")


def _gain(metric: MetricComparison) -> float:
    """By how much the second run is better."""
    difference = metric.pairs[0].difference
    return -difference if metric.direction == "lower" else difference


def _side(run: str, metrics: Sequence[MetricComparison], sign: int) -> _Side:
    favouring = [metric for metric in metrics if sign * _gain(metric) > 0]
    certain = [metric.name for metric in favouring if metric.pairs[0].verdict in ("better", "worse")]
    return _Side(run, [metric.name for metric in favouring], certain)


def _agreement_of_many(comparison: RunComparison, main: MetricComparison, best: str) -> Iterator[Verdict]:
    """Which run has the best value of each metric."""
    others = [metric for metric in comparison.numbers if metric.name != main.name and metric.systems]
    if not others:
        return
    by_run: dict[str, list[str]] = {}
    for metric in others:
        sign = -1 if metric.direction == "lower" else 1
        by_run.setdefault(max(metric.systems, key=lambda system: sign * system.value).name, []).append(metric.name)
    ahead = len(by_run.pop(best, []))
    rest = "; ".join(f"{label(run)} by {listed([printed(name) for name in names])}" for run, names in by_run.items())
    total = counted(len(others), "other metric")
    share = f"also best by {ahead:,} of the {total}" if ahead else "best by no other metric"
    if ahead == len(others):
        share = f"also best by {f'all {total}' if ahead > 1 else 'the other metric'}"
    answer = f"{label(best)} is {share}"
    yield Verdict(AGREE, f"{answer}{'; ' + rest if rest else ''}.", "warning" if ahead < len(others) / 2 else "")


# Every run of a comparison against one of them.

_OPPOSITE = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Difference:
    """A run compared with the baseline of the figure: the run minus the baseline."""

    run: str
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    p: float | None
    verdict: str


def leader(comparison: RunComparison, main: str) -> str:
    """The run with the best score of a metric, the first one of equals; of two runs, the first, whichever is better."""
    if len(comparison.runs) == 2:
        return comparison.runs[0]
    metric = next((each for each in comparison.numbers if each.name == main), comparison.numbers[0])
    sign = -1 if metric.direction == "lower" else 1
    return max(metric.systems, key=lambda system: sign * system.value).name


def against(metric: MetricComparison, baseline: str) -> list[Difference]:
    """Every other run compared with the baseline, in the order of the runs."""
    differences = [_turned(pair) if pair.second == baseline else _as_is(pair) for pair in metric.pairs]
    pairs = zip(metric.pairs, differences, strict=True)
    by_run = {each.run: each for pair, each in pairs if baseline in (pair.first, pair.second)}
    return [by_run[system.name] for system in metric.systems if system.name in by_run]


def _as_is(pair: Pair) -> Difference:
    return Difference(pair.second, pair.difference, pair.stderr, pair.low, pair.high, pair.p_value, pair.verdict)


def _turned(pair: Pair) -> Difference:
    low, high = (None if end is None else -end for end in (pair.high, pair.low))
    verdict = _OPPOSITE.get(pair.verdict, pair.verdict)
    return Difference(pair.first, -pair.difference, pair.stderr, low, high, pair.p_value, verdict)
