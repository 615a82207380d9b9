"""Progress of a run, reported to a callback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

# (stage, samples done, total number of samples or None if it is not known yet)
Progress = Callable[[str, int, int | None], None]


def named(progress: Progress, metrics: str) -> None:
    """Tell a callback which metrics the current stage computes, if it shows them, as `ProgressLine` does."""
    working_on = getattr(progress, "working_on", None)
    if working_on is not None:
        working_on(metrics)


def noted(progress: Progress, notes: Sequence[str]) -> None:
    """Give a callback short notes on the current stage, the most important first, if it shows them."""
    noting = getattr(progress, "noting", None)
    if noting is not None:
        noting(notes)


def counting(stage: str, total: int, progress: Progress) -> Callable[[int], None]:
    """A function that is told how many more are done."""
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        progress(stage, done, total)

    return tick


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


def joined(progress: Progress, count: int) -> list[Progress]:
    """Callbacks of runs that work at the same time: the samples in the stage that most runs are in are added up."""
    states: dict[int, tuple[str, int, int | None]] = {}

    def of_run(number: int) -> Progress:
        def report(stage: str, done: int, total: int | None) -> None:
            states[number] = (stage, done, total)
            usual = Counter(stage for stage, _, _ in states.values()).most_common(1)[0][0]
            same = [(done, total) for stage, done, total in list(states.values()) if stage == usual]
            totals = [total for _, total in same if total is not None]
            progress(usual, sum(done for done, _ in same), sum(totals) if len(totals) == len(same) else None)

        return report

    return [of_run(number) for number in range(count)]
