"""What a participant sees of a submission: scores, or mistakes. Never references, never a traceback."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from multimodal_eval.contests.shared_task.judging import Judged, Refused, judge
from multimodal_eval.core.errors import InputError, UnavailableError

Outcome = Judged | Refused
_ABOUT_THE_MACHINE = (UnavailableError, ImportError)  # their messages name what is not installed, never a sample


@contextmanager
def judged_or_refused(reference: Path, sent: Path, program: Path) -> Iterator[Outcome]:
    """The outcome; the run of a judged one exists inside the block."""
    with tempfile.TemporaryDirectory(prefix="mmeval-") as scratch:
        yield _outcome(lambda: judge(reference, sent, Path(scratch), program))


def _outcome(scored: Callable[[], Judged]) -> Outcome:
    try:
        return scored()
    except InputError as error:
        return Refused("The submission was not scored", tuple(str(error).splitlines()), is_participants=True)
    except Exception as error:  # noqa: BLE001 - its message may contain references
        lines = [
            "This is not a mistake in the submission. Please tell the organisers.",
            f"The scoring program stopped with {type(error).__name__} at {_place(error)}.",
            *(str(error).splitlines() if isinstance(error, _ABOUT_THE_MACHINE) else ()),
        ]
        return Refused("The scoring program failed", tuple(lines), is_participants=False)


def _place(error: BaseException) -> str:
    """The file and the line in which an error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "an unknown place" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def lines_of(outcome: Outcome) -> Iterator[str]:
    """The outcome as lines of text."""
    if isinstance(outcome, Refused):
        yield f"{outcome.title}:"
        yield from (f"  {line}" for line in outcome.lines)
        return
    yield f"{outcome.rules.title}: {len(outcome.run):,} answers scored"
    width = max(len(column.title) for column in outcome.rules.columns)
    for column in outcome.rules.columns:
        if column.key in outcome.scores:
            yield f"  {column.title.ljust(width)}  {outcome.scores[column.key]:.4f}"
    yield from (f"note: {note}" for note in outcome.notes)
