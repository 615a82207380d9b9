"""How far a run is: what whoever waits for it is told."""

from __future__ import annotations

from collections.abc import Callable

# (stage, samples done, samples in all or None while that is not known)
Progress = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody looks at."""
