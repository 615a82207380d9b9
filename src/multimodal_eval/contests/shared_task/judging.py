"""Score a submission to a shared task."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from multimodal_eval.contests.protocol import Prepared
from multimodal_eval.contests.shared_task.answers import read_answers
from multimodal_eval.contests.shared_task.files import submitted_file
from multimodal_eval.contests.shared_task.reference import Column, Rules, read_reference
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.records import COMPOSITE, Figure
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_text import figure_named
from multimodal_eval.run.plan import make_plan

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
