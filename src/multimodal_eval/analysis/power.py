"""How many samples a comparison needs, or which difference it shows: from stated rates, or from two pilot runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil, isinf, sqrt

import numpy as np

from multimodal_eval.analysis.columns import Averaging, column_names
from multimodal_eval.analysis.pairing import aligned_scores, pair_runs, part_count, require_same_data, shared_clusters
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import JsonObject, shared_headline
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.stats.intervals import LEVEL, cluster_error
from multimodal_eval.stats.paired_binary import is_share, paired_counts
from multimodal_eval.stats.power import (
    MIN_PAIRS,
    MIN_UNITS,
    POWER,
    critical_value,
    detectable_effect,
    detectable_share,
    power_of_mean,
    power_of_share,
    samples_for_share,
)

__all__ = ["PowerPoint", "PowerTable", "Spread", "pilot_spread", "power", "power_table", "spread_of_rates"]

_CURVE = (0.25, 0.5, 1.0, 2.0, 4.0)  # multiples of the number of samples


@dataclass(frozen=True)
class Spread:
    """What decides the power of a paired comparison.

    Scores of 0 and 1 have `lost`, the rate of samples that differ in each direction and cancel out; other scores have
    the standard `deviation` of the paired differences. `design_effect` is 1 without clusters.
    """

    lost: float | None = None
    deviation: float | None = None
    design_effect: float = 1.0
    source: str = "stated"

    def __post_init__(self) -> None:
        """Refuse what is not one of both."""
        if (self.lost is None) == (self.deviation is None):
            raise ConfigError("give the share of samples that only one system gets right, or a standard deviation")
        if self.lost is not None and not 0 <= self.lost <= 0.5:
            raise ConfigError(
                f"the rate of samples that one system alone gets right is at most 0.5. Got {self.lost:g}."
            )
        if self.deviation is not None and self.deviation <= 0:
            raise ConfigError(f"the deviation of paired differences must be positive. Got {self.deviation:g}.")


@dataclass(frozen=True)
class PowerPoint:
    """What a number of samples shows."""

    samples: int
    detectable: float | None  # with the wanted power; None if no difference is
    power: float | None  # at the stated effect


@dataclass(frozen=True, repr=False)
class PowerTable(Displayed):
    """The power of paired comparisons of several sizes; `needed` are the samples that show `effect`."""

    spread: Spread
    effect: float | None
    needed: int | None
    wanted: float
    level: float
    points: tuple[PowerPoint, ...]

    def to_dict(self) -> JsonObject:
        """The table as a JSON object."""
        return asdict(self)


def spread_of_rates(first: float, second: float) -> Spread:
    """The spread of two systems with these rates of right answers, right and wrong independently of each other.

    Systems that fail on the same samples differ on fewer, so that this is on the safe side.
    """
    for rate in (first, second):
        if not 0 <= rate <= 1:
            raise ConfigError(f"a rate is from 0 to 1. Got {rate:g}.")
    low, high = sorted((first, second))
    return Spread(lost=low * (1 - high), source=f"rates {first:g} and {second:g}, independent")


def pilot_spread(runs: Sequence[Location | Run], metric: str | None = None) -> Spread:
    """The spread of two runs over the same samples, by the headline or another metric."""
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if len(opened) != 2:
        raise ConfigError(f"a pilot is two runs over the same samples. Got {len(opened)}.")
    names, order = pair_runs(opened)
    require_same_data(opened, names, order)
    name = metric or shared_headline([(run.info, run.outcome) for run in opened])
    if name is None:
        raise ConfigError("the pilot runs have different headline metrics. Name one (--metrics).")
    scores = [
        aligned_scores(run, column_names(run.folder, part_count(run)), rows, name)
        for run, rows in zip(opened, order, strict=True)
    ]
    scored = ~np.isnan(scores[0].values) & ~np.isnan(scores[1].values)
    averaging = Averaging(shared_clusters(opened, names, order))
    first, second = (each.estimate(scored, rows, averaging) for each, rows in zip(scores, order, strict=True))
    clusters, difference = averaging.of(scored).clusters, second.minus(first)
    error = cluster_error(difference.influence, clusters)
    if error is None:
        raise ConfigError(f"{name}: the pilot has too few samples or groups")
    count = len(difference.influence)
    source = f"{name} of {names[0]} and {names[1]}, {count:,} samples"
    if is_share(first) and is_share(second):
        pairs = paired_counts(difference, clusters)
        return Spread(min(pairs.gained, pairs.lost) / pairs.n, None, count / pairs.n, source)
    alone = cluster_error(difference.influence, None)
    assert alone is not None
    if alone.stderr <= 0:
        raise ConfigError(f"{name}: all differences of the pilot runs are equal, which says nothing about their spread")
    effect = max(1.0, (error.stderr / alone.stderr) ** 2)
    return Spread(None, alone.stderr * sqrt(count), effect, source)


def power_table(
    spread: Spread,
    *,
    samples: int | None = None,
    effect: float | None = None,
    power: float = POWER,
    level: float = LEVEL,
) -> PowerTable:
    """The detectable differences of several numbers of samples, and the samples that show `effect`."""
    if samples is None and effect is None:
        raise ConfigError("state the number of samples, the difference, or both")
    needed = None if effect is None else _needed(spread, effect, power, level)
    middle = samples or needed
    if middle is None:
        raise ConfigError(f"no number of samples shows a difference of {effect:g}")
    sizes = sorted({*(max(2, ceil(middle * share)) for share in _CURVE), *([needed] if needed else [])})
    detect, power_at = _functions(spread, power, level)
    return PowerTable(
        spread,
        effect,
        needed,
        power,
        level,
        tuple(PowerPoint(n, detect(n), None if effect is None else power_at(n, effect)) for n in sizes),
    )


def power(
    *runs: Location | Run,
    metric: str | None = None,
    samples: int | None = None,
    effect: float | None = None,
    rates: tuple[float, float] | None = None,
    lost: float | None = None,
    sd: float | None = None,
    group_size: int = 1,
    group_correlation: float = 0.0,
    probability: float = POWER,
    level: float = LEVEL,
) -> PowerTable:
    """How many samples a paired comparison needs to show `effect`, or which difference `samples` show.

    The spread of the differences is that of two pilot `runs` by a `metric`, or stated: the `rates` of right answers of
    both systems, the share of samples `lost` by one of them, or the standard deviation `sd` of the differences. Stated
    samples may be in groups of `group_size`, with `group_correlation` within them.
    """
    if sum(each is not None for each in (rates, lost, sd)) + bool(runs) != 1:
        raise ConfigError("name two pilot runs, or one of `rates`, `lost` and `sd`")
    if runs:
        spread = pilot_spread(runs, metric)
    else:
        design_effect = 1 + (group_size - 1) * group_correlation
        spread = Spread(lost, sd) if rates is None else spread_of_rates(*rates)
        spread = replace(spread, design_effect=design_effect)
    return power_table(spread, samples=samples, effect=effect, power=probability, level=level)


def _functions(
    spread: Spread, power: float, level: float
) -> tuple[Callable[[int], float | None], Callable[[int, float], float]]:
    """The detectable difference of n samples, and the power of n samples at a difference."""
    if spread.lost is not None:
        return partial(_share, spread, spread.lost, power, level), partial(_power_of_share, spread, spread.lost, level)
    assert spread.deviation is not None
    return (
        partial(_mean, spread, spread.deviation, power, level),
        partial(_power_of_mean, spread, spread.deviation, level),
    )


def _share(spread: Spread, lost: float, power: float, level: float, n: int) -> float | None:
    units = n / spread.design_effect
    return detectable_share(lost, units, power=power, level=level) if units >= MIN_PAIRS else None


def _power_of_share(spread: Spread, lost: float, level: float, n: int, effect: float) -> float:
    return power_of_share(lost + effect, lost, n / spread.design_effect, critical=critical_value(level))


def _mean(spread: Spread, deviation: float, power: float, level: float, n: int) -> float | None:
    units = n / spread.design_effect
    if units < MIN_UNITS:
        return None
    return detectable_effect(deviation / sqrt(units), units, level=level, power=power)


def _power_of_mean(spread: Spread, deviation: float, level: float, n: int, effect: float) -> float:
    return power_of_mean(effect, deviation, n / spread.design_effect, level=level)


def _needed(spread: Spread, effect: float, power: float, level: float) -> int | None:
    if effect <= 0:
        raise ConfigError(f"the difference must be positive. Got {effect:g}.")
    if spread.lost is not None:
        if 2 * spread.lost + effect > 1:
            raise ConfigError(f"a difference of {effect:g} is impossible if {spread.lost:g} of the samples cancel out")
        samples = samples_for_share(spread.lost + effect, spread.lost, power=power, level=level)
        return None if isinf(samples) else ceil(samples * spread.design_effect)
    detect, _ = _functions(spread, power, level)
    low, high = 2, 4
    while (reached := detect(high)) is None or reached > effect:
        low, high = high, 2 * high
        if high > 1e12:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        reached = detect(middle)
        low, high = (low, middle) if reached is not None and reached <= effect else (middle, high)
    return high
