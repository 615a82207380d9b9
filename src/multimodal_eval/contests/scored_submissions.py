"""Many submissions to one gold: each is scored as a run of its own, in processes beside one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from multimodal_eval.analysis.leaderboard import RESULT, Refused
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RunFolderError
from multimodal_eval.core.machine import cores
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.data.runs.storage import Location, below, storage_at
from multimodal_eval.run.engine.base import AHEAD, in_order
from multimodal_eval.run.engine.processes import process_pool, submit

# Score one submission into a new run folder.
Scoring = Callable[[Path, Location], None]


@dataclass(frozen=True)
class Submission:
    """A file or folder that somebody sent in."""

    name: str
    path: Path


def submissions_in(folder: Path, accepts: Callable[[Path], bool]) -> list[Submission]:
    """The submissions of a folder, by name; hidden files are none. Two of one name, or the result's, are refused."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} must be a folder with a submission an entry")
    found = [Submission(_name(path), path) for path in sorted(folder.iterdir()) if accepts(path) and _shown(path)]
    if not found:
        raise ConfigError(f"{folder} holds no submission")
    names = [own.name for own in found]
    if RESULT in names:
        raise ConfigError(f"{folder} holds a submission named {RESULT!r}, where the leaderboard goes: rename it")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{folder} holds two submissions named {twice[0]!r}: rename one of them")
    return found


def passed_over(folder: Path, accepts: Callable[[Path], bool]) -> list[str]:
    """What lies among the submissions and is none of their kind."""
    return [path.name for path in sorted(folder.iterdir()) if _shown(path) and not accepts(path)]


def _shown(path: Path) -> bool:
    return not path.name.startswith((".", "_"))


def _name(path: Path) -> str:
    """Of a folder its name, of a file what stands before its suffixes."""
    return path.name if path.is_dir() else path.name.partition(".")[0]


def score_all(
    submissions: Sequence[Submission],
    scoring: Scoring,
    output: Location,
    *,
    workers: int | None = None,
    progress: Progress = silent,
) -> tuple[list[str], list[Refused]]:
    """A run folder below `output` for each submission: the names of those that were scored, and the others.

    A submission that is refused takes no other with it.
    """
    storage = storage_at(output)
    if storage.is_taken():
        raise RunFolderError(f"{storage.label} exists already. Name another folder with -o")
    storage.make()
    workers = min(workers or cores(), len(submissions))
    work = partial(_scored, scoring, output)
    scored: list[str] = []
    refused: list[Refused] = []
    progress("scoring", 0, len(submissions))
    for number, (one, reason) in enumerate(zip(submissions, _mapped(work, submissions, workers), strict=True), 1):
        if reason is None:
            scored.append(one.name)
        else:
            refused.append(Refused(one.name, reason))
        progress("scoring", number, len(submissions))
    return scored, refused


def _mapped(
    work: Callable[[Submission], str | None], submissions: Sequence[Submission], workers: int
) -> Iterator[str | None]:
    if workers == 1:
        yield from map(work, submissions)
        return
    with process_pool(workers) as pool:
        yield from in_order(
            lambda one: submit(pool, work, one), lambda _, one: one.result(), submissions, AHEAD * workers
        )


def _scored(scoring: Scoring, output: Location, submission: Submission) -> str | None:
    """None, or why the submission was refused."""
    try:
        scoring(submission.path, below(output, submission.name))
    except MultimodalEvalError as refusal:
        return str(refusal)
    except OSError as fault:  # a file of one submission that cannot be read
        return f"{fault.filename or submission.path}: {fault.strerror or fault}"
    return None
