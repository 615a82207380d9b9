"""Charts of values with intervals, one dot per run: of metrics, slices, parts, and of paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, copysign, floor, inf, isfinite, log10, sqrt
from typing import TYPE_CHECKING

from multimodal_eval.core.display import p_value
from multimodal_eval.report.wording import labels, signed

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison

__all__ = [
    "Difference",
    "Dot",
    "DotChart",
    "DotRow",
    "Panel",
    "Scale",
    "Tick",
    "Value",
    "against",
    "difference_chart",
    "dot_of",
    "leader",
    "nice_scale",
    "panel",
    "round_step",
    "tick_label",
]


_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LARGEST = 1e300  # beyond, sums would overflow
_RESOLUTION = 1e-6  # the least distance of the limits, as a share of their size: closer ticks would have equal labels
_TICKS = 5  # about so many steps between the limits


@dataclass(frozen=True)
class Tick:
    """A labelled place on the scale, in percent of its width."""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` with `steps` equal steps between them."""

    low: float
    high: float
    steps: int

    def at(self, value: float) -> float:
        """The place of a value in percent; a value beyond a limit is at the limit."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves, since a difference may overflow
        return round(100 * min(max(share, 0.0), 1.0), 3)

    @property
    def ticks(self) -> list[Tick]:
        """The limits and the steps between them."""
        shares = [number / self.steps for number in range(self.steps + 1)]
        return [Tick(round(100 * share, 3), self._label(share)) for share in shares]

    def _label(self, share: float) -> str:
        value = self.low * (1 - share) + self.high * share
        step = (self.high / 2 - self.low / 2) / self.steps
        return tick_label(0.0 if abs(value) < abs(step) / 1000 else value)


def tick_label(value: float) -> str:
    """A short number: `0.25`, `12,000`, `1e+09`."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def nice_scale(
    values: Iterable[float | None],
    limits: tuple[float | None, float | None] = (None, None),
    *,
    is_count: bool = False,
) -> Scale:
    """Round limits around the finite values. A limit that is given is kept; values beyond it do not widen the scale.

    The ticks of counts are whole numbers.
    """
    finite = [_clamped(value) for value in values if value is not None and isfinite(value)]
    low = _clamped(limits[0]) if limits[0] is not None else min(finite, default=0.0)
    high = _clamped(limits[1]) if limits[1] is not None else max(finite, default=1.0)
    if high <= low:
        margin = max(abs(low), 1.0) / 2
        low, high = (low, low + margin) if limits[0] is not None else (low - margin, low + margin)
    if high - low <= _RESOLUTION * max(abs(low), abs(high)) or high - low < 1 / _LARGEST:
        middle, margin = low, max(abs(low) * _RESOLUTION, 1 / _LARGEST)
        return Scale(middle - margin, middle + margin, 2)
    step = round_step((high - low) / _TICKS)
    if is_count:
        step = ceil(step)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Scale(first * step, last * step, last - first)


def _clamped(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)


def round_step(least: float, factors: Sequence[float] = _STEPS) -> float:
    """The smallest round number that is not below `least`: one of the factors, up to 10, times a power of ten."""
    magnitude: float = 10.0 ** floor(log10(least))
    return next((step * magnitude for step in factors if step * magnitude >= least * (1 - 1e-9)), 10 * magnitude)


# One row per metric, slice or part of a composite.


_FIRST, _STEP = 12, 11  # pixels: the place of the first dot in a row, and the distance to the next one
SERIES = 6  # colours of runs


@dataclass(frozen=True)
class Value:
    """What a dot shows, in the unit of its scale."""

    value: float | None
    low: float | None
    high: float | None
    tone: str  # a class of the style sheet: the colour of a run, or of a verdict
    title: str
    ring: float | None = None  # a second value, drawn as a ring


@dataclass(frozen=True)
class Dot:
    """A value with its interval: places in percent of the width, and in pixels from the top."""

    at: float | None
    low: float | None
    high: float | None
    y: int
    tone: str
    title: str
    ring: float | None


@dataclass(frozen=True)
class DotRow:
    """One row with the dots of all runs."""

    label: str
    is_lower_better: bool
    is_main: bool
    dots: list[Dot]
    texts: list[list[str]]  # the columns beside the chart, each with one line per dot
    name: str = ""  # the metric, if the row has one

    @property
    def height(self) -> int:
        """Pixels."""
        return 2 * _FIRST + _STEP * (len(self.dots) - 1)


@dataclass(frozen=True)
class Panel:
    """Rows on the same scale."""

    rows: list[DotRow]
    ticks: list[Tick]
    steps: int
    origin: float | None  # the place of 0, if it is drawn
    unit: str = ""


@dataclass(frozen=True)
class DotChart:
    """A chart with one panel per scale. `heads` are the headings of the texts."""

    panels: list[Panel]
    heads: list[str]

    @property
    def rows(self) -> list[DotRow]:
        """The rows of all panels."""
        return [row for each in self.panels for row in each.rows]


def series(index: int) -> str:
    """The class of a run's colour."""
    return f"series-{index % SERIES + 1}"


def dot_of(value: Value, scale: Scale, place: int) -> Dot:
    """The dot of a value; `place` counts the dots of a row."""
    known = value.value is not None and value.low is not None and value.high is not None
    return Dot(
        None if value.value is None else scale.at(value.value),
        scale.at(value.low) if known and value.low is not None else None,
        scale.at(value.high) if known and value.high is not None else None,
        _FIRST + _STEP * place,
        value.tone,
        value.title,
        None if value.ring is None else scale.at(value.ring),
    )


@dataclass(frozen=True)
class ValueRow:
    """A row before its scale is known."""

    label: str
    values: Sequence[Value]
    texts: list[list[str]]
    is_lower_better: bool = False
    is_main: bool = False
    name: str = ""


def panel(
    rows: Iterable[ValueRow],
    limits: tuple[float | None, float | None] = (None, None),
    *,
    with_origin: bool = False,
    unit: str = "",
) -> Panel:
    """The rows on one scale, which includes 0 if this is drawn."""
    listed = list(rows)
    ends = [end for row in listed for each in row.values for end in (each.value, each.low, each.high, each.ring)]
    scale = nice_scale([*ends, 0.0] if with_origin else ends, limits)
    return Panel(
        [
            DotRow(
                row.label,
                row.is_lower_better,
                row.is_main,
                [dot_of(value, scale, place) for place, value in enumerate(row.values)],
                row.texts,
                row.name,
            )
            for row in listed
        ],
        scale.ticks,
        scale.steps,
        scale.at(0.0) if with_origin else None,
        unit,
    )


# The summary figure of several runs: the paired differences of all metrics, around zero.
#
# Metrics have different units, so a difference is divided by the standard deviation of the paired differences (Cohen's
# d_z), which is its standard error times the square root of the number of samples. This changes the unit only: whether
# an interval excludes zero is not affected. The text beside each dot has the unit of the metric.


TONES = {"better": "good", "worse": "bad"}
SIGNS = {"better": "▲ better", "worse": "▼ worse"}
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
    return Difference(pair.second, pair.difference, pair.stderr, pair.low, pair.high, pair.p_holm, pair.verdict)


def _turned(pair: Pair) -> Difference:
    low, high = (None if end is None else -end for end in (pair.high, pair.low))
    verdict = _OPPOSITE.get(pair.verdict, pair.verdict)
    return Difference(pair.first, -pair.difference, pair.stderr, low, high, pair.p_holm, verdict)


def difference_chart(comparison: RunComparison, main: str) -> DotChart | None:
    """All compared metrics, the headline first; None if there are none."""
    if not comparison.numbers:
        return None
    baseline = leader(comparison, main)
    ordered = sorted(comparison.numbers, key=lambda metric: metric.name != main)
    shown, runs = labels(metric.name for metric in ordered), labels(comparison.runs)
    rows = [_row(metric, against(metric, baseline), shown[metric.name], runs, main) for metric in ordered]
    heads = ["Difference [95 % interval]", "p", f"{runs[comparison.runs[1]]} is" if len(runs) == 2 else "The run is"]
    return DotChart([panel(rows, with_origin=True)], heads)


def _row(
    metric: MetricComparison, differences: Sequence[Difference], shown: str, runs: dict[str, str], main: str
) -> ValueRow:
    several = len(runs) > 2
    sign = -1 if metric.direction == "lower" else 1
    order = list(runs)
    values: list[Value] = []
    texts: list[tuple[str, str, str]] = []
    for each in differences:
        text = signed(each.value, each.low, each.high)
        where = f"{shown}, {runs[each.run]}" if several else shown
        tone = series(order.index(each.run)) if several else TONES.get(each.verdict, "unknown")
        scaled = [_scaled(end, sign, each.stderr, metric.samples) for end in (each.value, each.low, each.high)]
        value, low, high = scaled if sign > 0 else (scaled[0], scaled[2], scaled[1])
        values.append(Value(value, low, high, tone, f"{where}: {text}, {each.verdict}"))
        texts.append((text, p_value(each.p), SIGNS.get(each.verdict, each.verdict)))
    columns = [list(column) for column in zip(*texts, strict=True)]
    return ValueRow(shown, values, columns, metric.direction == "lower", metric.name == main, metric.name)


def _scaled(end: float | None, sign: int, stderr: float | None, samples: int) -> float | None:
    """An end in standard deviations, flipped if lower is better. Without a deviation, only 0 has a place."""
    if end is None or stderr is None or not isfinite(end):
        return None
    deviation = stderr * sqrt(samples)
    if deviation > 0:
        return sign * end / deviation
    return 0.0 if end == 0 else copysign(inf, sign * end)
