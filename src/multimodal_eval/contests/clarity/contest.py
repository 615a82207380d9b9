"""CLARITY files as runs: one run per task, with its tables in classification.json next to the results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from multimodal_eval.contests.clarity.columns import ClarityColumns, label_column
from multimodal_eval.contests.clarity.dataset import Dataset, paired, read_dataset, samples_of
from multimodal_eval.contests.clarity.labels import TASKS, ClarityTask, TaskName
from multimodal_eval.contests.clarity.predictions import Predictions, UnknownLabels, read_predictions
from multimodal_eval.contests.submissions import Prepared
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import RunFolderError, shorten
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.labels.taxonomy import label_text
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.formats import SUFFIXES
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below, storage_at
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.plan import make_plan
from multimodal_eval.run.start import file_name, new_folder

ANNOTATOR_METRICS = ("f1_any_match", "f1_majority", "soft_score")
SHOWN_LABELS = 5
FEW_ROWS = 30  # annotated rows
ADVICE = "To count it as wrong: --unknown-labels wrong."


@dataclass(frozen=True)
class ClarityContest:
    """The data of one task; a submission is a table of predictions, or the contest's zip."""

    data: Path
    task: TaskName
    unknown_labels: UnknownLabels = "error"
    group: str | None = None
    columns: ClarityColumns = field(default_factory=ClarityColumns)

    @property
    def numbers(self) -> list[str]:
        """The names of the metrics and composites of a run; those that need annotators only if there are any."""
        return ["f1_strict", *ANNOTATOR_METRICS, COMPOSITE]

    def accepts(self, path: Path) -> bool:
        """Accept tables and zips."""
        return path.is_file() and (path.suffix.lower() == ".zip" or bare_suffix(path) in SUFFIXES)

    def prepare(self, submission: Path) -> Prepared:
        """Read and check the predictions."""
        prepared = prepare(
            self.data,
            submission,
            task=self.task,
            unknown_labels=self.unknown_labels,
            group=self.group,
            columns=self.columns,
            advice="",
        )
        return prepared[self.task]


def prepare(
    data: str | Path,
    predictions: str | Path,
    *,
    task: TaskName | None = None,
    both: bool = False,
    unknown_labels: UnknownLabels = "error",
    group: str | None = None,
    columns: ClarityColumns | None = None,
    advice: str = ADVICE,
) -> dict[TaskName, Prepared]:
    """Read and check everything, and plan a run for each task.

    Without `task`, every task is scored for which predictions and data have labels; `both` refuses files without
    labels for both tasks. `advice` is added to the hint for an unknown label.
    """
    problems, files = Problems(), [Path(data), Path(predictions)]
    columns = columns or ClarityColumns()
    dataset = read_dataset(files[0], problems, group, columns)
    predicted = read_predictions(
        files[1], problems, only=task, unknown_labels=unknown_labels, advice=advice, columns=columns
    )
    columns.note_unknown_id([*dataset.columns, *predicted.columns], files, problems)
    _refuse_gold(dataset, predicted, problems)
    required: tuple[TaskName, ...] = (task,) if task is not None else tuple(TASKS) if both else ()
    for name in required:
        if name not in predicted.tasks and predicted.rows:
            hint = f"The file has {' and '.join(predicted.tasks)} labels." if predicted.tasks else None
            problems.add("NO_PREDICTION", f"no label of the task {name} is predicted.", file=str(files[1]), hint=hint)
    pairs = paired(dataset, predicted, problems)
    problems.raise_if_any()
    labelled = {
        name: LabelledTask(TASKS[name], samples_of(TASKS[name], pairs, dataset.annotators))
        for name in required or predicted.tasks
    }
    usable = {name: rows for name, rows in labelled.items() if rows.has_gold}
    for name in labelled.keys() - usable.keys() if required or not usable else ():
        _note_no_gold(TASKS[name], dataset, problems)
    problems.raise_if_any()
    return {
        name: Prepared(
            make_plan(_config(rows, unknown_labels)),
            JoinedInput(rows.samples, files, [*_file_notes(rows.task, dataset, predicted), *rows.notes(predicted)]),
        )
        for name, rows in usable.items()
    }


def _refuse_gold(dataset: Dataset, predicted: Predictions, problems: Problems) -> None:
    """Refuse gold labels as predictions: they would be right in every row."""
    gold = [task.gold_column for task in TASKS.values() if task.gold_column in predicted.label_columns]
    if gold and predicted.path.exists() and predicted.path.samefile(dataset.path):
        message = f"DATA and PREDICTIONS are the same file, and `{gold[0]}` is its gold label."
        hint = "Name the column with the predictions: --map evasion_pred=COLUMN."
        problems.add("NO_PREDICTION", message, file=str(predicted.path), hint=hint)


def _file_notes(task: ClarityTask, dataset: Dataset, predicted: Predictions) -> list[str]:
    """Notes on how the two files were read if they differ from the convention."""
    notes = []
    column = label_column(TASKS["evasion"] if predicted.derived else task, predicted.label_columns)
    if not predicted.is_zip and column == task.gold_column:
        notes.append(f"predictions are read from the column `{column}` of {predicted.path}")
    if predicted.is_numbered:
        notes.append(f"{predicted.path} has no column `id`: row i is the prediction for row i of the data")
    if dataset.is_numbered and not predicted.is_ordered:
        notes.append(f"{dataset.path} has no column `index`: its rows are counted, as in {predicted.path}")
    return notes


def _note_no_gold(task: ClarityTask, dataset: Dataset, problems: Problems) -> None:
    annotators = (dataset.annotators or ["annotator1"]) if task.name == "evasion" else []
    columns = ", ".join(f"`{column}`" for column in [task.gold_column, *annotators])
    message = f"no row has a label of the task {task.name} in {columns}."
    problems.add("NO_GOLD", message, file=str(dataset.path), hint="There is nothing to score against.")


@dataclass(frozen=True)
class LabelledTask:
    """The samples of a task, and properties of their labels that are known before scoring."""

    task: ClarityTask
    samples: list[Sample]

    @property
    def golds(self) -> list[str | None]:
        """The single gold labels."""
        return [sample.expected_answer for sample in self.samples]

    @property
    def annotations(self) -> list[str | None]:
        """The labels of all annotators."""
        return [label for sample in self.samples for label in (sample.annotations or {}).values()]

    @property
    def is_annotated(self) -> bool:
        """Whether any annotator has given a label of the taxonomy."""
        return any(map(self.task.knows, self.annotations))

    @property
    def has_gold(self) -> bool:
        """Whether the official score has anything to score against; annotators give evasion labels only."""
        return any(map(self.task.knows, self.golds)) or (self.task.name == "evasion" and self.is_annotated)

    def _few_annotated(self) -> list[str]:
        """A note if the official score rests on few annotated rows."""
        knows, total = self.task.knows, len(self.samples)
        rows = sum(any(map(knows, (sample.annotations or {}).values())) for sample in self.samples)
        if self.task.name != "evasion" or not rows or (rows >= FEW_ROWS and 2 * rows >= total):
            return []
        note = f"any-match, the official score, is computed from only {rows:,} of {total:,} rows"
        note += ": the others have no annotator's label" if rows < total else ""
        strict = sum(map(knows, self.golds))
        advice = f". For the strict score of {strict:,} rows instead: --annotators none"
        return [note + (advice if strict > rows else "")]

    def notes(self, predicted: Predictions) -> list[str]:
        """Notes on the input that a reader of the scores should know."""
        task, notes = self.task, self._few_annotated()
        if task.name == "clarity" and predicted.derived:
            notes.append("clarity predictions are derived from the evasion predictions through the taxonomy")
        if task.name == "clarity" and self.is_annotated:
            notes.append("annotators' clarity labels are derived from their evasion labels through the taxonomy")
        if contradicting := predicted.contradictions():
            notes.append(f"rows whose predicted clarity label contradicts their evasion label: {contradicting:,}")
        if unknown := predicted.unknown[task.name]:
            listed = _listed(unknown.most_common())
            notes.append(f"{unknown.total():,} predictions are not labels of the task and count as wrong: {listed}")
        for labels, what in ((self.annotations, "annotations"), (self.golds, "gold labels")):
            if outside := Counter(label_text(label).strip() for label in labels if label and not task.knows(label)):
                listed = _listed(sorted(outside.items(), key=lambda item: (-item[1], item[0])))
                notes.append(f"{outside.total():,} {what} are outside the taxonomy and left out: {listed}")
        return notes


def _listed(counts: list[tuple[str, int]]) -> str:
    shown = ", ".join(f"{shorten(label) if label else 'blank'} ({count:,})" for label, count in counts[:SHOWN_LABELS])
    return shown if len(counts) <= SHOWN_LABELS else f"{shown}, …"


def _config(rows: LabelledTask, unknown_labels: UnknownLabels) -> RunConfig:
    """The official score of evasion is any-match if there are annotations; annotators give no clarity labels."""
    name = rows.task.name
    official = "f1_any_match" if name == "evasion" and rows.is_annotated else "f1_strict"
    return overlaid(
        None,
        task=name,
        tasks={
            name: {"metrics": ["f1_strict", *(ANNOTATOR_METRICS if rows.is_annotated else ())], "headline": official}
        },
        labels=list(rows.task.labels),
        unknown_labels=unknown_labels,
        skip_lint=True,  # lint checks free text; labels repeat by nature
        error_patterns=[],  # a contest counts a generator's error message as a wrong label
        allow_empty=True,
    )


def _usual_folder(name: TaskName, task: Prepared) -> Path:
    """runs/FILE-TASK, after the file of the predictions."""
    return new_folder(f"{file_name(task.source.describe()[-1].path or '')}-{name}")


def score_tasks(
    prepared: dict[TaskName, Prepared],
    output: Location | None,
    progress: Progress = silent,
    *,
    overwrite: bool | None = None,
) -> dict[TaskName, Run]:
    """Score and store each task: a single one in `output` itself, two in folders below it; default: below runs/."""
    paths: dict[TaskName, Location] = {
        name: _usual_folder(name, task) if output is None else output if len(prepared) == 1 else below(output, name)
        for name, task in prepared.items()
    }
    for path in paths.values():  # check all before the first is written
        if storage_at(path).is_taken() and not overwrite:
            how = "" if overwrite is None else ", or replace it with --overwrite"
            raise RunFolderError(f"{path} already exists. Name another folder with -o{how}")
    return {name: task.score(paths[name], progress, overwrite=overwrite) for name, task in prepared.items()}
