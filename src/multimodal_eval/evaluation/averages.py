"""How the values of samples become one score: micro, macro over columns, groups of which all must be right, and means.

    micro                  the mean over samples
    macro(a)               the mean over the values of column a of the means over their samples
    macro(a, b)            the same in two steps: the mean over b within each value of a, then the mean over a
    all-correct(a, b)      the share of groups, samples with the same values of a and b, that are right in all samples
    mean(x, y)             the mean of other averages; `mean(f=x, q=y)` reports them as parts with these names, too

Columns are those of the metadata, or `group`, `task` and `index` (MMBench's numbering). A sample without a value in one
of the columns is left out of that average. The values of a column are fixed, not drawn from more values: an interval is
about other samples of the same subtasks. With w_i the weight of sample i in the average, m its mean and n samples:

    macro:        psi_i = n w_i (x_i - m of its cell)          the cells are independent samples
    all-correct:  psi of a group of one unit, see `stats.estimates.all_right`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, partial
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Aggregate, Bounds, BoundsWithParts
from multimodal_eval.core.options import Option
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import MEAN, Estimate, Rows, Score, mean_estimate
from multimodal_eval.evaluation.choices import has_key, key_of, stats_of_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = [
    "AVERAGE",
    "MICRO",
    "Average",
    "NoGroupError",
    "aggregates_of",
    "average_of",
    "bounds_with",
    "estimate_by",
    "in_groups",
    "weighted_mean",
]

MICRO = "micro"
AVERAGE = Option(
    str,
    MICRO,
    help="how the values of samples become one score: micro, macro(COLUMN, …), all-correct(COLUMN, …), or the mean of "
    "several: mean(NAME=…, NAME=…)",
    is_quiet=True,
)
_LEFT_OUT = (-1.0, -1.0)  # the key of a sample without a value in a column
_WORD = re.compile(r"\s*([^(),=\s][^(),=]*?)\s*(?=[(),=]|\Z)")
Kind = Literal["micro", "macro", "all-correct", "mean"]


class NoGroupError(ConfigError):
    """An average over groups of which none has a scored sample."""


class Average(msgspec.Struct, frozen=True, dict=True):
    """A way to average. `members` are the averages of a mean, with their names; a name may be empty."""

    kind: Kind
    columns: tuple[str, ...] = ()
    members: tuple[tuple[str, Average], ...] = ()

    @cached_property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """The columns whose values together make a group, for every grouping that is needed."""
        if self.kind == "macro":
            return tuple(self.columns[:count] for count in range(1, len(self.columns) + 1))
        columns = (self.columns,) if self.kind == "all-correct" else ()
        return tuple(dict.fromkeys([*columns, *(group for _, member in self.members for group in member.groupings)]))

    @cached_property
    def parts(self) -> Mapping[str, Average]:
        """The averages that are reported, too: those with a name, and `micro` if none of them has it."""
        named = {name: member for name, member in self.members if name}
        return named or {MICRO: Average("micro")}

    def stats(self, sample: Sample) -> tuple[float, ...]:
        """The keys of the groups of a sample, as numbers."""
        return tuple(number for grouping in self.groupings for number in _key(sample, grouping))


def _key(sample: Sample, columns: tuple[str, ...]) -> tuple[float, float]:
    if not all(has_key(sample, column) for column in columns):
        return _LEFT_OUT
    return stats_of_key("\0".join(key_of(sample, column) for column in columns))


# Reading


def average_of(text: str, metric: str) -> Average:
    """The average that a text describes."""
    reader = _Reader(text, metric)
    average = reader.average()
    if reader.rest:
        raise reader.fault(f"{reader.rest!r} follows a complete average")
    return average


class _Reader:
    def __init__(self, text: str, metric: str) -> None:
        self.text, self.rest, self.metric = text, text.strip(), metric

    def fault(self, what: str) -> ConfigError:
        return ConfigError(
            f"`{self.metric}.average`: {what}. Write micro, macro(COLUMN, …), all-correct(COLUMN, …) or "
            f"mean(NAME=…, …). Got {self.text!r}."
        )

    def word(self) -> str:
        match = _WORD.match(self.rest)
        if match is None:
            raise self.fault("a name is missing")
        self.rest = self.rest[match.end() :]
        return match[1]

    def taken(self, mark: str) -> bool:
        self.rest = self.rest.lstrip()
        if not self.rest.startswith(mark):
            return False
        self.rest = self.rest[1:].lstrip()
        return True

    def average(self) -> Average:
        kind = self.word()
        if kind == "micro":
            return Average("micro")
        if kind not in ("macro", "all-correct", "mean"):
            raise self.fault(f"there is no average {kind!r}")
        if not self.taken("("):
            raise self.fault(f"{kind} needs parentheses")
        members, columns = [], []
        while True:
            if kind == "mean":
                members.append(self.member())
            else:
                columns.append(self.word())
            if not self.taken(","):
                break
        if not self.taken(")"):
            raise self.fault("a closing parenthesis is missing")
        if kind == "mean":
            return Average("mean", members=tuple(members))
        return Average("macro" if kind == "macro" else "all-correct", tuple(columns))

    def member(self) -> tuple[str, Average]:
        rest, name = self.rest, self.word()
        if self.taken("="):
            return name, self.average()
        self.rest = rest
        return "", self.average()


# Computing


def aggregates_of(average: Average) -> Mapping[str, Aggregate]:
    """The aggregates of a metric that averages this way: of its value and of its parts."""
    if average.kind == "micro":
        return {"": MEAN}
    parts = {name: partial(estimate_by, part, average.groupings) for name, part in average.parts.items()}
    return {"": partial(estimate_by, average, average.groupings), **parts}


def bounds_with(average: Average, bounds: Bounds, parts: Mapping[str, Bounds] = MappingProxyType({})) -> Bounds:
    """The bounds of a metric with those of the parts that the average adds, which are the same."""
    added = {} if average.kind == "micro" else dict.fromkeys(average.parts, bounds)
    return BoundsWithParts(bounds, {**parts, **added}) if added or parts else bounds


def in_groups(score: Score, average: Average, sample: Sample) -> Score:
    """The score with the statistics and parts by which it is averaged."""
    if average.kind == "micro" or score.value is None:
        return score
    parts = {**(score.parts or {}), **dict.fromkeys(average.parts, score.value)}
    return msgspec.structs.replace(score, stats=(*average.stats(sample), *(score.stats or ())), parts=parts)


def estimate_by(average: Average, groupings: tuple[tuple[str, ...], ...], rows: Rows) -> Estimate:
    """The average of rows whose statistics start with the keys of their groups, in the order of `groupings`.

    A further statistic, if there is one, is the weight of the row in the mean of its group.
    """
    import numpy as np

    if rows.stats is None:
        return mean_estimate(rows)
    if average.kind == "mean":
        members = [estimate_by(member, groupings, rows) for _, member in average.members]
        influence = np.mean([member.influence for member in members], axis=0)
        return Estimate(fsum(member.value for member in members) / len(members), influence, corrected=False)
    weights = rows.stats[:, 2 * len(groupings)] if rows.stats.shape[1] > 2 * len(groupings) else np.ones(len(rows))
    if average.kind == "micro":
        return _of_cells(rows.values, weights, np.zeros(len(rows), np.int64), np.ones(1))
    codes = [_codes(rows.stats, groupings.index(grouping), grouping) for grouping in average.groupings]
    if average.kind == "all-correct":
        return _all_correct(rows.values, codes[0])
    return _of_cells(rows.values, weights, codes[-1], _cell_weights(codes))


def weighted_mean(rows: Rows) -> Estimate:
    """The mean of rows whose only statistic is their weight."""
    return estimate_by(Average("micro"), (), rows)


def _codes(stats: Vector, place: int, columns: tuple[str, ...]) -> Codes:
    """The group of each row as a number from 0; -1 for rows that are left out."""
    import numpy as np

    keys = stats[:, 2 * place : 2 * place + 2]
    is_in = (keys != _LEFT_OUT).any(axis=1)
    if not is_in.any():
        raise NoGroupError(f"no scored sample has a value in {' and '.join(columns)}, over which the score is averaged")
    codes = np.full(len(stats), -1, np.int64)
    codes[is_in] = np.unique(keys[is_in], axis=0, return_inverse=True)[1].reshape(-1)
    return codes


def _cell_weights(codes: list[Codes]) -> Vector:
    """The weight of each cell, a group of the last grouping: each grouping divides a group equally among its own."""
    import numpy as np

    weights = np.ones(1)
    outer = np.where(codes[0] < 0, -1, 0)
    for inner in codes:
        parent = np.zeros(int(inner.max()) + 1, np.int64)
        parent[inner[inner >= 0]] = outer[inner >= 0]
        weights = weights[parent] / np.bincount(parent)[parent]
        outer = inner
    return weights


def _of_cells(values: Vector, weights: Vector, codes: Codes, cell_weights: Vector) -> Estimate:
    """The weighted sum over cells of the weighted means of their rows."""
    import numpy as np

    is_in = codes >= 0
    cell, shares = codes[is_in], weights[is_in]
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell)
    ends = np.cumsum(counts)
    sums, totals = (
        np.array([fsum(column[start:end]) for start, end in zip([0, *ends], ends, strict=False)])
        for column in ((shares * values[is_in])[order].tolist(), shares[order].tolist())
    )
    means = np.divide(sums, totals, out=np.zeros(len(sums)), where=totals > 0)
    # The correction is that of the rows of each cell, since cells are independent samples.
    correction = np.sqrt(counts / np.maximum(counts - 1, 1))
    scale = np.divide(len(values) * cell_weights * correction, totals, out=np.zeros(len(sums)), where=totals > 0)
    influence = np.zeros(len(values))
    influence[is_in] = scale[cell] * shares * (values[is_in] - means[cell])
    return Estimate(fsum(cell_weights * means), influence, corrected=False)


def _all_correct(values: Vector, codes: Codes) -> Estimate:
    import numpy as np

    from multimodal_eval.stats.estimates import all_right

    is_in = codes >= 0
    estimate = all_right(values[is_in], codes[is_in, None].astype(np.float64))
    influence = np.zeros(len(values))
    influence[is_in] = estimate.influence * (len(values) / int(is_in.sum()))
    return Estimate(estimate.value, influence, corrected=False)
