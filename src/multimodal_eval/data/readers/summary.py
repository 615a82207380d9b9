"""Counts and notes about the samples of an input."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import RecordChecker


@dataclass
class Summary:
    """Counts and notes about the samples that were read."""

    samples: int = 0
    fields: Counter[str] = field(default_factory=Counter)
    metadata: set[str] = field(default_factory=set)
    blank_answers: int = 0
    unmatched_data: int = 0
    unmatched_predictions: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, checker: RecordChecker) -> None:
        """Add the counts of a checker."""
        self.fields.update(checker.present)
        self.metadata.update(checker.metadata_columns)
        self.blank_answers += checker.blank_answers
        self.notes.extend([*checker.taken.notes, *checker.likely_typos()])


def refuse_empty(summary: Summary, name: str | None) -> None:
    """Refuse an input without samples."""
    if not summary.samples:
        raise InputError([Problem(code="EMPTY", message="the input has no samples", file=name)])


def note_unused(option: str, columns: set[str], checker: RecordChecker, problems: Problems, summary: Summary) -> None:
    """Add a problem for each column that the user named and no record has."""
    hint = f"The records have {', '.join(map(repr, [*checker.present, *checker.metadata_columns]))}."
    for column in sorted(columns) if summary.samples else ():
        problems.add("UNKNOWN_COLUMN", f"--{option} names the column {column!r}, which no record has.", hint=hint)
