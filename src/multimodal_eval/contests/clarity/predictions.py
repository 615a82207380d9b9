"""Predicted labels: a table with `id`, `clarity_pred`, `evasion_pred` (or similar columns), or the contest's zip.

The zip holds one file `prediction`, one label per line in the order of the rows.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from msgspec.structs import asdict, replace

from multimodal_eval.contests.archives import member_content, read_archive
from multimodal_eval.contests.clarity.columns import (
    PREDICTION_FIELDS,
    ClarityColumns,
    LabelledRecords,
    file_columns,
    label_column,
    prediction_columns,
)
from multimodal_eval.contests.clarity.labels import EVASION_TO_CLARITY, TASKS, ClarityTask, TaskName
from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.data.readers.blocks import BOM, refuse_utf16
from multimodal_eval.data.readers.problems import Problems

UnknownLabels = Literal["error", "wrong"]

MEMBER = "prediction"
MAX_BYTES = 1 << 24  # of labels: over half a million rows; the contest has hundreds
MAX_MEMBERS = 1000  # archive entries that are checked
HOW = f"Make it with: zip submission.zip {MEMBER}"


@dataclass(frozen=True, slots=True)
class Predicted:
    """The labels of one row by task, None if missing. Rows of a zip have no id."""

    line: int
    id: str | None
    labels: dict[TaskName, str | None]


@dataclass(slots=True)
class Predictions:
    """All rows, with what was unusual about them."""

    path: Path
    rows: list[Predicted]
    tasks: tuple[TaskName, ...] = ()
    refused: bool = False  # whether the reader refused any row, so that its id is not known
    unknown: dict[TaskName, Counter[str]] = field(default_factory=dict)
    respelled: Counter[tuple[str, str]] = field(default_factory=Counter)  # (as in the file, as in the taxonomy)
    derived: bool = False  # whether clarity labels come from evasion labels
    columns: list[str] = field(default_factory=list)
    label_columns: dict[str, TaskName] = field(default_factory=dict)
    is_numbered: bool = False  # whether there is no column with ids

    @property
    def is_zip(self) -> bool:
        """Whether the predictions are the contest's zip."""
        return _is_zip(self.path)

    @property
    def is_ordered(self) -> bool:
        """Whether the rows are in the order of the data instead of having ids."""
        return self.is_zip or self.is_numbered

    def contradictions(self) -> int:
        """The number of rows whose clarity label contradicts their evasion label."""
        if self.derived or len(self.tasks) < 2:
            return 0
        labels = ((row.labels.get("evasion"), row.labels.get("clarity")) for row in self.rows)
        return sum(
            evasion in EVASION_TO_CLARITY and EVASION_TO_CLARITY[evasion] != clarity for evasion, clarity in labels
        )


def read_predictions(
    path: Path,
    problems: Problems,
    *,
    only: TaskName | None = None,
    unknown_labels: UnknownLabels = "error",
    advice: str = "",
    derive: bool = True,
    columns: ClarityColumns | None = None,
) -> Predictions:
    """Read the predictions of a file; problems are noted line by line.

    `only` names the one task that matters: labels of the other task are then ignored. `advice` is added to the hint
    for an unknown label. `derive`: whether clarity labels may be derived from evasion labels.
    """
    if _is_zip(path):
        predictions = _from_zip(path, problems, only)
    else:
        predictions = _from_table(path, problems, columns or ClarityColumns())
    if only is not None and only in predictions.tasks:
        predictions.tasks = (only,)
    for name in predictions.tasks:
        _check_labels(predictions, TASKS[name], problems, None if unknown_labels == "wrong" else advice)
    if derive and predictions.tasks == ("evasion",) and only != "evasion":
        _derive_clarity(predictions)
    return predictions


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _from_zip(path: Path, problems: Problems, only: TaskName | None) -> Predictions:
    if not path.is_file():
        problems.add("NOT_FOUND", "no such file", file=str(path))
        return Predictions(path, [])
    lines = _read_contest_zip(path, problems)
    if not lines:
        return Predictions(path, [])
    task = _task_of((label for _, label in lines), only or "evasion")
    return Predictions(path, [Predicted(line, None, {task: label or None}) for line, label in lines], (task,))


def _task_of(labels: Iterable[str], default: TaskName) -> TaskName:
    """The task to which most of the labels belong (the two taxonomies share no label), or `default` for a tie."""
    counts = Counter(labels)
    known = {
        name: sum(count for label, count in counts.items() if task.knows(task.read(label)))
        for name, task in TASKS.items()
    }
    if known["clarity"] == known["evasion"]:
        return default
    return "clarity" if known["clarity"] > known["evasion"] else "evasion"


def _from_table(path: Path, problems: Problems, chosen: ClarityColumns) -> Predictions:
    if path.name == MEMBER and path.is_file():
        message = "the list of labels is not in a zip"
        problems.add("FORMAT", message, file=str(path), hint=f"{HOW}.")
        return Predictions(path, [])
    convention = ("id", "index")
    columns = file_columns(path, (chosen.names.get("id", "id"), *convention))
    before = problems.total
    named = chosen.renames(PREDICTION_FIELDS, columns, str(path), problems)
    by_field = {task.prediction_column: name for name, task in TASKS.items()}
    by_user = {column: by_field[field] for column, field in named.items()}
    label_columns = prediction_columns(columns, by_user)
    renames = {column: TASKS[name].prediction_column for column, name in label_columns.items()}
    records = LabelledRecords(path, problems, renames, chosen.id_column(columns, convention))
    rows: list[Predicted] = []
    seen: set[TaskName] = set()
    for line, fields in records:
        cells = fields.get("metadata", {})
        labels: dict[TaskName, str | None] = {}
        for name, task in TASKS.items():
            cell, column = cells.get(task.prediction_column), label_column(task, label_columns)
            if cell is not None and not isinstance(cell, str):
                message = f"`{column}` must be a label. Got {shorten(cell)} instead."
                problems.add("TYPE", message, file=str(path), line=line, id=fields["id"], field=column)
                continue
            labels[name] = (cell or "").strip() or None
            if labels[name]:
                seen.add(name)
        rows.append(Predicted(line, fields["id"], labels))
    if not rows and problems.total == before:
        problems.add("EMPTY", "the file has no rows", file=str(path))
    elif rows and not seen:
        _note_no_labels(columns, list(label_columns), str(path), problems)
    tasks = tuple(name for name in TASKS if name in seen)
    refused = has_refused_rows(problems, before)
    return Predictions(
        path, rows, tasks, refused, columns=columns, label_columns=label_columns, is_numbered=records.is_numbered
    )


def _note_no_labels(columns: list[str], label_columns: list[str], file: str, problems: Problems) -> None:
    expected = label_columns or list(PREDICTION_FIELDS)
    message = f"no row has a label in {' or '.join(f'`{column}`' for column in expected)}."
    absent = [column for column in expected if column not in columns]
    near = next((near[0] for name in absent if (near := get_close_matches(name, columns, n=1))), "COLUMN")
    hint = f"The columns are {', '.join(columns)}. Name the one with the labels: --map evasion_pred={near}."
    problems.add("UNKNOWN_COLUMN", message, file=file, hint=hint if absent else None)


def has_refused_rows(problems: Problems, before: int) -> bool:
    """Whether the problems noted after the first `before` include anything other than duplicate ids."""
    return any(problem.code != "DUPLICATE" for problem in problems.kept[before:])


def _check_labels(predictions: Predictions, task: ClarityTask, problems: Problems, advice: str | None) -> None:
    """Spell every label as the taxonomy does. Unknown labels are counted and, unless `advice` is None, noted."""
    unknown: Counter[str] = Counter()
    file = f"{predictions.path}/{MEMBER}" if predictions.is_zip else str(predictions.path)
    column = "the line" if predictions.is_zip else f"`{label_column(task, predictions.label_columns)}`"
    for row in predictions.rows:
        original = row.labels.get(task.name)
        row.labels[task.name] = label = task.read(original)
        if task.knows(label):
            if original != label and original and label:
                predictions.respelled[original, label] += 1
            continue
        unknown[original or ""] += 1
        if advice is not None:
            problem = _label_problem(original, task, column, advice)
            place = replace(problem, file=file, line=row.line, id=row.id, field=task.prediction_column)
            problems.add(**asdict(place))
    predictions.unknown[task.name] = unknown


def _label_problem(label: str | None, task: ClarityTask, column: str, advice: str) -> Problem:
    if label is None:
        hint = f"Predict a label for every row. {advice}".strip()
        return Problem(code="EMPTY_LABEL", message=f"{column} is blank.", hint=hint)
    message = f"{column} is {shorten(label)}, which is not a label of the task {task.name}."
    hint = f"{task.suggestion(label)} {advice}".strip()
    return Problem(code="UNKNOWN_LABEL", message=message, value=shorten(label), hint=hint)


def _derive_clarity(predictions: Predictions) -> None:
    """Derive clarity predictions from evasion predictions through the taxonomy."""
    for row in predictions.rows:
        label = row.labels.get("evasion")
        row.labels["clarity"] = EVASION_TO_CLARITY.get(label or "")  # None if it is not an evasion label
    predictions.tasks, predictions.derived = ("clarity", "evasion"), True
    predictions.unknown["clarity"] = predictions.unknown["evasion"]


# the zip


def _read_contest_zip(path: Path, problems: Problems) -> list[tuple[int, str]]:
    """(line, label) of every line, with "" for a blank line; problems of the archive are noted.

    Nothing is unpacked to disk, and at most `MAX_BYTES` bytes are read into memory, whatever size the archive declares.
    """
    read = read_archive(path, lambda archive: _labels_in(archive, str(path), problems), problems, HOW)
    return [] if read is None else _lines(read[1], f"{path}/{read[0]}", problems)


def _labels_in(archive: zipfile.ZipFile, file: str, problems: Problems) -> tuple[str, bytes] | None:
    """The name and the content of the file with the labels."""
    member = _only_member(archive, file, problems)
    if member is None:
        return None
    content = member_content(archive, member, file, problems, most=MAX_BYTES, what="labels", how=HOW)
    return None if content is None else (member.filename, content)


def _only_member(archive: zipfile.ZipFile, file: str, problems: Problems) -> zipfile.ZipInfo | None:
    """The only file that the archive may contain; a single file with a wrong name is read too."""
    entries = archive.infolist()[:MAX_MEMBERS]
    members = [member for member in entries if not member.is_dir()]
    matching = [member for member in members if member.filename == MEMBER]
    if not members:
        problems.add("MEMBER", f"the archive is empty; it must contain the file {MEMBER!r}.", file=file, hint=HOW + ".")
        return None
    if len(entries) > 1:
        others = [member.filename for member in entries if member not in matching[:1]]
        shown = ", ".join(shorten(name) for name in others[:5])
        count = f"{len(archive.infolist()):,} entries"
        message = f"the archive must contain one file, {MEMBER!r}. Got {count}, which include {shown}."
        if not matching:
            message = f"the archive must contain one file, {MEMBER!r}. Got {count}, none with that name: {shown}."
        problems.add("MEMBER", message, file=file, hint=HOW + ".")
        return matching[0] if matching else None
    if not matching:
        message = f"the file in the archive must be named {MEMBER!r}. Got {shorten(members[0].filename)} instead."
        problems.add("MEMBER", message, file=file, hint=_name_hint(members[0].filename))
    return members[0]


def _name_hint(name: str) -> str:
    stem = name.rpartition("/")[2]
    if stem == MEMBER:
        return f"It must not be in a folder. {HOW}, from within that folder."
    if stem.partition(".")[0] == MEMBER:
        return f"The name must have no extension. {HOW}."
    return f"{HOW}."


def _lines(content: bytes, file: str, problems: Problems) -> list[tuple[int, str]]:
    try:
        refuse_utf16(content, file)
        text = content.removeprefix(BOM).decode()
    except UnicodeDecodeError as bad:
        at = bad.start + (len(BOM) if content.startswith(BOM) else 0)
        problems.add("ENCODING", f"byte {at} of the file is not valid UTF-8", file=file)
        return []
    except InputError as refusal:
        for problem in refusal.problems:
            problems.add(problem.code, problem.message, file=file, hint=problem.hint)
        return []
    lines = text.split("\n")
    if not lines[-1].strip():  # the text after the last newline
        lines.pop()
    if not lines:
        problems.add("EMPTY", "the file has no lines", file=file)
    return list(enumerate((line.strip() for line in lines), 1))
