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
is the sum of all similarities divided by the number of values compared (`multimodal_eval.text.anls_star`).

A reference that is a JSON object or list is a structure; otherwise it is text. Within it, {"$any_of": […]} has several
right values. An answer is read as JSON, also from a code block, if a reference is a structure. If it is text after all,
a list of texts has alternatives, as in the program of the authors.

Reference:
    Peer et al. (2024). ANLS*: A Universal Document Processing Metric for Generative Large Language Models.
    arXiv:2402.03848.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from multimodal_eval._native import folded_edit_distances
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.rules.anls import SIMILARITIES, AnlsRule, EditSimilarity
from multimodal_eval.text.anls_star import AnyOf, anls_star_similarity
from multimodal_eval.text.captions import require_references, texts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["anls", "anls_star", "compute_anls", "compute_anls_star"]

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
