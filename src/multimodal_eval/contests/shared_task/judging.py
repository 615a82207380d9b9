"""Score a submission to a shared task."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from multimodal_eval.contests.shared_task.submitted_answers import read_answers, submitted_file
from multimodal_eval.contests.submissions import Prepared
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnavailableError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run, figure_named
from multimodal_eval.run.plan import make_plan

# The reference file of a shared task: its rules in the first line, and one sample per further line.
#
# It is one file because EvalAI passes one file to its evaluation script. Only the scoring program sees it.

FILE = "reference.jsonl"
Details = Literal["scores", "samples"]


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of the leaderboard: a result of the run, or an end of its interval."""

    key: str  # letters, digits and underscores
    title: str
    result: str  # as in `Run.keys()`
    figure: Literal["value", "low", "high"] = "value"
    is_lower_better: bool = False
    is_hidden: bool = False


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How submissions are read and scored. The first column is the one that ranks them."""

    format: Literal[1] = 1
    version: str  # of multimodal-eval
    title: str
    config: RunConfig
    columns: list[Column]
    details: Details  # what participants see of their submission
    max_mb: int  # of a submission, unpacked
    max_answer: int  # characters


class _FirstLine(msgspec.Struct):
    shared_task: Rules


def reference_lines(rules: Rules, samples: Sequence[Sample]) -> bytes:
    """The content of the file."""
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(line) + b"\n" for line in (_FirstLine(rules), *samples))


def read_reference(path: Path) -> tuple[Rules, list[Sample]]:
    """The rules and the samples."""
    try:
        with path.open("rb") as lines:
            rules = msgspec.json.decode(lines.readline(), type=_FirstLine).shared_task
            decoder = msgspec.json.Decoder(Sample)
            return rules, [decoder.decode(line) for line in lines]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConfigError(f"{path} is not a reference file of `mmeval export`") from None


_SHOWN = 5  # unscored samples of a metric


@dataclass(frozen=True)
class Judged:
    """A scored submission. The run is in a temporary folder: it contains the references."""

    rules: Rules
    run: Run
    scores: dict[str, float]  # by the key of a column
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """A submission with mistakes, or a fault that is not the participant's."""

    title: str
    lines: tuple[str, ...]
    is_participants: bool


def judge(reference: Path, sent: Path, scratch: Path, program: Path) -> Judged:
    """Score what a participant has sent.

    An InputError names the participant's mistakes; any other error is the organiser's. `scratch` is an empty folder,
    and `program` is that of the scoring program, which has the plug-ins.
    """
    rules, samples = read_reference(reference)
    try:
        path = submitted_file(sent, scratch, rules.max_mb)
        answers = read_answers(path, {sample.id: sample for sample in samples}, rules.max_answer)
        plugins = [str(program / plugin) for plugin in rules.config.plugins]
        config = msgspec.structs.replace(rules.config, plugins=plugins)
        run = score_answers(config, samples, answers.by_id, [reference, path], scratch / "run")
        refuse_unscored(run, "Change these answers")
    except InputError as error:
        places = (scratch, sent if sent.is_dir() else sent.parent)
        by_id = {sample.id: sample for sample in samples}
        raise InputError((_shown(problem, by_id, places) for problem in error.problems), error.total) from None
    return Judged(rules, run, dict(_scores(run, rules.columns)), answers.notes)


def _shown(problem: Problem, samples: Mapping[str, Sample], places: Sequence[Path]) -> Problem:
    """The problem as a participant sees it: without folders of the platform, our options, and references."""

    def bare(text: str | None) -> str | None:
        for place in places:
            text = text and text.replace(f"{place}{os.sep}", "")
        return text

    hint = None if problem.hint is None or "--" in problem.hint else bare(problem.hint)
    message = bare(problem.message) or ""
    problem = msgspec.structs.replace(problem, message=message, file=bare(problem.file), hint=hint)
    sample = None if problem.id is None else samples.get(problem.id)
    return problem if sample is None else _safe(problem, sample)


def score_answers(
    config: RunConfig, samples: list[Sample], answers: Mapping[str, str], files: list[Path], folder: Path
) -> Run:
    """The run of the samples with the given answers."""
    answered = [msgspec.structs.replace(sample, generated_answer=answers[sample.id]) for sample in samples]
    return Prepared(make_plan(config), JoinedInput(answered, files)).score(folder)


def refuse_unscored(run: Run, advice: str) -> None:
    """An InputError if a metric has no score for a sample: left out, a sample would not count."""
    problems = Problems()
    for name, entry in run.entries.items():
        if entry.n_scored == entry.n_total:
            continue
        columns = ["id"] if name == COMPOSITE else ["id", f"{name}:status", f"{name}:reason"]
        rows = run.scores([*columns, name]).to_pylist()
        unscored = [row for row in rows if row[name] is None]
        for row in unscored[:_SHOWN]:
            reason = row.get(f"{name}:reason") or row.get(f"{name}:status") or "a part of it has no score"
            message = f"{name} cannot score the answer: {reason}. {advice}"
            problems.add("UNSCORED", message, id=row["id"])
        problems.total += max(0, len(unscored) - _SHOWN)
    problems.raise_if_any()


def _safe(problem: Problem, sample: Sample) -> Problem:
    """The problem; without its message, if that has a reference that is not in the answer."""
    answer = sample.generated_answer or ""
    secret = [text for text in sample.reference_texts if text.strip() and text not in answer]
    if not any(text in f"{problem.message} {problem.value} {problem.hint}" for text in secret):
        return problem
    return Problem(code=problem.code, message="the answer cannot be scored", id=problem.id)


def _scores(run: Run, columns: list[Column]) -> Iterator[tuple[str, float]]:
    for column in columns:
        value = _figure(run, column)
        if value is not None and math.isfinite(value):
            yield column.key, value
        elif column.figure == "value":
            raise InputError([Problem(code="UNSCORED", message=f"{column.title} has no value for these answers")])


def _figure(run: Run, column: Column) -> float | None:
    figure: Figure | None = figure_named(run, column.result)
    if figure is None:
        raise ConfigError(f"the run has no result {column.result!r}")
    return {"value": figure.value, "low": figure.low, "high": figure.high}[column.figure]


# What a participant sees of a submission: scores, or mistakes. Never references, never a traceback.

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
