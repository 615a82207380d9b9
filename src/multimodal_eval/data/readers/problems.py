"""What a reader gives: records, and the problems of its input. All problems are counted, the first are kept."""

from __future__ import annotations

from typing import Any

from multimodal_eval.core.errors import InputError, Problem

Columns = dict[str, object]  # a record as a file holds it: column -> value, unchecked
Record = tuple[int, Columns]  # with its line, or its row

KEPT = 1000  # enough to show and to test; a file of a billion bad lines must not fill the memory


class Problems:
    """The problems of one input."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.total = 0

    def add(self, code: str, message: str, **where: Any) -> None:
        """Note one problem; `where` are the other fields of `Problem`."""
        self.total += 1
        if len(self.kept) < KEPT:
            self.kept.append(Problem(code=code, message=message, **where))

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted."""
        return len(self.kept) >= KEPT

    def raise_if_any(self) -> None:
        """Refuse the input if anything was noted."""
        if self.total:
            raise InputError(self.kept, self.total)
