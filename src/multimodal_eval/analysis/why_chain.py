"""Scores and numbers with some ingredients of B and the others of A: the steps between two numbers.

If a model is asked again, there are further answers between A's stored answer to a sample and B's: to A's request
again, to B's prompt with A's parameters, to B's request. Each step from one answer to the next belongs to a part.
Samples are drawn within strata of equal scores in A and in B, and those that were not drawn have the mean steps of
their stratum, so that the steps add up to the whole difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.why_pairs import PARTS, Key, Mask, Side, Strata, Vector, causes_of, joined
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.evaluation.averages import Average, average_of
from multimodal_eval.stats.exact import Nested, exact_mean

__all__ = ["Asked", "Chain", "Rescored", "Rescorer", "RowPairs", "Sides", "drawn_rows"]

Codes = NDArray[np.int64]
Steps = NDArray[np.float64]
_MOST_STRATA = 12  # of pairs of scores; more are divided by the sign of their difference


@dataclass(frozen=True)
class Asked:
    """The samples that could be asked about, those that were, and the part of each step between two answers."""

    rows: Codes
    is_asked: Mask
    step_keys: Sequence[Key]

    @property
    def keys(self) -> list[Key]:
        """The parts of the steps; the part of the last step takes what the others leave."""
        return [*(key for key in dict.fromkeys(self.step_keys) if key != self.step_keys[-1]), self.step_keys[-1]]

    def steps(self, path: Steps) -> tuple[Steps, Vector]:
        """The step of each part on each sample, and the standard error of the sum of each part.

        `path` has the scores of the stored and the further answers, in their order: NaN if a sample was not asked.
        """
        changes = np.diff(path, axis=0)
        parts = np.array([sum(changes[n] for n, each in enumerate(self.step_keys) if each == key) for key in self.keys])
        whole, known = path[-1] - path[0], ~np.isnan(path).any(axis=0)
        strata = _strata(path[0], path[-1])
        variances = np.zeros(len(parts))
        for stratum in np.unique(strata[strata >= 0]).tolist():
            inside = strata == stratum
            variances += _fill(parts, whole, inside & known, inside & ~known)
        parts[-1, ~known] = whole[~known] - parts[:-1, ~known].sum(axis=0)
        return parts, np.sqrt(variances)


def _strata(first: Vector, last: Vector) -> Codes:
    """The stratum of each sample: that of its two scores. -1 if one of them is missing."""
    pairs = np.stack([first, last], axis=1)
    scored = ~np.isnan(pairs).any(axis=1)
    codes = np.full(len(pairs), -1, np.int64)
    distinct, places = np.unique(pairs[scored], axis=0, return_inverse=True)
    codes[scored] = places.reshape(-1)
    if len(distinct) > _MOST_STRATA:
        codes[scored] = 1 + np.sign(last - first)[scored].astype(np.int64)
    return codes


def _fill(parts: Steps, whole: Vector, asked: Mask, others: Mask) -> Vector:
    """Give the samples that were not asked the mean steps of a stratum. Returns the variances of the sums of the parts.

    Two more observations, that all of the difference is of the part and that nothing is, keep the variance of a few
    equal ones from being zero.
    """
    count, rest, size = int(asked.sum()), int(others.sum()), float(np.abs(whole[asked | others]).mean())
    if not rest:
        return np.zeros(len(parts))
    if not count:  # nothing is known about them: the last part has it, and it could be all of each
        parts[:, others] = 0.0
        return np.full(len(parts), (rest * size) ** 2)
    total = float(whole[asked].sum())
    shares = parts[:, asked].sum(axis=1) / (total if size else count)
    fitted = whole if size else np.ones(len(whole))
    parts[:, others] = shares[:, None] * fitted[others]
    errors = parts[:, asked] - shares[:, None] * fitted[asked]
    scale = size or float(np.abs(parts[:, asked]).max())
    prior = scale**2 * (shares**2 + (1 - shares) ** 2 if size else np.full(len(shares), 2.0))
    spread = ((errors**2).sum(axis=1) + prior) / (count + 1)
    many = count + rest
    result: Vector = spread * (many * rest / count + rest)
    return result


def drawn_rows(first: Vector, last: Vector, count: int, seed: int) -> Codes:
    """The places of samples that are drawn: at least two of each stratum, and the others in proportion."""
    strata, random = _strata(first, last), np.random.default_rng(seed)
    groups = [np.flatnonzero(strata == code) for code in np.unique(strata[strata >= 0]).tolist()]
    total = sum(map(len, groups))
    wanted = [min(len(group), max(2, round(count * len(group) / total))) for group in groups]
    while sum(wanted) > count:
        wanted[int(np.argmax(wanted))] -= 1
    drawn = [random.permutation(group)[:number] for group, number in zip(groups, wanted, strict=True)]
    chosen = np.concatenate([*drawn, np.empty(0, np.int64)]).astype(np.int64)
    left = np.setdiff1d(np.flatnonzero(strata >= 0), chosen)
    more = random.permutation(left)[: max(0, count - len(chosen))]
    result: Codes = np.sort(np.concatenate([chosen, more]))
    return result


_ALL = frozenset((part,) for part in PARTS)
_FREE, _STILL = -1, -2  # samples whose score is computed, and those with the same score in both
_ROUNDING = Fraction(1, 10**12)
RowPairs = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class Sides:
    """Whose ingredients a score is computed from: 0 is A, 1 is B. Further answers are those of a model asked again."""

    gold: int
    answer: int
    failure: int
    reading: int
    scoring: int
    corpus: tuple[int, int] = (0, 0)  # the samples, and their gold answers, of statistics such as those of CIDEr


@dataclass(frozen=True)
class Rescored:
    """Scores of some samples, NaN if there is none, and what was read."""

    values: Vector
    read: Sequence[str | None]


class Rescorer(Protocol):
    """Computes scores from ingredients of both sides."""

    def __call__(self, rows: RowPairs, sides: Sides, corpus: RowPairs) -> Rescored:
        """The scores of samples, given by their rows in A and in B; -1 if a side does not have the sample.

        `corpus` are all samples, for statistics of them.
        """
        ...


class Chain:
    """Scores and numbers with some ingredients of B and the others of A."""

    def __init__(self, a: Side, b: Side, rescorer: Rescorer) -> None:
        self.a, self.b, self.rescorer = a, b, rescorer
        self.pairs = pairs = joined(a, b)
        self.rows = tuple(rows.tolist() for rows in pairs.rows)
        self.is_in = tuple(rows >= 0 for rows in pairs.rows)
        both = self.is_in[0] & self.is_in[1]
        self.values = tuple(_at(side.values, rows, np.nan) for side, rows in zip((a, b), pairs.rows, strict=True))
        self.failed = tuple(_at(s.failed, r, False) for s, r in zip((a, b), pairs.rows, strict=True))
        self.reproduced = tuple(_at(s.reproduced, r, False) for s, r in zip((a, b), pairs.rows, strict=True))
        explained = (_at(s.explained_by_read, r, False) for s, r in zip((a, b), pairs.rows, strict=True))
        self.accounted = [known | read for known, read in zip(self.reproduced, explained, strict=True)]
        self.causes, codes, self.unknown_cause, self.asked_other = causes_of(a, b, pairs)
        self.cause = np.full(len(pairs.ids), -1, np.int64)
        self.cause[: pairs.both] = codes
        self.new_gold = both & np.array([self._texts("gold", n) for n in range(len(pairs.ids))], np.bool_)
        self.fails = both & (self.failed[0] != self.failed[1])  # in one only
        self.rules = self._rules()
        self.is_fitted = self._is_fitted()
        self._groups: dict[tuple[str, ...], Codes] = {}
        self._known: dict[Sides, dict[int, tuple[float, str | None]]] = {}
        self.lumps, self.lump_keys = self._lumps(both)
        self.asked: Asked | None = None  # set if a model was asked again
        self._paths: dict[Sides, Steps] = {}
        self.offsets = self._offsets()

    def _texts(self, column: str, row: int) -> bool:
        """Whether both sides have the text, and it is another one."""
        i, j = self.rows[0][row], self.rows[1][row]
        first = getattr(self.a, column)[i] if i >= 0 else None
        second = getattr(self.b, column)[j] if j >= 0 else None
        return first is not None and second is not None and first != second

    def _is_fitted(self) -> bool:
        """Whether a sample has another score because of other samples, or of their gold answers."""
        others = len(self.pairs.ids) > self.pairs.both or bool(self.new_gold.any())
        return others and (self.a.is_fitted or self.b.is_fitted)

    def _rules(self) -> dict[str, bool]:
        """Which of failure, reading and scoring are different."""
        first, second = self.a.rule, self.b.rule
        if first is None and second is None and self.a.program == self.b.program:
            return dict.fromkeys(("failure", "reading", "scoring"), False)
        if first is None or second is None:
            return {"failure": False, "reading": True, "scoring": True}
        return {n: getattr(first, n) != getattr(second, n) for n in ("failure", "reading", "scoring")}

    @property
    def can_mix(self) -> bool:
        """Whether the reading of one side can be combined with the scoring of the other."""
        return self.a.rule is not None and self.b.rule is not None and self.a.rule.reads == self.b.rule.reads

    # samples whose scores cannot be computed in between

    def _lumps(self, both: Mask) -> tuple[Codes, list[Key]]:
        """The samples that pass from A to B at once, each with the number of its key; -1 for all others."""
        lumps, keys = np.full(len(both), _FREE, np.int64), dict[Key, int]()
        same = (self.values[0] == self.values[1]) | (np.isnan(self.values[0]) & np.isnan(self.values[1]))
        known = self.reproduced[0] & self.reproduced[1]
        lumps[both & same & ~known] = _STILL
        for row in np.flatnonzero(both & ~same & ~known).tolist():
            members: list[str] = []
            if self.new_gold[row]:
                members.append("gold")
            if self.fails[row] or self.failed[0][row] or self._is_left_out(row):
                members.append("failure")
            elif self.cause[row] >= 0:
                members += self.causes[self.cause[row]]
            if not (self.failed[0][row] and self.failed[1][row]) and members != ["failure"]:
                members += self._rule_members(row, has_other_text=self.cause[row] >= 0)
            if not members:  # the same program gives the same answer two scores
                members = ["scoring"]
            lumps[row] = keys.setdefault(tuple(sorted(members, key=PARTS.index)), len(keys))
        return lumps, list(keys)

    def _is_left_out(self, row: int) -> bool:
        """Whether the same answer counts in one number only."""
        is_out = bool(np.isnan(self.values[0][row]) != np.isnan(self.values[1][row]))
        return is_out and self.cause[row] < 0

    def _rule_members(self, row: int, *, has_other_text: bool) -> list[str]:
        """What differs in the rules, by the extractions that both logs have, if they have them."""
        changed = [name for name in ("reading", "scoring") if self.rules[name]]
        first, second = self.a.read[self.rows[0][row]], self.b.read[self.rows[1][row]]
        if len(changed) == 2 and not has_other_text and first is not None and second is not None:
            return ["scoring" if first.strip() == second.strip() else "reading"]
        return changed

    # scores

    def scores(self, switched: frozenset[Key]) -> Vector:
        """The score of every sample that counts, NaN for the others, with the ingredients of B that are switched."""
        switch = {name: int((name,) in switched) for name in PARTS}
        values = np.full(len(self.pairs.ids), np.nan)
        both = self.pairs.both
        in_b = np.array([*(key in switched for key in self.causes), False], np.bool_)
        is_b = in_b[self.cause]  # whose answer; the last entry is for -1
        is_b[self.fails] = switch["failure"] == 1
        free = np.flatnonzero((self.lumps[:both] == _FREE) & ~(self.failed[0][:both] & self.failed[1][:both]))
        values[free] = self._computed(free, is_b[free], switch)
        if self.asked is not None:
            values[self.asked.rows] = self._between(self.asked, switched, switch)
        dead = np.flatnonzero(self.failed[0][:both] & self.failed[1][:both] & (self.lumps[:both] == _FREE))
        values[dead] = self.values[switch["failure"]][dead]
        self._leave_out(values, switch)
        values[self.lumps == _STILL] = self.values[0][self.lumps == _STILL]
        for number, key in enumerate(self.lump_keys):
            rows = self.lumps == number
            values[rows] = self.values[int(key in switched)][rows]
        side = switch["samples"]
        alone = np.flatnonzero(self.is_in[side][both:]) + both
        values[alone] = self._alone(alone, side, switch)
        return values

    def _leave_out(self, values: Vector, switch: Mapping[str, int]) -> None:
        """The same answer, unscored in one only, belongs to the part `failure`, whatever leaves it out."""
        both = np.arange(len(values)) < self.pairs.both
        is_out = np.isnan(self.values[0]) != np.isnan(self.values[1])
        chosen = both & is_out & (self.cause < 0) & ~self.fails & (self.lumps == _FREE)
        wanted = self.values[switch["failure"]]
        wrong = chosen & (np.isnan(values) != np.isnan(wanted))
        values[wrong] = wanted[wrong]

    def _computed(self, rows: Codes, is_b: Mask, switch: Mapping[str, int]) -> Vector:
        """Scores of samples in both: those of a side if all that differs is of that side, else computed."""
        mine, all_a, all_b = self._bits(rows, is_b, switch)
        values = np.where(all_a, self.values[0][rows], self.values[1][rows])
        # A sample that failed in one only has that side's value as long as it has its answer.
        for side in (0, 1):
            held = self.fails[rows] & self.failed[side][rows] & (is_b == side)
            values[held] = self.values[side][rows[held]]
            mine &= ~held
        open_rows = np.flatnonzero(mine & ~all_a & ~all_b)
        for gold, answer in ((0, 0), (0, 1), (1, 0), (1, 1)):
            places = open_rows[(is_b[open_rows] == answer) & (self._gold_side(rows[open_rows], switch) == gold)]
            if len(places):
                values[places] = self._rescored(rows[places], self._sides(gold, answer, switch))
        return values

    def _sides(self, gold: int, answer: int, switch: Mapping[str, int]) -> Sides:
        """Equal ingredients are those of A, so that the same scores are not computed twice."""
        corpus = (switch["samples"], switch["gold"]) if self.is_fitted else (0, 0)
        failure, reading, scoring = (switch[name] if self.rules[name] else 0 for name in PARTS[5:8])
        return Sides(gold, answer, failure, reading, scoring, corpus)

    def _gold_side(self, rows: Codes, switch: Mapping[str, int]) -> Codes:
        return np.where(self.new_gold[rows], switch["gold"], 0)

    def _bits(self, rows: Codes, is_b: Mask, switch: Mapping[str, int]) -> tuple[Mask, Mask, Mask]:
        """All rows, those in which everything that differs is A's, and those in which all of it is B's."""
        all_a, all_b = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        other = (self.cause[rows] >= 0) | self.fails[rows]
        for differs, of_b in ((other, is_b), (self.new_gold[rows], np.full(len(rows), switch["gold"] == 1))):
            all_a &= ~differs | ~of_b
            all_b &= ~differs | of_b
        for name in self._of_all_samples:
            all_a &= switch[name] == 0
            all_b &= switch[name] == 1
        return np.ones(len(rows), np.bool_), all_a, all_b

    # answers of a model that was asked again

    @cached_property
    def askable(self) -> Codes:
        """The samples that were asked otherwise, and whose scores can be computed from any answer.

        Those with equal answers are among them: other draws may differ.
        """
        both = self.pairs.both
        failed = self.failed[0][:both] | self.failed[1][:both]
        known = self.reproduced[0][:both] & self.reproduced[1][:both]
        rows = np.flatnonzero(self.asked_other & known & ~failed)
        first, last = self.ends(rows)
        kept: Codes = rows[~np.isnan(first) & ~np.isnan(last)]
        return kept

    def ends(self, rows: Codes) -> tuple[Vector, Vector]:
        """The scores of A's and of B's answers by the ingredients that are before the answers in the chain."""
        switch = {name: int(name in ("samples", "gold")) for name in PARTS}
        is_b = np.zeros(len(rows), np.bool_)
        return self._computed(rows, is_b, switch), self._computed(rows, ~is_b, switch)

    def _between(self, asked: Asked, switched: frozenset[Key], switch: Mapping[str, int]) -> Vector:
        """The scores of the samples that could be asked about, between A's answers and B's."""
        path = self.path(asked, switch)
        done = np.array([key in switched for key in asked.keys], np.bool_)
        if done.all():
            at: Vector = path[-1]
            return at
        at = path[0] + asked.steps(path)[0][done].sum(axis=0)
        held: Vector = np.where(np.isnan(at), path[-1] if done[-1] else path[0], at)
        return held

    def path(self, asked: Asked, switch: Mapping[str, int]) -> Steps:
        """The scores of A's answers, of those to each request, and of B's."""
        key = self._sides(switch["gold"], 0, switch)
        if key not in self._paths:
            is_b = np.zeros(len(asked.rows), np.bool_)
            points = [self._computed(asked.rows, is_b, switch)]
            for answer in range(2, len(asked.step_keys) + 1):
                points.append(np.full(len(asked.rows), np.nan))
                golds = self._gold_side(asked.rows, switch)
                for gold in (0, 1):
                    places = np.flatnonzero(asked.is_asked & (golds == gold))
                    points[-1][places] = self._rescored(asked.rows[places], self._sides(gold, answer, switch))
            self._paths[key] = np.array([*points, self._computed(asked.rows, ~is_b, switch)])
        return self._paths[key]

    @property
    def _of_all_samples(self) -> list[str]:
        """The parts that change the scores of all samples."""
        fitted = ["samples", "gold"] if self.is_fitted else []
        return [*fitted, *(name for name, is_other in self.rules.items() if is_other)]

    def _alone(self, rows: Codes, side: int, switch: Mapping[str, int]) -> Vector:
        """Samples in one side only, by the rules of the chain if their scores can be computed."""
        values = self.values[side][rows].copy()
        if all(switch[name] == side for name in self._of_all_samples):
            return values
        places = np.flatnonzero(self.reproduced[side][rows] & ~self.failed[side][rows])
        if len(places) and self.a.rule is not None and self.b.rule is not None:
            values[places] = self._rescored(rows[places], self._sides(side, side, switch))
        return values

    def _rescored(self, rows: Codes, sides: Sides) -> Vector:
        if self.can_mix or sides.reading == sides.scoring:
            whole = sides if self.can_mix else replace(sides, failure=sides.reading)
            known = self._of(whole, rows)
            return np.array([known[row][0] for row in rows.tolist()], np.float64)
        # Two metrics: if both read the same, the difference is in the credit.
        pure = [self._of(replace(sides, failure=side, reading=side, scoring=side), rows) for side in (0, 1)]
        reading, scoring = pure[sides.reading], pure[sides.scoring]
        return np.array(
            [
                (scoring if reading[row][1] == scoring[row][1] else reading)[row][0]
                if reading[row][1] is not None
                else reading[row][0]
                for row in rows.tolist()
            ],
            np.float64,
        )

    def _of(self, sides: Sides, rows: Codes) -> dict[int, tuple[float, str | None]]:
        """The scores of samples with these ingredients, each computed once."""
        known = self._known.setdefault(sides, {})
        missing = [row for row in rows.tolist() if row not in known]
        if missing:
            rows_of = ([self.rows[0][n] for n in missing], [self.rows[1][n] for n in missing])
            scored = self.rescorer(rows_of, sides, self._corpus(sides.corpus[0]))
            known.update(zip(missing, zip(scored.values.tolist(), scored.read, strict=True), strict=True))
        return known

    def _corpus(self, side: int) -> RowPairs:
        """The rows of all samples of a side."""
        kept = self.is_in[side]
        return self.pairs.rows[0][kept].tolist(), self.pairs.rows[1][kept].tolist()

    # numbers

    def _offsets(self) -> tuple[Fraction, Fraction]:
        """What each headline has beyond the average of its scores: rounding, or an average that is not known."""
        values_at = []
        for side, switched in ((self.a, frozenset[Key]()), (self.b, self.everything)):
            mean = self._average(side, self.scores(switched))
            if mean is None:
                raise ConfigError(f"{side.name} has no scored sample of {side.metric}, so there is nothing to explain")
            offset = side.headline * self.scale / side.scale - mean * self.scale
            is_rounding = abs(offset) <= _ROUNDING * self.scale * max(
                Fraction(1), abs(mean)
            )  # of floating-point numbers
            values_at.append(Fraction(0) if is_rounding else offset)
        return values_at[0], values_at[1]

    @property
    def everything(self) -> frozenset[Key]:
        """All parts: the ingredients of B."""
        return _ALL | {*self.causes, *self.lump_keys, *(self.asked.keys if self.asked is not None else ())}

    @property
    def scale(self) -> int:
        """100 if both are shares."""
        is_share = all(tuple(side.bounds) == (0, 1) for side in (self.a, self.b))
        return 100 if is_share or 100 in (self.a.scale, self.b.scale) else 1

    def _average(self, side: Side, values: Vector) -> Fraction | None:
        if side.strata is not None:
            return self._weighted(side.strata, values)
        return self._by(average_of(side.average, side.metric), values)

    def _weighted(self, strata: Strata, values: Vector) -> Fraction | None:
        """The weighted sum over strata of the means of their clusters."""
        weights = list(strata.weights)
        other = self.b if strata is self.a.strata else self.a
        samples_of, place = (self.a, 0) if strata is self.a.strata else (self.b, 1)
        known = other.strata.of if other.strata is not None and other.strata.by == strata.by else None
        outer, inner = [], []
        for n, rows in enumerate(zip(*self.rows, strict=True)):
            row, further = rows[place], rows[1 - place]
            text = strata.of[row] if row >= 0 else known[further] if known is not None else None
            outer.append(weights.index(text) if text is not None and text in strata.weights else -1)
            group = samples_of.groups[row] if row >= 0 else other.groups[further]
            inner.append(f"{text} {n}" if group is None else f"{text} {group}")
        exact = {code: Fraction(repr(strata.weights[name])) for code, name in enumerate(weights)}
        numbers = {text: code for code, text in enumerate(dict.fromkeys(inner))}
        codes = np.array([-1 if o < 0 else numbers[i] for o, i in zip(outer, inner, strict=True)], np.int64)
        return Nested([np.array(outer, np.int64), codes], exact).of(values)

    def _by(self, average: Average, values: Vector) -> Fraction | None:
        if average.kind == "micro":
            return exact_mean(values[~np.isnan(values)])
        if average.kind == "mean":
            means = [self._by(member, values) for _, member in average.members]
            known = [mean for mean in means if mean is not None]
            return sum(known, Fraction(0)) / len(known) if len(known) == len(means) else None
        levels = [self._codes(columns) for columns in average.groupings]
        return Nested(levels, is_product=average.kind == "all-correct").of(values)

    def _codes(self, columns: tuple[str, ...]) -> Codes:
        """The group of each sample, by the columns of the side that has it; -1 without one."""
        if columns not in self._groups:
            self._groups[columns] = self._found_codes(columns)
        return self._groups[columns]

    def _found_codes(self, columns: tuple[str, ...]) -> Codes:
        keys = self.a.keys(columns), self.b.keys(columns)
        texts = [
            None if i < 0 and j < 0 else (keys[0][i] if i >= 0 else None) or (keys[1][j] if j >= 0 else None)
            for i, j in zip(*self.rows, strict=True)
        ]
        numbers: dict[str, int] = {}
        return np.array([-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts], np.int64)

    def number(self, switched: frozenset[Key], values: Vector) -> Fraction:
        """The number with these ingredients, in the unit of the difference."""
        side = int(("aggregation",) in switched)
        mean = self._average((self.a, self.b)[side], values)
        if mean is None:
            raise ConfigError(
                f"no sample is left that both {self.a.name} and {self.b.name} could be computed from: "
                f"the average {(self.a, self.b)[side].average} has no scored sample"
            )
        return mean * self.scale + self.offsets[side]


def _at(column: NDArray[Any], rows: Codes, missing: float | bool) -> NDArray[Any]:
    """The column at these rows; -1 means that the row is missing."""
    values_at = column[np.maximum(rows, 0)] if len(column) else np.full(len(rows), missing)
    return np.where(rows >= 0, values_at, missing)
