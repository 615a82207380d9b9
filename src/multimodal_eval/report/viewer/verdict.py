"""What a comparison says about two runs in one metric, as the pieces of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.analysis.compare import NOT_SHOWN, MetricComparison, Pair, RunComparison


@dataclass(frozen=True, slots=True)
class Verdict:
    """`second` is better or worse than `first` by `size`, or no difference is shown."""

    metric: str
    first: str
    second: str
    verdict: str
    size: float
    low: float | None
    high: float | None
    p_value: float | None
    is_corrected: bool  # for the pairs of the metric
    scored: int  # samples scored in both
    total: int
    is_headline: bool

    @property
    def is_shown(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict != NOT_SHOWN


def verdicts_of(comparison: RunComparison, names: dict[str, str]) -> list[Verdict]:
    """One verdict per metric and pair, those of the headline first; `names` are the shown names of the runs."""
    verdicts = [_verdict(comparison, metric, pair, names) for metric in comparison.numbers for pair in metric.pairs]
    return sorted(verdicts, key=lambda verdict: not verdict.is_headline)


def _verdict(comparison: RunComparison, metric: MetricComparison, pair: Pair, names: dict[str, str]) -> Verdict:
    """A shown difference is positive: `by 0.025 [0.010, 0.040]`. One that is not shown keeps its sign."""
    flips = pair.verdict != NOT_SHOWN and pair.difference < 0
    low, high = (pair.low, pair.high) if not flips else (_negative(pair.high), _negative(pair.low))
    several = len(comparison.runs) > 2
    return Verdict(
        metric.name,
        names[pair.first],
        names[pair.second],
        pair.verdict,
        abs(pair.difference) if flips else pair.difference,
        low,
        high,
        pair.p_holm if several else pair.p_value,
        several,
        metric.samples,
        metric.samples + metric.left_out,
        metric.name == comparison.headline,
    )


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def left_out_lines(comparison: RunComparison) -> list[tuple[int, list[str]]]:
    """The numbers of samples that are unscored in at least one run, each with its metrics."""
    lines: dict[int, list[str]] = {}
    for metric in comparison.numbers:
        if metric.left_out:
            lines.setdefault(metric.left_out, []).append(metric.name)
    return sorted(lines.items())
