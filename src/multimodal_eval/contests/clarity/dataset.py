"""The CLARITY dataset: questions, answers, gold labels and annotators' labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multimodal_eval.contests.clarity.predictions import Predicted, Predictions, first_columns, has_refused_rows, id_map
from multimodal_eval.contests.clarity.tasks import TASKS, ClarityTask
from multimodal_eval.core.errors import did_you_mean, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.inputs import checked_records, checker_of
from multimodal_eval.data.readers.problems import Problems

ANNOTATOR = re.compile(r"annotator[ _-]?(\d+)", re.IGNORECASE)  # does not match `annotator_id`
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
    annotators: list[str]
    refused: bool  # whether the reader refused any row


def read_dataset(path: Path, problems: Problems, group: str | None = None) -> Dataset:
    """Read the rows of a file. `group` names the column by which the intervals are clustered."""
    columns = first_columns(path)
    mapping = id_map(columns, "index", "id") | ({} if group is None else {"group": (group,)})
    checker = checker_of(path, problems, mapping)
    before = problems.total
    rows = []
    for line, fields in checked_records(path, checker, problems):
        row = Row(fields["id"], fields.get("question"), fields.get("group"), fields.get("metadata", {}))
        rows.append(row)
        _check_labels(line, row, str(path), problems)
    if not rows and problems.total == before:
        problems.add("EMPTY", "the file has no rows", file=str(path))
    if rows and group in checker.unused_map:
        hint = did_you_mean(group, columns).strip() + "."
        problems.add("UNKNOWN_COLUMN", f"no column is named {group!r}.", file=str(path), hint=hint)
    numbers = {column: int(match[1]) for column in checker.metadata_columns if (match := ANNOTATOR.fullmatch(column))}
    annotators = sorted(numbers, key=numbers.__getitem__)
    return Dataset(path, rows, annotators, has_refused_rows(problems, before))


def _check_labels(line: int, row: Row, file: str, problems: Problems) -> None:
    for column, cell in row.cells.items():
        is_label = ANNOTATOR.fullmatch(column) or column in {task.gold_column for task in TASKS.values()}
        if is_label and not isinstance(cell, str):
            message = f"`{column}` must be a label. Got {shorten(cell)} instead."
            problems.add("TYPE", message, file=file, line=line, id=row.id, field=column, value=shorten(cell))


def paired(data: Dataset, predictions: Predictions, problems: Problems) -> list[Pair]:
    """Each row of the data with its prediction: by id, or by row order for a zip."""
    if predictions.is_zip:
        return _by_order(data, predictions, problems)
    by_id = {row.id: row for row in predictions.rows}
    without = [row.id for row in data.rows if row.id not in by_id]
    known = {row.id for row in data.rows}
    extra = [row.id for row in predictions.rows if row.id not in known]
    # A row that was refused for another reason would be reported here again, as unmatched.
    unpredicted = [] if predictions.refused else without
    unknown = [] if data.refused else [name for name in extra if name is not None]
    if unpredicted or unknown:
        _note_unmatched(data, predictions, problems, unpredicted, unknown)
    return [(row, by_id[row.id]) for row in data.rows if row.id in by_id]


def _by_order(data: Dataset, predictions: Predictions, problems: Problems) -> list[Pair]:
    if len(data.rows) == len(predictions.rows):
        return list(zip(data.rows, predictions.rows, strict=True))
    if predictions.rows and not data.refused:
        message = (
            f"the submission has {len(predictions.rows):,} lines, but {data.path} has {len(data.rows):,} rows: "
            "line i must be the label of row i."
        )
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
    problems.add("UNMATCHED", "; ".join(parts) + ".", file=str(predictions.path), field="id")


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
