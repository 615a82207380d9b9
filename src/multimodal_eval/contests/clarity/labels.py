"""CLARITY's labels: nine evasion techniques under three degrees of clarity, and their common aliases.

Reference:
    Thomas, Filandrianos, Lymperaiou, Zerva and Stamou (2024). "I Never Said That": A dataset, taxonomy and baselines on
    response clarity classification. Findings of EMNLP. arXiv:2409.13879.
"""

from __future__ import annotations

import re

from multimodal_eval.core.errors import InputError, Problem, UnknownNameError, shorten
from multimodal_eval.data.labels.taxonomy import Taxonomy, folded, is_missing

CLARITY_LABELS: tuple[str, ...] = ("Clear Reply", "Ambivalent Reply", "Clear Non-Reply")

# Evasion label -> clarity label, in the order of the labels' ids.
EVASION_TO_CLARITY: dict[str, str] = {
    "Explicit": "Clear Reply",
    "Implicit": "Ambivalent Reply",
    "General": "Ambivalent Reply",
    "Partial/half-answer": "Ambivalent Reply",
    "Dodging": "Ambivalent Reply",
    "Deflection": "Ambivalent Reply",
    "Declining to answer": "Clear Non-Reply",
    "Claims ignorance": "Clear Non-Reply",
    "Clarification": "Clear Non-Reply",
}
EVASION_LABELS: tuple[str, ...] = tuple(EVASION_TO_CLARITY)

ALIASES: dict[str, str] = {
    "partial": "Partial/half-answer",
    "half-answer": "Partial/half-answer",
    "partial/half answer": "Partial/half-answer",
    "partial / half-answer": "Partial/half-answer",
    "declining": "Declining to answer",
    "ambivalent": "Ambivalent Reply",
    "ambiguous": "Ambivalent Reply",
    "ambiguous reply": "Ambivalent Reply",
    "clear non reply": "Clear Non-Reply",
    "clear nonreply": "Clear Non-Reply",
    "non-reply": "Clear Non-Reply",
}

_CANONICAL = frozenset((*CLARITY_LABELS, *EVASION_LABELS))
_SEPARATORS = re.compile(r"[\s_/-]+")
_PREFIX = re.compile(r"\d+(?:\.\d+)*\s*[.):-]?\s*(?=[^\d.\s])")  # "2.3 " or "1. ", but not a purely numeric label
_TRAILING = "_ \t\r\n.,;:!?…)\"'”’»-–—"


def _form(label: str) -> str:
    """The letters of a label, in which "Claims ignorance", "claims_ignorance" and "ClaimsIgnorance" are equal."""
    return _SEPARATORS.sub("", folded(label))


_BY_FORM = {_form(name): label for name, label in (*zip(_CANONICAL, _CANONICAL, strict=True), *ALIASES.items())}


def normalize_label(label: str | None) -> str:
    """The canonical form of a label; "" for None and blanks.

    Case, white space, underscores, hyphens and slashes are ignored ("claims_ignorance"), a numeric prefix
    ("2.3 Partial/half-answer") and punctuation at the end are dropped, and aliases are resolved. A text that is not a
    label of either task is returned without prefix and punctuation; the caller has to report it.
    """
    if type(label) is str and label in _CANONICAL:
        return label
    if is_missing(label):
        return ""
    if not isinstance(label, str):
        raise InputError([Problem(code="TYPE", message=f"a label must be text. Got {shorten(label)} instead.")])
    text = " ".join(label.split())
    bare = _PREFIX.sub("", text, count=1).rstrip(_TRAILING) if text[:1].isdigit() else text.rstrip(_TRAILING)
    return _BY_FORM.get(_form(bare), bare)


def evasion_to_clarity(label: str | None) -> str:
    """The clarity label to which an evasion label belongs; "" for None and blanks."""
    canonical = normalize_label(label)
    if not canonical:
        return ""
    if canonical not in EVASION_TO_CLARITY:
        raise UnknownNameError("evasion label", label, EVASION_LABELS)
    return EVASION_TO_CLARITY[canonical]


def _taxonomy(labels: tuple[str, ...]) -> Taxonomy:
    return Taxonomy(labels, {alias: label for alias, label in ALIASES.items() if label in labels}, normalize_label)


EVASION, CLARITY = _taxonomy(EVASION_LABELS), _taxonomy(CLARITY_LABELS)
