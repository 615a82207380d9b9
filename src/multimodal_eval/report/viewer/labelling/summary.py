"""How far the annotators are and how well they agree. Nothing is said about single runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from multimodal_eval.report.viewer.labelling.queue import Item
from multimodal_eval.report.viewer.labelling.records import Entry, Unit
from multimodal_eval.report.viewer.labelling.task import LabelTask
from multimodal_eval.stats.alpha import krippendorff_alpha
from multimodal_eval.stats.resampling import Agreement

__all__ = ["Progress", "Summary", "progress_of", "summary_of"]

_MOST_COUNTED = 20_000  # units for which agreement is computed while a page waits


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an annotator is."""

    annotator: str
    labelled: int
    skipped: int
    total: int

    @property
    def done(self) -> int:
        """Items that the annotator has seen to."""
        return self.labelled + self.skipped


@dataclass(frozen=True, slots=True)
class Summary:
    """The progress of all annotators, and their agreement if two have labelled the same item."""

    progress: list[Progress]
    doubled: int  # items with labels of two or more annotators
    alpha: Agreement | None


def progress_of(annotator: str, entries: Mapping[Unit, Entry], units: Collection[Unit]) -> Progress:
    """The progress of an annotator among the items of this task; the file may have labels of others."""
    mine = [entry for unit, entry in entries.items() if unit in units]
    skipped = sum(entry.label is None for entry in mine)
    return Progress(annotator, len(mine) - skipped, skipped, len(units))


def summary_of(task: LabelTask, units: Collection[Unit], book: Mapping[str, Mapping[Unit, Entry]]) -> Summary:
    """The summary of a file of labels."""
    progress = [progress_of(name, entries, units) for name, entries in sorted(book.items())]
    progress = [each for each in progress if each.done]
    doubled, alpha = _agreement(task, [book[each.annotator] for each in progress])
    return Summary(progress, doubled, alpha)


def _agreement(task: LabelTask, books: Sequence[Mapping[Unit, Entry]]) -> tuple[int, Agreement | None]:
    rows = [
        row for row in (_row(item, books) for item in task.queue.items) if sum(cell is not None for cell in row) > 1
    ]
    if not rows:
        return 0, None
    is_numeric = task.scale.level == "interval"
    table = np.array(rows[:_MOST_COUNTED], dtype=np.float64 if is_numeric else object)
    return len(rows), krippendorff_alpha(table, task.scale.level, resamples=0)


def _row(item: Item, books: Sequence[Mapping[Unit, Entry]]) -> list[str | float | None]:
    entries = (book.get(item.unit) for book in books)
    return [None if entry is None else entry.label for entry in entries]
