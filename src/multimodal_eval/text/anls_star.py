"""ANLS*: the similarity of two structured values, such as the fields of an invoice.

Values are compared as trees. A gold value may be text, a number, None, a list, a mapping, or `AnyOf` several values.

- Two texts: 1 - edit distance / longer length in lower case with collapsed white space, or 0 below 0.5.
- None: 1 if the answer has no value either (None, "", [] or {}), else 0.
- Lists: the items are matched one to one so that the sum of similarities is largest. Items without a partner count 0.
- Mappings: value by value; a key that only one side has is None on the other.
- AnyOf: the alternative that fits best.

The result is the sum of similarities divided by the number of values compared.

Reference:
    Peer et al. (2024). ANLS*: A Universal Document Processing Metric for Generative Large Language Models.
    arXiv:2402.03848; the package anls-star 1.0.1. If several matchings of two lists are best, any of them may be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, TypeAlias

from multimodal_eval._native import best_assignment, edit_distance

__all__ = ["AnyOf", "anls_star_similarity"]

THRESHOLD = 0.5
Value: TypeAlias = Any  # of JSON; a gold value may also contain AnyOf


@dataclass(frozen=True)
class AnyOf:
    """A gold value with several alternatives, at least one."""

    alternatives: tuple[Value, ...]


@dataclass(frozen=True)
class _Match:
    """How an answer fits a gold value: the similarities of its values, how many count, and the gold value it fits."""

    similarities: list[float]
    length: int
    gold: Value

    @property
    def mean(self) -> float:
        return sum(self.similarities) / self.length if self.length > 0 else 1.0


def anls_star_similarity(answer: Value, gold: Value) -> float:
    """The similarity of two values, from 0 to 1. Each is made of what JSON has; the gold value may contain `AnyOf`."""
    return _match(gold, answer).mean


def _match(gold: Value, answer: Value) -> _Match:
    if isinstance(gold, AnyOf):
        matches = [_match(alternative, answer) for alternative in gold.alternatives]
        return max(matches, key=lambda match: (match.mean, match.gold == answer))
    if isinstance(gold, list):
        return _match_lists(gold, answer) if isinstance(answer, list) else _mismatch(gold, answer)
    if isinstance(gold, Mapping):
        return _match_mappings(gold, answer) if isinstance(answer, Mapping) else _mismatch(gold, answer)
    if gold is None:
        return _Match([1.0], _longer(gold, answer), answer) if _is_empty(answer) else _mismatch(gold, answer)
    if answer is None or isinstance(answer, list | Mapping):
        return _mismatch(gold, answer)
    return _Match([_similarity(str(gold), str(answer))], 1, gold)


def _mismatch(gold: Value, answer: Value) -> _Match:
    """Values of different kinds have no similarity; the larger of the two counts."""
    return _Match([0.0], _longer(gold, answer), gold)


def _longer(gold: Value, answer: Value) -> int:
    return max(_size(gold), _size(answer))


def _size(value: Value) -> int:
    """The number of single values in a value."""
    if isinstance(value, AnyOf):
        return max(map(_size, value.alternatives))
    if isinstance(value, list):
        return sum(map(_size, value))
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return 1


def _is_empty(value: Value) -> bool:
    return value is None or (isinstance(value, str | list | Mapping) and not value)


def _similarity(gold: str, answer: str) -> float:
    left, right = (" ".join(text.lower().split()) for text in (gold, answer))
    length = max(len(left), len(right))
    similarity = 1 - edit_distance(left, right) / length if length else 1.0
    return similarity if similarity >= THRESHOLD else 0.0


def _match_lists(gold: list[Value], answer: list[Value]) -> _Match:
    matches = [[_match(item, other) for other in answer] for item in gold]
    pairs = _best_pairs(
        [[_preference(match, other) for match, other in zip(row, answer, strict=True)] for row in matches]
    )
    matched_rows, matched_columns = {row for row, _ in pairs}, {column for _, column in pairs}
    length = sum(matches[row][column].length for row, column in pairs)
    length += sum(_size(item) for row, item in enumerate(gold) if row not in matched_rows)
    length += sum(_size(item) for column, item in enumerate(answer) if column not in matched_columns)
    fitting = [matches[row][column].gold for row, column in sorted(pairs, key=lambda pair: pair[1])]
    fitting += [item for row, item in enumerate(gold) if row not in matched_rows]
    return _Match([value for row, column in pairs for value in matches[row][column].similarities], length, fitting)


def _best_pairs(preferences: list[list[float]]) -> list[tuple[int, int]]:
    """The pairs of row and column with the largest sum. Some rows or columns are in none if there are more of them."""
    if not preferences or not preferences[0]:
        return []
    return best_assignment(preferences)


def _preference(match: _Match, answer: Value) -> float:
    """The mean similarity, a little higher for equal values so that they are matched first."""
    return nextafter(match.mean, inf) if answer == match.gold else match.mean


def _match_mappings(gold: Mapping[str, Value], answer: Mapping[str, Value]) -> _Match:
    similarities: list[float] = []
    length, fitting = 0, {}
    for key in dict.fromkeys([*gold, *answer]):
        match = _match(gold.get(key), answer.get(key))
        length += match.length
        if key not in gold and _is_empty(answer[key]):
            continue
        similarities += match.similarities
        if key in answer or not _is_empty(match.gold):
            fitting[key] = match.gold
    return _Match(similarities, length, fitting)
