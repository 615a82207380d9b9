"""The CLARITY dataset: questions, answers, gold labels and annotators' labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from multimodal_eval.contests.clarity.columns import (
    DATA_FIELDS,
    ClarityColumns,
    LabelledRecords,
    file_columns,
    note_unknown_column,
)
from multimodal_eval.contests.clarity.labels import TASKS, ClarityTask, TaskName
from multimodal_eval.contests.clarity.predictions import Predicted, Predictions, has_refused_rows, read_predictions
from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.problems import Problems

SHOWN_IDS = 10
Cell = Any  # of a label column: text, once the rows are checked


@dataclass(frozen=True, slots=True)
class Row:
    """One checked row; `cells` are the columns that are not fields of a sample, including the labels."""

    id: str
    question: str | None
    group: str | None
    cells: dict[str, Cell]


Pair = tuple[Row, Predicted]


@dataclass(frozen=True, slots=True)
class Dataset:
    """The checked rows, in the order of the file, and the columns with annotators' labels."""

    path: Path
    rows: list[Row]
    columns: list[str]
    annotators: list[str]
    refused: bool  # whether the reader refused any row
    is_numbered: bool  # whether there is no column with ids


def read_dataset(
    path: Path, problems: Problems, group: str | None = None, columns: ClarityColumns | None = None
) -> Dataset:
    """Read the rows of a file. `group` names the column by which the intervals are clustered."""
    columns = columns or ClarityColumns()
    convention = ("index", "id")
    names = file_columns(path, (columns.names.get("id", "index"), *convention))
    before = problems.total
    renames = columns.renames(DATA_FIELDS, names, str(path), problems)
    records = LabelledRecords(path, problems, renames, columns.id_column(names, convention), group)
    rows = []
    for line, fields in records:
        row = Row(fields["id"], fields.get("question"), fields.get("group"), fields.get("metadata", {}))
        rows.append(row)
        _check_labels(line, row, columns, str(path), problems)
    if not rows and problems.total == before:
        problems.add("EMPTY", "the file has no rows", file=str(path))
    if rows and group is not None and group in records.checker.unused_map:
        note_unknown_column(group, names, str(path), problems)
    labels = list(records.checker.metadata_columns)
    annotators = columns.annotators_in(labels, str(path), problems) if rows else []
    return Dataset(path, rows, names, annotators, has_refused_rows(problems, before), records.is_numbered)


def _check_labels(line: int, row: Row, columns: ClarityColumns, file: str, problems: Problems) -> None:
    for column, cell in row.cells.items():
        is_label = columns.is_annotator(column) or column in {task.gold_column for task in TASKS.values()}
        if is_label and not isinstance(cell, str):
            message = f"`{column}` must be a label. Got {shorten(cell)} instead."
            problems.add("TYPE", message, file=file, line=line, id=row.id, field=column, value=shorten(cell))


def paired(data: Dataset, predictions: Predictions, problems: Problems) -> list[Pair]:
    """Each row of the data with its prediction: by id, or by row order for a zip and for a table without ids."""
    if predictions.is_ordered:
        return _by_order(data, predictions, problems)
    by_id = {row.id: row for row in predictions.rows}
    rows = _counted(data.rows, by_id) if data.is_numbered else data.rows
    without = [row.id for row in rows if row.id not in by_id]
    known = {row.id for row in rows}
    extra = [row.id for row in predictions.rows if row.id not in known]
    # A row that was refused for another reason would be reported here again, as unmatched.
    unpredicted = [] if predictions.refused else without
    unknown = [] if data.refused else [name for name in extra if name is not None]
    if unpredicted or unknown:
        _note_unmatched(data, predictions, problems, unpredicted, unknown)
    return [(row, by_id[row.id]) for row in rows if row.id in by_id]


def _counted(rows: list[Row], predicted: dict[str | None, Predicted]) -> list[Row]:
    """Rows without ids, counted from 0 if the predictions do so, otherwise from 1."""
    if "0" not in predicted:
        return rows
    return [replace(row, id=str(number)) for number, row in enumerate(rows)]


def _by_order(data: Dataset, predictions: Predictions, problems: Problems) -> list[Pair]:
    if len(data.rows) == len(predictions.rows):
        return list(zip(data.rows, predictions.rows, strict=True))
    if predictions.rows and not data.refused and not predictions.refused:
        count = f"{len(predictions.rows):,} {'lines' if predictions.is_zip else 'rows'}"
        message = f"the submission has {count}, but {data.path} has {len(data.rows):,} rows: "
        message += f"{'line i' if predictions.is_zip else 'without a column `id`, row i'} must be the label of row i."
        problems.add("LENGTH", message, file=str(predictions.path))
    return []


def _note_unmatched(
    data: Dataset, predictions: Predictions, problems: Problems, without: list[str], extra: list[str]
) -> None:
    parts = []
    if without:
        shown = ", ".join(map(repr, without[:SHOWN_IDS]))
        parts.append(f"{len(without):,} of {len(data.rows):,} ids of {data.path} have no prediction (first: {shown})")
    if extra:
        shown = ", ".join(map(repr, extra[:SHOWN_IDS]))
        parts.append(f"{len(extra):,} of {len(predictions.rows):,} predicted ids are not in the data (first: {shown})")
    hint = "The data has no column `index`: its rows are counted. Name another column: --map id=COLUMN."
    message = "; ".join(parts) + "."
    shown_hint = hint if data.is_numbered else None
    problems.add("UNMATCHED", message, file=str(predictions.path), field="id", hint=shown_hint)


def samples_of(task: ClarityTask, pairs: list[Pair], annotators: list[str]) -> list[Sample]:
    """The samples of a task: gold label, predicted label, and the annotators' labels, as the taxonomy spells them.

    Labels outside the taxonomy stay unchanged, so that the run shows what was left out.
    """
    return [_sample(task, row, predicted, annotators) for row, predicted in pairs]


def _sample(task: ClarityTask, row: Row, predicted: Predicted, annotators: list[str]) -> Sample:
    labels = {task.gold_column, *annotators, *(other.gold_column for other in TASKS.values())}
    return Sample(
        id=row.id,
        question=row.question,
        group=row.group,
        expected_answer=task.read(row.cells.get(task.gold_column)),
        generated_answer=predicted.labels[task.name] or "",
        annotations={name: task.read_annotation(row.cells.get(name)) for name in annotators} or None,
        metadata={key: value for key, value in row.cells.items() if key not in labels},
    )


# Check a submission before its upload: report everything that would be refused, and what is merely unusual.

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission without problems: how often each label is predicted, and notes on anything unusual."""

    file: str
    form: str
    rows: int
    labels: dict[str, dict[str, int]]
    compared_with: str | None
    notes: list[str] = field(default_factory=list)


def check(
    path: Path, data: Path | None = None, task: TaskName | None = None, columns: ClarityColumns | None = None
) -> Checked:
    """Summarize a submission, or refuse it with all of its problems. `data` is the file whose rows it must predict."""
    problems = Problems()
    predictions = read_predictions(path, problems, only=task, derive=False, columns=columns)
    if task is not None and predictions.rows and task not in predictions.tasks:
        hint = f"It has {' and '.join(predictions.tasks)} labels." if predictions.tasks else None
        problems.add("NO_PREDICTION", f"no label of the task {task} is predicted.", file=str(path), hint=hint)
    if data is not None:
        paired(read_dataset(data, problems, columns=columns), predictions, problems)
    problems.raise_if_any()
    counts = {name: Counter(row.labels[name] for row in predictions.rows) for name in predictions.tasks}
    return Checked(
        str(path),
        "zip" if predictions.is_zip else "table",
        len(predictions.rows),
        {name: {label: counts[name][label] for label in TASKS[name].labels} for name in predictions.tasks},
        None if data is None else str(data),
        [*_spelling_notes(predictions), *_label_notes(predictions, counts)],
    )


def _spelling_notes(predictions: Predictions) -> list[str]:
    """A note on labels in other spellings: the contest's own program may not accept aliases."""
    respelled = predictions.respelled
    if not respelled:
        return []
    examples = ", ".join(
        f"{shorten(original)} for {label!r} ({count:,})" for (original, label), count in respelled.most_common(SHOWN)
    )
    more = ", …" if len(respelled) > SHOWN else ""
    note = f"labels that are not spelled as in the taxonomy: {respelled.total():,}, {examples}{more}"
    return [f"{note}. They are accepted here; another program may not accept them."]


def _label_notes(predictions: Predictions, counts: dict[TaskName, Counter[str | None]]) -> list[str]:
    notes = []
    for name, label_counts in counts.items():
        never = [label for label in TASKS[name].labels if not label_counts[label]]
        if len(label_counts) == 1:
            notes.append(f"every row has the same {name} label, {next(iter(label_counts))!r}")
        elif never:
            notes.append(f"labels that are never predicted in the task {name}, with an F1 of 0: {', '.join(never)}")
    if contradicting := predictions.contradictions():
        notes.append(f"rows whose predicted clarity label contradicts their evasion label: {contradicting:,}")
    return notes
