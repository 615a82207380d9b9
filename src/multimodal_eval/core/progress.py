"""Progress of a run, reported to a callback."""

from __future__ import annotations

from collections.abc import Callable

# (stage, samples done, total number of samples or None if it is not known yet)
Progress = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""
