"""The two tasks of CLARITY: their labels, and the columns that hold them in data and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from multimodal_eval.contests.clarity.labels import CLARITY_LABELS, EVASION_LABELS, EVASION_TO_CLARITY, normalize_label

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
