"""Why two numbers differ: their difference as the sum of nine parts, without a remainder.

The number of A becomes that of B in a chain of steps, each of which replaces one ingredient (`why_pairs.PARTS`):

    part_i = N(b_1 … b_i, a_i+1 … a_9) - N(b_1 … b_i-1, a_i … a_9)        sum of all parts = N(B) - N(A)

N is computed with fractions. Scores that no run has, such as those of B's answers under A's rule, are computed by the
rules. Where a rule is not known, a sample passes from its score in A to that in B at once, in a part of its own that is
named after everything that differs in it. The order matters: `last` is the same difference at the end of the chain,
N(B) - N(B with a_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import hypot
from typing import Literal

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import cluster_codes
from multimodal_eval.analysis.why_chain import Asked, Chain, Codes, Rescorer
from multimodal_eval.analysis.why_pairs import PARTS, Key, Mask, Side, Vector, is_reordered, thinks
from multimodal_eval.core.display import Displayed, counted
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import interval, within
from multimodal_eval.stats.special import stdtrit

__all__ = ["Confidence", "Example", "Part", "Why", "explained"]

Confidence = Literal["certain", "measured", "attributed", "unknown"]
EXAMPLES = 5


@dataclass(frozen=True)
class Example:
    """A sample that a part moved."""

    id: str
    question: str | None
    gold: tuple[str | None, str | None]
    answer: tuple[str | None, str | None]
    read: tuple[str | None, str | None]
    values: tuple[float | None, float | None]  # before and after the step


@dataclass(frozen=True)
class Part:
    """What one ingredient, or several that cannot be told apart, contribute to the difference."""

    key: Key
    value: Fraction
    last: Fraction  # if the part is taken last
    moved: int  # samples whose score changed
    ids: Sequence[str]
    confidence: Confidence
    figure: Figure
    why: str
    settle: str  # what would make it certain
    examples: Sequence[Example] = ()

    @property
    def name(self) -> str:
        """The parts of the table, joined."""
        return " + ".join(self.key)


@dataclass(frozen=True, repr=False)
class Why(Displayed):
    """The difference of two numbers and its parts. Values are in `unit`; fractions are exact."""

    a: str
    b: str
    metrics: tuple[str, str]
    unit: str
    headlines: tuple[Fraction, Fraction]
    parts: Sequence[Part]
    samples: tuple[int, int, int]  # in A, in B, in both
    notes: Sequence[str]

    @property
    def difference(self) -> Fraction:
        """B minus A."""
        return self.headlines[1] - self.headlines[0]

    @property
    def sum_error(self) -> Fraction:
        """What the parts leave unexplained: zero."""
        return self.difference - sum((part.value for part in self.parts), Fraction(0))

    @property
    def settled(self) -> float:
        """The share of the parts, by size, that is certain or measured."""
        total = sum(abs(part.value) for part in self.parts)
        known = sum(abs(part.value) for part in self.parts if part.confidence in ("certain", "measured"))
        return float(known / total) if total else 1.0

    def to_dict(self) -> JsonObject:
        """The parts as a JSON object. Exact values are texts such as `37/900`."""
        parts = []
        for part in self.parts:
            content = asdict(replace(part, figure=None))  # type: ignore[arg-type]
            exact = {"value": float(part.value), "exact": str(part.value), "last": float(part.last)}
            figure = msgspec.to_builtins(part.figure)
            parts.append({**content, **exact, "exact_last": str(part.last), "figure": figure, "name": part.name})
        first, second = self.headlines
        return {
            "a": {"name": self.a, "metric": self.metrics[0], "value": float(first), "exact": str(first)},
            "b": {"name": self.b, "metric": self.metrics[1], "value": float(second), "exact": str(second)},
            "unit": self.unit,
            "difference": float(self.difference),
            "exact_difference": str(self.difference),
            "sum_error": str(self.sum_error),
            "settled": self.settled,
            "samples": dict(zip(("a", "b", "both"), self.samples, strict=True)),
            "parts": parts,
            "notes": list(self.notes),
        }


def explained(a: Side, b: Side, rescorer: Rescorer, ask: Callable[[Chain], Asked | None] | None = None) -> Why:
    """Split the difference of two numbers into parts. `ask` asks a model again, which tells prompts from noise."""
    parts = _Parts(a, b, rescorer)
    if ask is not None:
        parts.asked = ask(parts)
    return parts.why()


class _Parts(Chain):
    """The differences between the steps of a chain."""

    def why(self) -> Why:
        """All parts in the order of the chain."""
        switched: frozenset[Key] = frozenset()
        before = self.scores(switched)
        start = value = self.number(switched, before)
        all_b = self.everything
        end_values = self.scores(all_b)
        end = self.number(all_b, end_values)
        parts = []
        for key in self._order():
            switched = switched | {key}
            after = self.scores(switched)
            following = self.number(switched, after)
            without = self.scores(all_b - {key})
            last = end - self.number(all_b - {key}, without)
            parts.append(self._part(key, following - value, last, before, after))
            before, value = after, following
        notes = [*self.pairs.notes, *dict.fromkeys([*self.a.notes, *self.b.notes]), *self._unit_notes()]
        sizes = len(self.a), len(self.b), self.pairs.both
        unit = "points" if self.scale == 100 else self.a.metric
        names, metrics = (self.a.name, self.b.name), (self.a.metric, self.b.metric)
        return Why(*names, metrics, unit, (start, end), tuple(parts), sizes, tuple(notes))

    def _order(self) -> list[Key]:
        """All nine parts, and joint parts after the last of their members."""
        present = {self.causes[code] for code in np.unique(self.cause[~self._is_measured & (self.cause >= 0)]).tolist()}
        measured = self.asked.keys if self.asked is not None else []
        joint = {key for key in (*present, *self.lump_keys, *measured) if len(key) > 1}
        singles: list[Key] = [(part,) for part in PARTS]
        return sorted([*singles, *joint], key=lambda key: (PARTS.index(key[-1]), len(key), key))

    @cached_property
    def _is_measured(self) -> Mask:
        """The samples between whose answers a model was asked again."""
        result = np.zeros(len(self.pairs.ids), np.bool_)
        if self.asked is not None:
            result[self.asked.rows] = True
        return result

    def _part(self, key: Key, value: Fraction, last: Fraction, before: Vector, after: Vector) -> Part:
        moved = np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after)))
        confidence = self._confidence(key, moved, value)
        if self.asked is not None and key in self.asked.keys:  # the others have the mean of those that were asked
            moved = moved[~self._is_measured[moved] | np.isin(moved, self.asked.rows[self.asked.is_asked])]
        ids = [self.pairs.ids[row] for row in moved.tolist()]
        settle = "" if confidence == "certain" else self._settle(key, confidence)
        figure = self._figure(key, value, before, after)
        examples = [self._example(row, before[row], after[row]) for row in moved[:EXAMPLES].tolist()]
        return Part(key, value, last, len(ids), ids, confidence, figure, self._reason(key), settle, examples)

    def _confidence(self, key: Key, moved: Codes, value: Fraction) -> Confidence:
        """Certain if it was computed, attributed if only the samples were divided, unknown if a log does not tell."""
        if not len(moved) and not value:
            return "certain"
        if key == ("aggregation",):
            return "certain" if not self._unexplained() else "unknown"
        if self.asked is not None and key in self.asked.keys:
            others = moved[~self._is_measured[moved]]
            if all(self.causes[code] == ("answer",) for code in np.unique(self.cause[others]).tolist()):
                return "measured"
        if "answer" in key or "prompt" in key or "decoding" in key:
            is_unknown = len(key) > 1 and bool(self.unknown_cause[moved[moved < self.pairs.both]].any())
            has_rules = any(name in key for name in ("reading", "scoring"))
            return "unknown" if is_unknown or has_rules else "attributed"
        lumped = moved[self.lumps[moved] >= 0]
        if len(lumped) and len(key) > 1:
            return "unknown"
        if key in (("reading",), ("scoring",)) and not all(each[lumped].all() for each in self.accounted):
            return "attributed"
        return "certain"

    def _settle(self, key: Key, confidence: Confidence) -> str:
        if confidence in ("attributed", "measured"):
            return ""
        words = []
        for side in (self.a, self.b):
            hints = list(dict.fromkeys(hint for part in key if (hint := side.settles.get(part))))
            if hints:
                words.append(f"{side.name} does not say {' and '.join(hints)}")
        if words and {"prompt", "decoding"} & {*key}:
            words.append("runs of `mmeval run` store prompts and parameters")
        return "; ".join(words)

    def _unexplained(self) -> list[Side]:
        """The sides whose headline is not the average of their scores, nor the same rounded."""
        result = []
        for side, offset in zip((self.a, self.b), self.offsets, strict=True):
            half = (
                Fraction(self.scale, side.scale) * Fraction(1, 2 * 10**side.decimals)
                if side.decimals is not None
                else 0
            )
            if abs(offset) > half + Fraction(self.scale, 10**9):
                result.append(side)
        return result

    def _unit_notes(self) -> list[str]:
        scales = {self.a.scale, self.b.scale}
        if scales != {1, 100}:
            return []
        percent, share = (self.a, self.b) if self.a.scale == 100 else (self.b, self.a)
        return [f"{percent.name} is in percent, {share.name} is a fraction; both are compared in percent"]

    def _figure(self, key: Key, value: Fraction, before: Vector, after: Vector) -> Figure:
        """The interval of the part: one sample more or less of the same kind."""
        point = float(value)
        if key == ("aggregation",) or self.a.average != "micro" or self.a.strata is not None:
            return Figure(point, None, None, None, "no interval: not a mean over samples", name=" + ".join(key))
        change, error = self._influence(after) - self._influence(before), self._asking_error(key, after)
        if not change.any() and not error:
            return Figure(point, None, None, None, "no interval: the mean does not change", name=" + ".join(key))
        bounds = (-100.0, 100.0) if self.scale == 100 else (None, None)
        estimate = Estimate(point, change, bounds=bounds)
        result = interval(estimate, self._clusters)
        low, high, method = result.low, result.high, result.method
        if self.asked is not None and error:
            low, high = (
                sign * hypot(0.0 if end is None else end - point, error) for sign, end in ((-1, low), (1, high))
            )
            low, high = within(point + low, point + high, estimate)
            method = f"{method}, {int(self.asked.is_asked.sum()):,} of {len(self.asked.rows):,} samples asked again"
        return Figure(point, result.stderr, low, high, method, name=" + ".join(key))

    def _asking_error(self, key: Key, values: Vector) -> float:
        """Half the width of the interval of a part that comes from the samples that were not asked."""
        asked = self.asked
        if asked is None or key not in asked.keys:
            return 0.0
        switch = {name: int(name in ("samples", "gold")) for name in PARTS}
        errors = asked.steps(self.path(asked, switch))[1]
        error = float(errors[asked.keys.index(key)])
        freedom = max(1, int(asked.is_asked.sum()) - 1)
        return float(stdtrit(freedom, 0.975)) * error * self.scale / int((~np.isnan(values)).sum())

    def _influence(self, values: Vector) -> Vector:
        """What each sample adds to the mean of those that are scored."""
        scored = ~np.isnan(values)
        mean = float(values[scored].mean())
        return np.where(scored, (values - mean) * (len(values) / int(scored.sum())) * self.scale, 0.0)

    @cached_property
    def _clusters(self) -> Codes | None:
        import pyarrow as pa

        groups = [self.a.groups[i] if i >= 0 else self.b.groups[j] for i, j in zip(*self.rows, strict=True)]
        return cluster_codes(pa.chunked_array([pa.array(groups, pa.string())]))

    def _example(self, row: int, before: float, after: float) -> Example:
        i, j = self.rows[0][row], self.rows[1][row]

        def of(column: str) -> tuple[str | None, str | None]:
            first, second = getattr(self.a, column), getattr(self.b, column)
            return (first[i] if i >= 0 else None, second[j] if j >= 0 else None)

        question = next((text for text in of("question") if text is not None), None)
        values = tuple(None if np.isnan(value) else float(value) for value in (before, after))
        return Example(self.pairs.ids[row], question, of("gold"), of("answer"), of("read"), (values[0], values[1]))

    # reasons in words

    def _reason(self, key: Key) -> str:
        return "; ".join(filter(None, (self._reason_of(part) for part in key)))

    def _reason_of(self, part: str) -> str:
        a, b, pairs = self.a, self.b, self.pairs
        both = pairs.both
        if part == "samples":
            return self._samples_reason()
        if part == "gold":
            count = int(self.new_gold.sum())
            return f"{count:,} {'sample has' if count == 1 else 'samples have'} another gold answer" if count else ""
        if part == "prompt":
            changes = _changes(a.prompting, b.prompting)
            measured = self.asked.keys if self.asked is not None else []
            is_known = {("prompt",), ("prompt", "decoding")} & {*self.causes, *measured}
            choices = ((a.choices[i], b.choices[j]) for i, j in zip(*(r[:both] for r in self.rows), strict=True))
            moved = sum(is_reordered(*each) for each in choices)
            more = [f"{counted(moved, 'sample')} with choices in another order"] if moved else []
            return "; ".join(filter(None, [changes, *more])) or ("other prompts" if is_known else "")
        if part == "decoding":
            changes = _changes(a.decoding, b.decoding)
            cut = sum(a.is_cut[i] != b.is_cut[j] for i, j in zip(*(r[:both] for r in self.rows), strict=True))
            more = [f"{counted(cut, 'answer')} cut off in one only"] if cut else []
            pairs_of = zip(*(r[:both] for r in self.rows), strict=True)
            kept = sum(thinks(a.answer[i]) != thinks(b.answer[j]) for i, j in pairs_of)
            more += [f"{counted(kept, 'answer')} with thinking in one only"] if kept else []
            return "; ".join(filter(None, [changes, *more]))
        if part == "answer":
            count = int((self.cause >= 0).sum())
            model = f", of {a.model} and {b.model}" if a.model != b.model and a.model and b.model else ""
            return f"{count:,} {'answer differs' if count == 1 else 'answers differ'}{model}" if count else ""
        if part == "failure":
            return self._failure_reason()
        if part == "aggregation":
            return self._aggregation_reason()
        if a.rule is None and b.rule is None and a.program == b.program:
            return ""
        known = [getattr(side.rule, part) if side.rule is not None else None for side in (a, b)]
        if None in known:
            named = [
                f"{side.name}: {'scores of ' + side.program if side.rule is None else _settings(rule)}"
                for side, rule in zip((a, b), known, strict=True)
            ]
            return "; ".join(named)
        return _changes(*known)

    def _samples_reason(self) -> str:
        pairs = self.pairs
        only = [int((self.is_in[side] & ~self.is_in[1 - side]).sum()) for side in (0, 1)]
        if not any(only):
            return ""
        words = [f"{count:,} only in {name}" for count, name in zip(only, "AB", strict=True) if count]
        if pairs.revised:
            words.append(f"{pairs.revised:,} have the same id and another question, choices or image")
        if any(pairs.duplicates):
            words.append(f"{sum(pairs.duplicates):,} are copies of other samples")
        return ", ".join(words)

    def _failure_reason(self) -> str:
        both = slice(self.pairs.both)
        words = []
        for side, name in enumerate("AB"):
            failed = self.failed[side][both] | np.isnan(self.values[side][both])
            if count := int(failed.sum()):
                left = int(np.isnan(self.values[side][both]).sum())
                counted = self.values[side][both][failed & ~np.isnan(self.values[side][both])]
                how = [f"leaves {left:,} out"] if left else []
                if len(counted):
                    values = ", ".join(f"{value:g}" for value in np.unique(counted)[:3].tolist())
                    how.append(f"counts {len(counted):,} failed answers as {values}")
                words.append(f"{name} {' and '.join(how)}" if how else f"{name}: {count:,}")
        first, second = self.a.rule, self.b.rule
        changes = _changes(first.failure, second.failure) if first and second else ""
        return "; ".join(filter(None, [*words, changes]))

    def _aggregation_reason(self) -> str:
        a, b = self.a, self.b
        first, second = _average_words(a), _average_words(b)
        words = [] if first == second else [f"{first} → {second}"]
        unexplained = self._unexplained()
        for side, offset in zip((a, b), self.offsets, strict=True):
            if side in unexplained:
                words.append(f"{side.name} states a number that is not the average of its scores")
            elif abs(offset) > Fraction(self.scale, 10**9):
                words.append(f"{side.name} is rounded")
        return "; ".join(words)


def _average_words(side: Side) -> str:
    if side.strata is not None:
        return f"weighted by {side.strata.by}: {_settings(dict(side.strata.weights))}"
    return "mean over samples" if side.average == "micro" else side.average


def _settings(settings: object) -> str:
    content = settings if isinstance(settings, dict) else {}
    return ", ".join(f"{name} {value}" for name, value in content.items())


def _changes(first: object, second: object) -> str:
    """`max_tokens 128 → 1024; temperature 0 → 1`."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return ""
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    names = ["metric"] if "metric" in names else names  # the others are those of each metric
    return "; ".join(f"{name} {_word(first.get(name))} → {_word(second.get(name))}" for name in names)


def _word(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
