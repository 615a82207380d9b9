"""Does a model look? What is left of its score without the image, and whether the place of the right choice matters.

For each probe, the share of the score that is lost:

    share = 1 - score with the probe / score

Its interval is that of the Bayesian bootstrap over groups of samples (Rubin 1981), which have the same weights in both
runs, with pseudo-units as in `stats.resampling`: equal scores of few samples do not show that nothing is lost. A model
looks if the share that is lost without the image, or with another one, is certainly above 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import column_names
from multimodal_eval.analysis.pairing import aligned_scores, pair_runs, part_count, shared_clusters
from multimodal_eval.core.config import Probe
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import JsonObject
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.choices import GoldError, gold_letters, options_of
from multimodal_eval.stats.intervals import wilson_bounds
from multimodal_eval.stats.resampling import PSEUDO_UNITS
from multimodal_eval.stats.special import ndtri

__all__ = ["Probed", "probed"]

DRAWS, LEVEL = 4_000, 0.95
CERTAIN = 0.001  # p-value below which the place of the right choice matters
_LOOKING: tuple[Probe, ...] = ("blind", "shuffled")

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Probed:
    """What the probes of one model show."""

    metric: str
    score: Figure
    scores: dict[Probe, Figure]
    shares: dict[Probe, Figure]  # of the score that are lost
    positions: dict[str, Figure]  # letter of the right choice -> share of right answers; empty without choices
    position_p: float | None  # that it is the same for all letters

    @property
    def looks(self) -> bool | None:
        """Whether the score certainly needs the image; None if no probe tells."""
        lows = [self.shares[name].low for name in _LOOKING if name in self.shares]
        return all(low is not None and low > 0 for low in lows) if lows else None

    @property
    def depends_on_position(self) -> bool | None:
        """Whether the place of the right choice certainly matters; None if it is not known."""
        return None if self.position_p is None else self.position_p < CERTAIN

    def to_dict(self) -> JsonObject:
        """The figures and the verdicts as JSON."""
        from msgspec import to_builtins

        content: JsonObject = to_builtins(asdict(self))
        return {**content, "looks": self.looks, "depends_on_position": self.depends_on_position}


def probed(plain: Run, probes: Mapping[Probe, Run], *, seed: int = 0) -> Probed:
    """Compare a run with runs of the same samples under probes, by the metric that leads."""
    metric = plain.headline
    if metric is None:
        raise ConfigError("a probe needs a metric that leads")
    shares: dict[Probe, Figure] = {
        name: _share(plain, run, metric, seed) for name, run in probes.items() if name != "rotated"
    }
    turned = [plain, *(run for name, run in probes.items() if name == "rotated")]
    positions, p_value = _by_position(turned, metric, seed) if len(turned) > 1 else ({}, None)
    scores = {name: run.entries[metric] for name, run in probes.items()}
    return Probed(metric, plain.entries[metric], scores, shares, positions, p_value)


def _share(plain: Run, run: Run, metric: str, seed: int) -> Figure:
    runs = [plain, run]
    names, order = pair_runs(runs, ["plain", "probe"])
    scores = [
        aligned_scores(each, column_names(each.folder, part_count(each)), rows, metric).values
        for each, rows in zip(runs, order, strict=True)
    ]
    both = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    values = np.stack([scores[0][both], scores[1][both]])
    clusters = shared_clusters(runs, names, order)
    groups = np.arange(int(both.sum())) if clusters is None else np.unique(clusters[both], return_inverse=True)[1]
    if len(np.unique(groups)) < 2 or values[0].mean() <= 0:
        return Figure(None, None, None, None, "no share: the score is 0, or there are too few samples")
    top = float(values.max())
    sums = np.stack([np.bincount(groups, weights=row) for row in values])
    rng = np.random.default_rng(seed)
    drawn = rng.standard_exponential((DRAWS, sums.shape[1])) @ sums.T
    drawn += rng.standard_gamma(PSEUDO_UNITS / 2, (DRAWS, 2)) * top  # one is right in one run only, one in the other
    shares = 1 - drawn[:, 1] / np.where(drawn[:, 0] > 0, drawn[:, 0], np.nan)
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(shares, [tail, 1 - tail]).tolist()
    value = float(1 - values[1].mean() / values[0].mean())
    method = f"{LEVEL:.0%} interval by the Bayesian bootstrap, {sums.shape[1]:,} groups"
    return Figure(value, float(np.nanstd(shares)), low, high, method, int(both.sum()), len(both))


def _by_position(runs: Sequence[Run], metric: str, seed: int) -> tuple[dict[str, Figure], float | None]:
    """The mean score by the letter of the right choice, and the p-value of the test that it has no effect.

    The test takes the two answers to a question as independent. They have different letters, and equal scores of easy
    questions make the letters more alike, so that it errs on the safe side.
    """
    values: dict[str, list[float]] = {}
    for run in runs:
        for letter, value in zip(_letters(run), run.scores([metric]).column(metric).to_pylist(), strict=True):
            if letter is not None and value is not None:
                values.setdefault(letter, []).append(value)
    z = float(ndtri((1 + LEVEL) / 2))
    figures = {}
    for letter, scores in sorted(values.items()):
        mean = float(np.mean(scores))
        low, high = wilson_bounds(mean, len(scores), z)
        figures[letter] = Figure(mean, None, low, high, f"{LEVEL:.0%} Wilson interval", len(scores), len(scores))
    if len(values) < 2:
        return figures, None
    return figures, _p_value([np.array(scores) for _, scores in sorted(values.items())], seed)


def _letters(run: Run) -> Iterator[str | None]:
    for sample in run.samples({"choices", "expected_answer", "references", "caption"}):
        options = options_of(sample)
        try:
            yield gold_letters(sample, options)[0] if options else None
        except (GoldError, IndexError):
            yield None


def _p_value(values: Sequence[Vector], seed: int) -> float:
    """The p-value of the permutation test of the squared differences between the means of the letters."""
    every, sizes = np.concatenate(values), np.array([len(each) for each in values])
    codes, rng = np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(seed)

    def distance(scores: Vector) -> float:
        sums = np.bincount(codes, weights=scores)
        return float(sums @ (sums / sizes))  # the rest of the sum of squares is the same in all permutations

    observed = distance(every) * (1 - 1e-12)
    return (1 + sum(distance(rng.permutation(every)) >= observed for _ in range(DRAWS))) / (1 + DRAWS)
