"""Records and problems of an input. All problems are counted; the first ones are kept."""

from __future__ import annotations

from typing import Any

import msgspec

from multimodal_eval.core.errors import InputError, Problem

Columns = dict[str, object]  # an unchecked record: column -> value
Record = tuple[int, Columns]  # line or row number, and the columns

MAX_KEPT = 1000  # a file with a billion bad lines must not fill the memory
MAX_COUNTED = 500_000  # nor take hours


class Problems(msgspec.Struct):
    """The problems of one input."""

    kept: list[Problem] = msgspec.field(default_factory=list)
    total: int = 0

    def add(self, code: str, message: str, **where: Any) -> None:
        """Add one problem; `where` are the other fields of `Problem`."""
        if self.is_full:
            self._count()
        else:
            self.note(Problem(code=code, message=message, **where))

    def note(self, problem: Problem) -> None:
        """Add one problem."""
        self._count()
        if not self.is_full:
            self.kept.append(problem)

    def _count(self) -> None:
        self.total += 1
        if self.total >= MAX_COUNTED:
            message = f"reading stopped after {self.total:,} problems"
            raise InputError([*self.kept, Problem(code="TOO_MANY", message=message)], self.total)

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted."""
        return len(self.kept) >= MAX_KEPT

    def raise_if_any(self) -> None:
        """Raise an InputError if there are any problems."""
        if self.total:
            raise InputError(self.kept, self.total)
