"""Many submissions to one gold file: each is scored as a separate run, in parallel processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from multimodal_eval.analysis.failures import Choice, rule_of
from multimodal_eval.analysis.leaderboard import RESULT, Refused
from multimodal_eval.contests.clarity.columns import file_columns
from multimodal_eval.contests.clarity.labels import TASKS
from multimodal_eval.contests.shared_task.submitted_answers import MODEL_FIELDS, read_submitted
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, InputError, MultimodalEvalError, RunFolderError, described
from multimodal_eval.core.machine import cores
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.coco_and_vqa import read_vqa
from multimodal_eval.data.readers.column_names import peeked
from multimodal_eval.data.readers.formats import SUFFIXES, Reader, reader_of
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.json_file import first_character, read_coco_annotations, read_json_object
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, Storage, below, storage_at
from multimodal_eval.evaluation.tasks_config import get_task
from multimodal_eval.run.engine.base import AHEAD, in_order, process_pool, submit
from multimodal_eval.run.plan import Plan, make_plan
from multimodal_eval.run.start import planned, start

Kind = Literal["dialogue", "clarity", "samples"]


def kind_of(gold: Path) -> Kind:
    """The kind of a gold file, by its content: dialogues, CLARITY's columns, or samples of any task.

    A JSON object is either COCO annotations or dialogues; the reader of that format reports its problems. A list of
    objects with `type` and `replies` holds dialogues.
    """
    if bare_suffix(gold) == ".json" and gold.is_file() and first_character(gold) == "{":
        problems = Problems()
        content = read_json_object(gold, problems) or {}
        problems.raise_if_any()
        return "samples" if isinstance(content.get("annotations"), list) else "dialogue"
    columns = file_columns(gold)
    if {"type", "replies"} <= set(columns):
        return "dialogue"
    return "clarity" if any(task.gold_column in columns for task in TASKS.values()) else "samples"


_USUAL_METRICS: dict[Reader, list[str]] = {read_coco_annotations: ["coco"], read_vqa: list(get_task("vqa").extras)}


@dataclass(frozen=True)
class SampleContest:
    """Data of any task; a submission is a file of answers, joined with the data by id.

    Only ids and answers of a submission are read: references, images and everything else come from the data.
    """

    data: Path
    config: RunConfig

    def __post_init__(self) -> None:
        if self.data.is_dir():
            raise ConfigError(f"{self.data} is a folder. Name the file with the references instead")

    @property
    def numbers(self) -> list[str]:
        """The names of the metrics and composites that a run will have."""
        return self.plan.names

    @property
    def headline(self) -> str | None:
        """The metric that leads, by which submissions are ranked unless another is named."""
        return self.plan.headline

    @property
    def plan(self) -> Plan:
        """What is computed. Without a task or metrics, files of COCO and VQA have their usual metrics."""
        is_configured = self.config.task or self.config.metrics
        usual = None if is_configured else _USUAL_METRICS.get(reader_of(self.data))
        return make_plan(self.config if usual is None else msgspec.structs.replace(self.config, metrics=usual))

    def require_rule(self, by: str, failed_answers: Choice) -> None:
        """Refuse a metric that does not say what a failed answer counts as, before anything is scored."""
        plan = self.plan
        name, part = metric_and_part(by, plan.names)
        if name == COMPOSITE and plan.task is not None and plan.task.headline is not None:
            name = plan.task.headline
        metric = next((metric for metric in plan.metrics if metric.name == name), None)
        rule_of(metric, by, part, failed_answers)

    def accepts(self, path: Path) -> bool:
        """Files of any format that samples can be read from."""
        return path.is_file() and bare_suffix(path) in SUFFIXES

    def prepare(self, submission: Path) -> Prepared:
        """Read and check the answers, and plan the run."""
        plan, source = planned(self.config, self.data, submission)
        assert isinstance(source, FileInput)
        assert source.prediction_files is not None
        problems, summary = Problems(), Summary()
        mapped = source.columns_in(source.prediction_files)
        data = source.data_samples(problems, summary, peeked(submission), plan.config.limit)
        problems.raise_if_any()
        ids = dict.fromkeys(sample.id for sample in data)
        submitted = read_submitted(submission, ids, mapped, allow_partial=plan.config.allow_partial)
        nothing = dict.fromkeys((*MODEL_FIELDS, "error"))
        samples = [
            msgspec.structs.replace(sample, **{**nothing, **submitted.by_id.get(sample.id, {})}) for sample in data
        ]
        return Prepared(plan, JoinedInput(samples, source.paths, [*summary.notes, *submitted.notes]))


@dataclass(frozen=True)
class Submission:
    """A submitted file or folder."""

    name: str
    path: Path


def submissions_in(folder: Path, accepts: Callable[[Path], bool]) -> list[Submission]:
    """The submissions in a folder, sorted by name, without hidden files.

    Two submissions with the same name, or one with the name of the result, are refused.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} must be a folder with one submission per entry")
    paths = [path for path in sorted(folder.iterdir()) if accepts(path) and _is_shown(path)]
    submissions = [Submission(_name(path), path) for path in paths]
    if not submissions:
        raise ConfigError(f"{folder} contains no submissions")
    names = [submission.name for submission in submissions]
    if RESULT in names:
        raise ConfigError(f"{folder} contains a submission named {RESULT!r}, the name of the leaderboard. Rename it")
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ConfigError(f"{folder} contains two submissions named {duplicates[0]!r}. Rename one of them")
    return submissions


def skipped_entries(folder: Path, accepts: Callable[[Path], bool]) -> list[str]:
    """Entries of the folder that cannot be submissions."""
    return [path.name for path in sorted(folder.iterdir()) if _is_shown(path) and not accepts(path)]


def _is_shown(path: Path) -> bool:
    return not path.name.startswith((".", "_"))


def _name(path: Path) -> str:
    """The name of a folder, or of a file without its suffixes."""
    return path.name if path.is_dir() else path.name.partition(".")[0]


def score_all(
    submissions: Sequence[Submission],
    contest: Contest,
    output: Location,
    *,
    workers: int | None = None,
    progress: Progress = silent,
    overwrite: bool = False,
) -> tuple[list[str], list[Refused]]:
    """Store one run folder per submission below `output`; return the names of the scored ones, and the refused ones.

    A refused submission does not stop the others. `overwrite` replaces the runs of an earlier leaderboard.
    """
    storage = storage_at(output)
    if storage.is_taken():
        if not overwrite:
            raise RunFolderError(f"{storage.label} already exists. Name another folder with -o, or add --overwrite")
        _clear(storage)
    storage.make()
    workers = min(workers or cores(), len(submissions))
    work = partial(_refusal, contest, output)
    scored: list[str] = []
    refused: list[Refused] = []
    progress("scoring", 0, len(submissions))
    refusals = _mapped(work, submissions, workers)
    for number, (submission, refusal) in enumerate(zip(submissions, refusals, strict=True), 1):
        if refusal is None:
            scored.append(submission.name)
        else:
            refused.append(refusal)
        progress("scoring", number, len(submissions))
    return scored, refused


def _clear(storage: Storage) -> None:
    """Remove the runs of an earlier leaderboard, and nothing else."""
    names = storage.names()
    other = [name for name in names if name != RESULT and not storage.exists(f"{name}/run.json")]
    if other or RESULT not in names:
        reason = f"It has {other[0]}" if other else f"It has no {RESULT}"
        raise RunFolderError(
            f"only the folder of a leaderboard can be overwritten, and {storage.label} is not one. {reason}"
        )
    for name in names:
        storage.remove(name)


def _mapped(
    work: Callable[[Submission], Refused | None], submissions: Sequence[Submission], workers: int
) -> Iterator[Refused | None]:
    if workers == 1:
        yield from map(work, submissions)
        return
    left = list(submissions)
    while left:
        with process_pool(workers) as pool:
            hand_in = partial(submit, pool, work)
            try:
                for refusal in in_order(hand_in, lambda _, future: future.result(), list(left), AHEAD * workers):
                    left.pop(0)
                    yield refusal
            except BrokenProcessPool:  # one of those in progress has crashed it
                pass
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        for _ in range(min(len(left), AHEAD * workers)):
            yield _alone(work, left.pop(0))


def _alone(work: Callable[[Submission], Refused | None], submission: Submission) -> Refused | None:
    """Score one submission in a separate process."""
    with process_pool(1) as pool:
        try:
            refusal: Refused | None = submit(pool, work, submission).result()
            return refusal
        except BrokenProcessPool:
            return Refused(submission.name, f"{CRASHED}. Is there enough memory?", f"{CRASHED}.")


def _refusal(contest: Contest, output: Location, submission: Submission) -> Refused | None:
    """Score one submission; return the refusal with its reason, or None if it is scored."""
    place = below(output, submission.name)
    try:
        if (storage := storage_at(place)).is_taken():  # from a process that crashed
            storage.remove_all()
        contest.prepare(submission.path).score(place)
    except MultimodalEvalError as refusal:
        return Refused(submission.name, str(refusal), public_reason(refusal))
    except OSError as error:  # a file of the submission that cannot be read
        reason = f"{error.filename or submission.path}: {error.strerror or error}"
        return Refused(submission.name, reason, UNREADABLE)
    except Exception as error:  # noqa: BLE001 - whatever one submission causes, the others are scored
        return Refused(submission.name, f"BUG: {described(error)}. Please report it", public_reason(error))
    return None


# Why a submission was refused, in words for everyone: without ids, answers, references and paths.
#
# The full reason quotes what is wrong, which only the organiser and the participant may see. Here are only texts that
# are written in this file, with the code and the number of the problems.

CRASHED = "the process that scored it crashed"
UNREADABLE = "A file of the submission cannot be read."
UNKNOWN = "The submission could not be scored."
_MEANINGS = {
    "UNMATCHED": "ids without an answer, or answers without a sample",
    "MISSING": "ids without an answer",
    "UNKNOWN": "answers to ids that the data do not have",
    "MISSING_REPLY": "replies without an answer",
    "MISSING_PERPLEXITY": "replies without a perplexity",
    "MISSING_ID": "records without an id",
    "NO_ANSWER": "records without an answer",
    "NO_PREDICTION": "no predictions for the task",
    "UNKNOWN_LABEL": "labels that the task does not have",
    "DUPLICATE": "ids that occur twice",
    "CONFLICT": "values that contradict the data",
    "TYPE": "values of the wrong type",
    "RANGE": "numbers outside their range",
    "NONFINITE": "numbers that are not finite",
    "LENGTH": "lists or rows of the wrong length",
    "BLANK": "blank answers",
    "TOO_LONG": "files or texts that are too large",
    "EXPANSION": "a file whose content is far larger than the file",
    "TRUNCATED": "a file that ends too early",
    "ENCODING": "bytes that are not valid UTF-8",
    "SYNTAX": "invalid JSON",
    "NESTING": "values that are nested too deeply",
    "CONTROL_CHAR": "control characters",
    "UNKNOWN_COLUMN": "a missing column",
    "COLUMNS": "a missing column",
    "FORMAT": "files of another format",
    "MEMBER": "an archive with other files",
    "NOT_FOUND": "a missing file",
    "EMPTY": "an empty file",
    "NOTHING_SCORED": "no sample that the metric can score",
    "UNSCORED": "samples that cannot be scored",
    "RULE": "replies that break a rule of the contest",
    "TOO_MANY": "too many problems to count",
}


def public_reason(error: BaseException) -> str:
    """The kinds of problems, and how many there are of each."""
    if not isinstance(error, InputError) or not error.problems:
        return UNKNOWN
    counts = Counter(problem.code if problem.code in _MEANINGS else "" for problem in error.problems)
    kinds = [f"{_meaning(code)}{f' ({count:,} problems)' if count > 1 else ''}" for code, count in counts.items()]
    more = error.total - len(error.problems)
    return "; ".join([*kinds, *([f"{more:,} further problems"] if more > 0 else [])])


def _meaning(code: str) -> str:
    return f"{code}: {_MEANINGS[code]}" if code else "other problems of the input"


@dataclass(frozen=True)
class Prepared:
    """A submission whose files are valid, ready to be scored."""

    plan: Plan
    source: Input

    def score(self, location: Location, progress: Progress = silent, *, overwrite: bool | None = None) -> Run:
        """Score the submission and store it in a new run folder; `overwrite` is as in RunFolder.create."""
        return Run(*start(self.plan, self.source, location, progress=progress, overwrite=overwrite))


class Contest(Protocol):
    """Gold data and settings, the same for every submission. It can be pickled."""

    @property
    def numbers(self) -> list[str]:
        """The names of the metrics and composites that a run will have."""

    def accepts(self, path: Path) -> bool:
        """Whether a file or folder can be a submission, by its name and kind."""

    def prepare(self, submission: Path) -> Prepared:
        """Read and check a submission; all of its problems are raised together."""
