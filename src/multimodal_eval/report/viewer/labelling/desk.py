"""The state of labelling in one server: the task, the file and the secrets. It makes every record that is written."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.report.viewer.labelling.book import Book
from multimodal_eval.report.viewer.labelling.options import LabelOptions
from multimodal_eval.report.viewer.labelling.plan import copy_known
from multimodal_eval.report.viewer.labelling.queue import Item
from multimodal_eval.report.viewer.labelling.records import Action, Entry, LabelRecord, Unit, now
from multimodal_eval.report.viewer.labelling.scale import Value
from multimodal_eval.report.viewer.labelling.summary import Progress, Summary, progress_of, summary_of
from multimodal_eval.report.viewer.labelling.task import LabelTask, label_task
from multimodal_eval.report.viewer.labelling.tokens import Tokens
from multimodal_eval.report.viewer.runs import RunsFolder

__all__ = ["Desk", "open_desk"]

_LOGGER = logging.getLogger(__name__)
_OUTCOMES = {"left": ("win", "loss"), "tie": ("tie", "tie"), "right": ("loss", "win")}  # first answer left, right


def open_desk(folder: RunsFolder, options: LabelOptions) -> Desk:
    """Open the file and read what is to be labelled. Raises MultimodalEvalError if an option is wrong.

    If nothing but the file was named and the runs do not suit each other, tags and notes can be written all the same.
    """
    book = Book.at(options.file)
    task, reason = None, None
    try:
        task = label_task(folder, options)
    except MultimodalEvalError as fault:
        if options != LabelOptions(file=options.file, seed=options.seed, annotator=options.annotator):
            raise
        reason = str(fault)
    if task is not None and task.plan is not None:
        copy_known(task.plan, str(task.queue.items[0].unit[0]), book)
    for repair in book.file.repairs:
        _LOGGER.warning("warning: %s: %s", book.file.path.name, repair)
    if book.unreadable:
        _LOGGER.warning("warning: %s has %d lines that are not labels", book.file.path.name, book.unreadable)
    return Desk(book, task, reason, options.annotator)


@dataclass(frozen=True)
class Desk:
    """Where labels are given."""

    book: Book
    task: LabelTask | None
    reason: str | None  # why there is no task
    annotator: str | None  # of all labels; None: everybody gives a name
    tokens: Tokens = field(default_factory=Tokens)

    @cached_property
    def units(self) -> dict[Unit, int]:
        """The place of each item."""
        return {} if self.task is None else {item.unit: place for place, item in enumerate(self.task.queue.items)}

    def next_position(self, annotator: str) -> int | None:
        """The first item without a label, and after the last one the first skipped one; None at the end."""
        assert self.task is not None
        entries = self.book.entries(annotator)
        for place, item in enumerate(self.task.queue.items):
            if item.unit not in entries:
                return place
        return None

    def skipped(self, annotator: str) -> int | None:
        """The first skipped item; None if there is none."""
        assert self.task is not None
        entries = self.book.entries(annotator)
        skipped = (place for place, item in enumerate(self.task.queue.items) if _is_skipped(entries.get(item.unit)))
        return next(skipped, None)

    def last(self, annotator: str) -> tuple[int, Entry] | None:
        """The item of the annotator's last action, which `undo` takes back."""
        mine = [(self.units[unit], entry) for unit, entry in self.book.entries(annotator).items() if unit in self.units]
        return mine[-1] if mine else None

    def progress(self, annotator: str) -> Progress:
        """How far an annotator is."""
        return progress_of(annotator, self.book.entries(annotator), self.units.keys())

    def summary(self) -> Summary:
        """How far all are."""
        assert self.task is not None
        return summary_of(self.task, self.units.keys(), self.book.all())

    def label(self, item: Item, annotator: str, value: Value, comment: str) -> None:
        """Append a label, unless it is there already. Raises NotSavedError."""
        assert self.task is not None
        if self.task.is_pairwise:
            value = _OUTCOMES[str(value)][not self.task.queue.shows_first_left(item, annotator)]
        if self.book.entries(annotator).get(item.unit) == Entry(value, comment or None, item.weight):
            return
        self.book.add(self._record(item, annotator, value, comment, None))

    def withdraw(self, item: Item, annotator: str, action: Action, comment: str = "") -> None:
        """Append a record that the item is skipped, or that its label is taken back."""
        self.book.add(self._record(item, annotator, None, comment, action))

    def shown_value(self, item: Item, annotator: str, entry: Entry | None) -> str | None:
        """The choice of the form that gives the label of an entry."""
        assert self.task is not None
        if entry is None or entry.label is None:
            return None
        if not self.task.is_pairwise:
            return str(entry.label)
        first_left = self.task.queue.shows_first_left(item, annotator)
        outcomes = {words[not first_left]: side for side, words in _OUTCOMES.items()}
        return outcomes.get(str(entry.label))

    def _record(
        self, item: Item, annotator: str, value: Value | None, comment: str, action: Action | None
    ) -> LabelRecord:
        assert self.task is not None
        run, baseline, metric, sample = item.unit
        left = None
        if self.task.is_pairwise:
            names = (run, baseline) if baseline is not None else ("system", "baseline")
            left = names[not self.task.queue.shows_first_left(item, annotator)]
        return LabelRecord(
            id=sample,
            label=value,
            annotator=annotator,
            metric=metric,
            run=run,
            baseline=baseline,
            left=left,
            action=action,
            comment=comment or None,
            human_weight=None if action else item.weight,
            time=now(),
        )


def _is_skipped(entry: Entry | None) -> bool:
    return entry is not None and entry.label is None
