"""Counts and notes about the samples of an input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.readers.column_names import map_flag
from multimodal_eval.data.readers.ids import PREFIX, JoinNotes
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import RecordChecker

NOT_USED = "are not used"  # in a note about columns that belong to the other file
_SHOWN_COLUMNS = 10


class Summary(msgspec.Struct):
    """Counts and notes about the samples that were read."""

    samples: int = 0
    fields: Counter[str] = msgspec.field(default_factory=Counter)
    metadata: set[str] = msgspec.field(default_factory=set)
    blank_answers: int = 0
    unmatched_data: int = 0
    unmatched_predictions: int = 0
    notes: list[str] = msgspec.field(default_factory=list)

    def add(self, checker: RecordChecker, predicted: Collection[str] | None = None) -> None:
        """Add the counts of a checker. Of the predictions, only the fields in `predicted` are read."""
        fields = FIELDS if predicted is None else predicted
        self.fields.update({name: count for name, count in checker.present.items() if name in fields})
        if predicted is None:
            self.metadata.update(checker.metadata_columns)
        self.blank_answers += checker.blank_answers
        self.notes.extend([*checker.taken.notes, *checker.likely_typos(fields)])

    def add_join(self, join: JoinNotes, predictions: str) -> None:
        """Add what became of columns of the predictions that are not about answers; all other counts are known."""
        self.metadata.update(join.metadata)
        if unused := [name for name in FIELDS if name in join.unused]:
            absent = next((name for name in unused if name not in self.fields), None)
            hint = "" if absent is None else f". To use it anyway: {map_flag(absent, absent)}"
            counts = self._counts(unused, join.unused)
            self.notes.append(f"columns of {predictions} {NOT_USED}, because they belong to DATA: {counts}{hint}")
        if kept := sorted(name for name in join.metadata if name.startswith(PREFIX)):
            self.notes.append(f"columns of {predictions} are kept as metadata: {self._counts(kept, join.metadata)}")

    def _counts(self, names: Sequence[str], counts: Mapping[str, int]) -> str:
        more = f", … ({len(names):,} in total)" if len(names) > _SHOWN_COLUMNS else ""
        shown = (f"{name} ({counts[name]:,} of {self.samples:,} samples)" for name in names[:_SHOWN_COLUMNS])
        return ", ".join(shown) + more


def refuse_empty(summary: Summary, name: str | None) -> None:
    """Refuse an input without samples."""
    if not summary.samples:
        raise InputError([Problem(code="EMPTY", message="the input has no samples", file=name)])


def note_unused(option: str, columns: set[str], checker: RecordChecker, problems: Problems, summary: Summary) -> None:
    """Add a problem for each column that the user named and no record has."""
    hint = f"The records have {', '.join(map(repr, [*checker.present, *checker.metadata_columns]))}."
    for column in sorted(columns) if summary.samples else ():
        problems.add("UNKNOWN_COLUMN", f"--{option} names the column {column!r}, which no record has.", hint=hint)
