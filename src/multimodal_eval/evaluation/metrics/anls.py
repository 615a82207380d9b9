"""ANLS of texts and of structures.

ANLS, the average normalised Levenshtein similarity: how close is the answer to the nearest reference?

With the edit distance d and the length |.| of normalised texts:

    ANLS(c) = max_j s(c, r_j),   s(c, r) = 1 - d(c, r) / max(|c|, |r|) if that quotient is below 0.5, else 0

The rules differ in the normalisation, in the lengths and at exactly 0.5.

Reference:
    Biten et al. (2019). Scene Text Visual Question Answering. ICCV. arXiv:1905.13648; equation 1 of
    ICDAR 2019 Competition on Scene Text Visual Question Answering, arXiv:1907.00490.

ANLS*: how close is a structured answer, such as the fields of a document, to the gold structure?

Values are compared as trees: texts by ANLS, lists by the best matching of their items, mappings key by key. The value
is the sum of all similarities divided by the number of values compared (`multimodal_eval.evaluation.metrics.anls`).

A reference that is a JSON object or list is a structure; otherwise it is text. Within it, {"$any_of": […]} has several
right values. An answer is read as JSON, also from a code block, if a reference is a structure. If it is text after all,
a list of texts has alternatives, as in the program of the authors.

Reference:
    Peer et al. (2024). ANLS*: A Universal Document Processing Metric for Generative Large Language Models.
    arXiv:2402.03848.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from multimodal_eval._native import best_assignment, edit_distance, folded_edit_distances
from multimodal_eval.core.metric import require_references
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score, Scores
from multimodal_eval.evaluation.rules.anls import SIMILARITIES, AnlsRule, EditSimilarity
from multimodal_eval.text.captions import texts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["AnyOf", "anls", "anls_star", "anls_star_similarity", "compute_anls", "compute_anls_star"]


AnlsRuleName = Annotated[str, "how an answer is compared with a reference", RuleFamily("anls")]


def anls(candidate: str, references: Sequence[str], *, rule: str = "anls@2019") -> float:
    """ANLS of one answer against its references."""
    require_references("anls", references)
    return _best(find_rule("anls", rule).function, candidate, references)


def _best(similarity: AnlsRule, candidate: str, references: Sequence[str]) -> float:
    return max(float(similarity(candidate, reference)) for reference in references)


@metric("anls", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=True)
def compute_anls(samples: Sequence[Sample], *, rule: AnlsRuleName = "anls@2019") -> Scores:
    """Edit similarity to the nearest reference, 0 below one half."""
    import numpy as np

    named = find_rule("anls", rule)
    if named.is_built_in:
        return Scores.of_values(_of_columns(samples, SIMILARITIES[rule]))
    answers = ((sample.generated_answer or "", sample.reference_texts) for sample in samples)
    return Scores.of_values(np.array([_best(named.function, *answer) for answer in answers], np.float64))


def _of_columns(samples: Sequence[Sample], similarity: EditSimilarity) -> NDArray[np.float64]:
    """The compiled core handles ASCII texts, whose lower case needs no tables; other rows are scored one by one."""
    import numpy as np

    pairs, counts = folded_edit_distances(*texts_of(samples), similarity.collapses)
    lengths = pairs[:, 1:3] if similarity.length_of.startswith("folded") else pairs[:, 3:5]
    values = similarity.similarity(pairs[:, 0] / np.maximum(lengths.max(axis=1), 1))
    scores = np.zeros(len(counts))
    is_ascii = counts > 0
    starts = np.concatenate([[0], np.cumsum(counts[is_ascii])[:-1]]).astype(np.int64)
    if len(values):
        scores[is_ascii] = np.maximum.reduceat(values, starts)
    for row in np.flatnonzero(counts < 0).tolist():
        sample = samples[row]
        scores[row] = _best(similarity, sample.generated_answer or "", sample.reference_texts)
    return scores


ANY_OF = "$any_of"
_CODE_BLOCK = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)


def anls_star(candidate: str, references: Sequence[str]) -> float:
    """ANLS* of one answer against its references, the best of which counts."""
    return _scored(candidate, references)[0]


def _scored(candidate: str, references: Sequence[str]) -> tuple[float, bool]:
    """The similarity, and whether a structure was asked for and none could be read."""
    require_references("anls_star", references)
    golds = tuple(_gold(_structure(reference), reference) for reference in references)
    if all(isinstance(gold, str) for gold in golds):
        return anls_star_similarity(candidate, AnyOf(golds)), False
    answer = _structure(candidate)
    if answer is not None:
        return anls_star_similarity(answer, AnyOf(golds)), False
    return anls_star_similarity(candidate, AnyOf(tuple(map(_for_text, golds)))), True


def _for_text(gold: Any) -> Any:
    """The gold value for an answer that is text: of a list of texts, each is right."""
    is_texts = isinstance(gold, list) and gold and all(isinstance(item, str) for item in gold)
    return AnyOf(tuple(gold)) if is_texts else gold


def _structure(text: str) -> Any:
    """The JSON object or list that the text is, or that its last code block has; None if there is none."""
    blocks = _CODE_BLOCK.findall(text)
    for content in (text, *reversed(blocks)):
        if content.lstrip()[:1] in ("{", "["):
            try:
                return msgspec.json.decode(content)
            except (msgspec.DecodeError, RecursionError):
                continue
    return None


def _gold(structure: Any, text: str) -> Any:
    return text if structure is None else _with_alternatives(structure)


def _with_alternatives(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {ANY_OF} and isinstance(value[ANY_OF], list) and value[ANY_OF]:
            return AnyOf(tuple(map(_with_alternatives, value[ANY_OF])))
        return {key: _with_alternatives(item) for key, item in value.items()}
    return list(map(_with_alternatives, value)) if isinstance(value, list) else value


@metric("anls_star", version="2", needs=("generated_answer", "references"), bounds=(0, 1), blank=0.0)
def compute_anls_star(sample: Sample) -> Score:
    """Similarity of a structured answer to the gold structure, value by value."""
    value, is_unread = _scored(sample.generated_answer or "", sample.reference_texts)
    return Score(value, warning=UNREAD if is_unread else None)


# ANLS*: the similarity of two structured values, such as the fields of an invoice.
#
# Values are compared as trees. A gold value may be text, a number, None, a list, a mapping, or `AnyOf` several values.
#
# - Two texts: 1 - edit distance / longer length in lower case with collapsed white space, or 0 below 0.5.
# - None: 1 if the answer has no value either (None, "", [] or {}), else 0.
# - Lists: the items are matched one to one so that the sum of similarities is largest. Items without a partner count 0.
# - Mappings: value by value; a key that only one side has is None on the other.
# - AnyOf: the alternative that fits best.
#
# The result is the sum of similarities divided by the number of values compared.
#
# Reference:
#     Peer et al. (2024). ANLS*: A Universal Document Processing Metric for Generative Large Language Models.
#     arXiv:2402.03848; the package anls-star 1.0.1. If several matchings of two lists are best, any of them may be
#     used.

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
