"""CLARITY files as runs: one a task, stored like any other, with classification.json beside the results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multimodal_eval.analysis.classification import classification_report
from multimodal_eval.contests.clarity.dataset import Dataset, paired, read_dataset, samples_of
from multimodal_eval.contests.clarity.labels import CLARITY, EVASION
from multimodal_eval.contests.clarity.predictions import Predictions, UnknownLabels, read_predictions
from multimodal_eval.contests.clarity.tasks import TASKS, ClarityTask, TaskName
from multimodal_eval.core.errors import RunFolderError, shorten
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.inputs import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, below, storage_at
from multimodal_eval.run import execute
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.evaluate import default_folder
from multimodal_eval.run.plan import Plan, make_plan

TAXONOMIES = {"clarity": CLARITY, "evasion": EVASION}
OFFICIAL = {"any_match": "f1_any_match", "strict": "f1_strict"}
OF_ANNOTATORS = ("f1_any_match", "f1_majority", "soft_score")
SHOWN_LABELS = 5
ADVICE = "To count it as wrong: --unknown-labels wrong."


@dataclass(frozen=True)
class Prepared:
    """A task that is ready to be scored."""

    plan: Plan
    source: JoinedInput
    report: dict[str, Any]  # of classification.json


def prepare(
    data: str | Path,
    predictions: str | Path,
    *,
    task: TaskName | None = None,
    both: bool = False,
    unknown_labels: UnknownLabels = "error",
    group: str | None = None,
) -> dict[TaskName, Prepared]:
    """Read and check everything, and plan a run for each task.

    Without a `task` those are scored that predictions and data have labels for; `both` refuses files that lack one.
    """
    problems, files = Problems(), [Path(data), Path(predictions)]
    dataset = read_dataset(files[0], problems, group)
    found = read_predictions(files[1], problems, only=task, unknown_labels=unknown_labels, advice=ADVICE)
    asked: tuple[TaskName, ...] = (task,) if task is not None else tuple(TASKS) if both else ()
    for name in asked:
        if name not in found.tasks and found.rows:
            hint = f"They hold {' and '.join(found.tasks)} labels." if found.tasks else None
            problems.add("NO_PREDICTION", f"no label of the task {name} is predicted.", file=str(files[1]), hint=hint)
    pairs = paired(dataset, found, problems)
    problems.raise_if_any()
    samples = {name: samples_of(TASKS[name], pairs, dataset.annotators) for name in asked or found.tasks}
    usable = {name: own for name, own in samples.items() if _has_gold(TASKS[name], own)}
    for name in samples.keys() - usable.keys() if asked or not usable else ():
        _note_no_gold(TASKS[name], dataset, problems)
    problems.raise_if_any()
    return {name: _prepared(TASKS[name], own, files, found, unknown_labels) for name, own in usable.items()}


def _has_gold(task: ClarityTask, samples: list[Sample]) -> bool:
    """Whether the official score has anything to score against; annotators speak of evasion only."""
    people = (label for sample in samples for label in (sample.annotations or {}).values())
    return any(task.knows(sample.expected_answer) for sample in samples) or (
        task.name == "evasion" and any(map(task.knows, people))
    )


def _note_no_gold(task: ClarityTask, dataset: Dataset, problems: Problems) -> None:
    people = (dataset.annotators or ["annotator1"]) if task.name == "evasion" else []
    columns = ", ".join(f"`{column}`" for column in [task.gold_column, *people])
    message = f"no row has a label of the task {task.name} in {columns}."
    problems.add("NO_GOLD", message, file=str(dataset.path), hint="There is nothing to score against.")


def _prepared(
    task: ClarityTask, samples: list[Sample], files: list[Path], found: Predictions, unknown_labels: UnknownLabels
) -> Prepared:
    # The contest's rule switches for evasion alone: annotators give no clarity labels of their own.
    report = classification_report(samples, TAXONOMIES[task.name], switches=task.name == "evasion")
    annotated = report["soft"] is not None
    metrics = ["f1_strict", *(OF_ANNOTATORS if annotated else ())]
    config = overlaid(
        None,
        task=task.name,
        tasks={task.name: {"metrics": metrics, "headline": OFFICIAL[report["official"]]}},
        labels=list(task.labels),
        unknown_labels=unknown_labels,
        skip_lint=True,  # it looks for doubtful texts, and labels repeat by nature
        error_patterns=[],  # a contest counts a generator's error message as a wrong label
    )
    content = {
        "task": task.name,
        "files": [str(path) for path in files],
        **report,
        "notes": _notes(task, found, report),
    }
    return Prepared(make_plan(config), JoinedInput(samples, files), content)


def _notes(task: ClarityTask, found: Predictions, report: dict[str, Any]) -> list[str]:
    """What a reader of the scores should know of what was read."""
    notes = []
    if task.name == "clarity" and found.derived:
        notes.append("clarity predictions are derived from the evasion predictions, through the taxonomy")
    if task.name == "clarity" and report["soft"] is not None:
        notes.append("annotators' clarity labels are derived from their evasion labels, through the taxonomy")
    if contradicting := found.contradictions():
        notes.append(f"rows whose predicted clarity label is not that of their evasion label: {contradicting:,}")
    outside = report["outside_taxonomy"]
    if unknown := found.unknown[task.name]:
        notes.append(f"{unknown.total():,} predictions are no label of the task and count as wrong: {_told(unknown)}")
    for kind, what in (("annotations", "annotations"), ("gold", "gold labels")):
        if outside[kind]:
            told = _told(Counter(outside[kind]))
            notes.append(f"{sum(outside[kind].values()):,} {what} are outside the taxonomy and left out: {told}")
    return notes


def _told(counts: Counter[str]) -> str:
    shown = ", ".join(
        f"{shorten(label) if label else 'blank'} ({count:,})" for label, count in counts.most_common(SHOWN_LABELS)
    )
    return shown if len(counts) <= SHOWN_LABELS else f"{shown}, …"


def carry_out(
    prepared: dict[TaskName, Prepared], output: Location | None, progress: Progress = silent
) -> dict[TaskName, Run]:
    """Score and store. One task's run is `output` itself, of two each has its folder in it; default: below runs/."""
    paths: dict[TaskName, Location] = {
        name: default_folder(own.plan) if output is None else output if len(prepared) == 1 else below(output, name)
        for name, own in prepared.items()
    }
    for path in paths.values():  # before the first is written
        if storage_at(path).is_taken():
            raise RunFolderError(f"{path} exists already. Name another folder with -o")
    runs: dict[TaskName, Run] = {}
    for name, own in prepared.items():
        folder = RunFolder.create(paths[name], execute.describe(own.plan, None))
        folder.write_classification(own.report)  # of the labels alone: a killed run has it when it is resumed
        with folder.locked():
            execute.carry_on(own.plan, lambda own=own: own.source, folder, progress=progress)  # type: ignore[misc]
        runs[name] = Run(paths[name])
    return runs
