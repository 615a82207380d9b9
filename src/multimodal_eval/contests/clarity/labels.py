"""CLARITY's labels: nine evasion techniques under three degrees of clarity, their common aliases, and the two tasks.

Reference:
    Thomas, Filandrianos, Lymperaiou, Zerva and Stamou (2024). "I Never Said That": A dataset, taxonomy and baselines on
    response clarity classification. Findings of EMNLP. arXiv:2409.13879.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

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


# The two tasks of CLARITY: their labels, and the columns that hold them in data and predictions.

TaskName = Literal["clarity", "evasion"]


@dataclass(frozen=True, slots=True)
class ClarityTask:
    """One task."""

    name: TaskName
    labels: tuple[str, ...]

    @property
    def gold_column(self) -> str:
        """The data's column with the single gold label."""
        return f"{self.name}_label"

    @property
    def prediction_column(self) -> str:
        """The predictions' column."""
        return f"{self.name}_pred"

    def read(self, label: str | None) -> str | None:
        """A label as the taxonomy spells it; an unknown label stays unchanged, and a blank one is None."""
        canonical = normalize_label(label)
        return canonical if canonical in self.labels else (label or "").strip() or None

    def read_annotation(self, label: str | None) -> str | None:
        """The same for an annotator's evasion label; for clarity, it is mapped through the taxonomy."""
        evasion = normalize_label(label)
        return self.read(EVASION_TO_CLARITY.get(evasion, label) if self.name == "clarity" else label)

    def knows(self, label: str | None) -> bool:
        """Whether a label is in the taxonomy."""
        return label in self.labels

    def suggestion(self, label: str) -> str:
        """A hint for an unknown label."""
        (other,) = (task for task in TASKS.values() if task is not self)
        if normalize_label(label) in other.labels:
            return f"That is a label of the task {other.name}."
        by_lower = {known.lower(): known for known in self.labels}
        near = get_close_matches(label.strip().lower(), by_lower, n=1, cutoff=0.6)
        return f"Did you mean {by_lower[near[0]]!r}?" if near else f"Known: {', '.join(self.labels)}."


TASKS: dict[TaskName, ClarityTask] = {
    "clarity": ClarityTask("clarity", tuple(CLARITY_LABELS)),
    "evasion": ClarityTask("evasion", tuple(EVASION_LABELS)),
}
