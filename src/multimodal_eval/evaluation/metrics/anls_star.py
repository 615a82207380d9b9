"""ANLS*: how close is a structured answer, such as the fields of a document, to the gold structure?

Values are compared as trees: texts by ANLS, lists by the best matching of their items, mappings key by key. The value
is the sum of all similarities divided by the number of values compared (`multimodal_eval.text.anls_star`).

A reference that is a JSON object or list is a structure; otherwise it is text. Within it, {"$any_of": […]} has several
right values. An answer is read as JSON, also from a code block, if a reference is a structure.

Reference:
    Peer et al. (2024). ANLS*: A Universal Document Processing Metric for Generative Large Language Models.
    arXiv:2402.03848.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score
from multimodal_eval.text.anls_star import AnyOf, anls_star_similarity
from multimodal_eval.text.captions import require_references

__all__ = ["anls_star", "compute_anls_star"]

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
    is_unread = answer is None
    return anls_star_similarity(candidate if is_unread else answer, AnyOf(golds)), is_unread


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


@metric("anls_star", version="1", needs=("generated_answer", "references"), bounds=(0, 1), blank=0.0)
def compute_anls_star(sample: Sample) -> Score:
    """Similarity of a structured answer to the gold structure, value by value."""
    value, is_unread = _scored(sample.generated_answer or "", sample.reference_texts)
    return Score(value, warning=UNREAD if is_unread else None)
