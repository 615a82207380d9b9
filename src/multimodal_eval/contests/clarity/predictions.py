"""Predicted labels: a table with `id`, `clarity_pred`, `evasion_pred`, or the contest's zip.

The zip holds one file `prediction`, one label per line in the order of the rows.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec.structs import asdict, replace

from multimodal_eval.contests.clarity.labels import EVASION_TO_CLARITY
from multimodal_eval.contests.clarity.tasks import TASKS, ClarityTask, TaskName
from multimodal_eval.core.errors import InputError, Problem, did_you_mean, shorten
from multimodal_eval.data.readers.blocks import BOM, refuse_utf16
from multimodal_eval.data.readers.inputs import checked_records, checker_of, read_records
from multimodal_eval.data.readers.problems import Problems

UnknownLabels = Literal["error", "wrong"]
COLUMNS = tuple(task.prediction_column for task in TASKS.values())

MEMBER = "prediction"
LARGEST = 1 << 24  # bytes of labels: over half a million rows, where the contest has hundreds
MOST_MEMBERS = 1000  # a list of names to look through, not a memory to fill
HOW = f"Make it with: zip submission.zip {MEMBER}"


@dataclass(frozen=True, slots=True)
class Predicted:
    """The labels of one row by task; None where there is none. A zip's rows have no id."""

    line: int
    id: str | None
    labels: dict[TaskName, str | None]


@dataclass(slots=True)
class Predictions:
    """All rows, and what a person should know of them."""

    path: Path
    rows: list[Predicted]
    tasks: tuple[TaskName, ...] = ()
    refused: bool = False  # whether the reader could not take some row, so that its id is not known
    unknown: dict[TaskName, Counter[str]] = field(default_factory=dict)
    respelled: Counter[tuple[str, str]] = field(default_factory=Counter)  # (as given, as the taxonomy spells it)
    derived: bool = False  # whether clarity labels come from evasion labels

    @property
    def is_zip(self) -> bool:
        """Whether the rows stand in the data's order instead of having ids."""
        return _is_zip(self.path)

    def contradictions(self) -> int:
        """Rows whose clarity label is not the one that the taxonomy gives to their evasion label."""
        if self.derived or len(self.tasks) < 2:
            return 0
        given = ((row.labels.get("evasion"), row.labels.get("clarity")) for row in self.rows)
        return sum(
            evasion in EVASION_TO_CLARITY and EVASION_TO_CLARITY[evasion] != clarity for evasion, clarity in given
        )


def read_predictions(
    path: Path,
    problems: Problems,
    *,
    only: TaskName | None = None,
    unknown_labels: UnknownLabels = "error",
    advice: str = "",
    derive: bool = True,
) -> Predictions:
    """The predictions of a file; what is wrong with it is noted, line by line.

    `only` names the one task that matters: labels of the other are then not looked at. `advice` is what else can be
    done about a label that is not known. `derive`: whether evasion labels may stand for clarity labels.
    """
    found = _from_zip(path, problems, only) if _is_zip(path) else _from_table(path, problems)
    if only is not None and only in found.tasks:
        found.tasks = (only,)
    for name in found.tasks:
        _check_labels(found, TASKS[name], problems, None if unknown_labels == "wrong" else advice)
    if derive and found.tasks == ("evasion",) and only != "evasion":
        _derive_clarity(found)
    return found


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


def _task_of(labels: Iterable[str], in_doubt: TaskName) -> TaskName:
    """The task to which most of the labels belong: the two taxonomies share none."""
    counts = Counter(labels)
    known = {
        name: sum(count for label, count in counts.items() if task.knows(task.read(label)))
        for name, task in TASKS.items()
    }
    if known["clarity"] == known["evasion"]:
        return in_doubt
    return "clarity" if known["clarity"] > known["evasion"] else "evasion"


def _from_table(path: Path, problems: Problems) -> Predictions:
    if path.name == MEMBER and path.is_file():
        message = "a list of labels without a zip around it"
        problems.add("FORMAT", message, file=str(path), hint=f"{HOW}.")
        return Predictions(path, [])
    columns = first_columns(path)
    checker = checker_of(path, problems, id_map(columns, "id", "index"))
    before = problems.total
    rows: list[Predicted] = []
    seen: set[TaskName] = set()
    for line, fields in checked_records(path, checker, problems):
        cells = fields.get("metadata", {})
        labels: dict[TaskName, str | None] = {}
        for name, task in TASKS.items():
            cell = cells.get(task.prediction_column)
            if cell is not None and not isinstance(cell, str):
                message = f"`{task.prediction_column}` must be a label. Got {shorten(cell)} instead."
                problems.add("TYPE", message, file=str(path), line=line, id=fields["id"], field=task.prediction_column)
                continue
            labels[name] = (cell or "").strip() or None
            if labels[name]:
                seen.add(name)
        rows.append(Predicted(line, fields["id"], labels))
    if not rows and problems.total == before:
        problems.add("EMPTY", "the file has no rows", file=str(path))
    elif rows and not seen:
        message = f"no row has a label in {' or '.join(f'`{column}`' for column in COLUMNS)}."
        hint = " ".join(did_you_mean(column, columns).strip() for column in COLUMNS if column not in columns)
        problems.add("UNKNOWN_COLUMN", message, file=str(path), hint=hint or None)
    return Predictions(path, rows, tuple(name for name in TASKS if name in seen), lost_rows(problems, before))


def first_columns(path: Path) -> list[str]:
    """The columns of a file's first record."""
    _, record = next(read_records(path, Problems()), (0, {}))
    return list(record)


def id_map(columns: list[str], first: str, second: str) -> dict[str, tuple[str, ...]]:
    """Which column holds the id. `index` is the data's name for it, `id` that of predictions; either is taken."""
    return {"id": (second if second in columns and first not in columns else first,)}


def lost_rows(problems: Problems, before: int) -> bool:
    """Whether reading has noted more than ids that occur twice since there were `before` problems."""
    return any(problem.code != "DUPLICATE" for problem in problems.kept[before:])


def _check_labels(found: Predictions, task: ClarityTask, problems: Problems, advice: str | None) -> None:
    """Spell every label as the taxonomy does. Those that it does not know are counted, and with an advice noted."""
    unknown: Counter[str] = Counter()
    file = f"{found.path}/{MEMBER}" if found.is_zip else str(found.path)
    column = "the line" if found.is_zip else f"`{task.prediction_column}`"
    for row in found.rows:
        given = row.labels.get(task.name)
        row.labels[task.name] = label = task.read(given)
        if task.knows(label):
            if given != label and given and label:
                found.respelled[given, label] += 1
            continue
        unknown[given or ""] += 1
        if advice is not None:
            problem = _label_problem(given, task, column, advice)
            place = replace(problem, file=file, line=row.line, id=row.id, field=task.prediction_column)
            problems.add(**asdict(place))
    found.unknown[task.name] = unknown


def _label_problem(given: str | None, task: ClarityTask, column: str, advice: str) -> Problem:
    if given is None:
        hint = f"Predict a label for every row. {advice}".strip()
        return Problem(code="EMPTY_LABEL", message=f"{column} is blank.", hint=hint)
    message = f"{column} is {shorten(given)}, which is no label of the task {task.name}."
    hint = f"{task.near(given)} {advice}".strip()
    return Problem(code="UNKNOWN_LABEL", message=message, value=shorten(given), hint=hint)


def _derive_clarity(found: Predictions) -> None:
    """Clarity predictions through the taxonomy, where only evasion was predicted."""
    for row in found.rows:
        label = row.labels.get("evasion")
        row.labels["clarity"] = EVASION_TO_CLARITY.get(label or "")  # none for what is no evasion label
    found.tasks, found.derived = ("clarity", "evasion"), True
    found.unknown["clarity"] = found.unknown["evasion"]


# the zip


def _read_contest_zip(path: Path, problems: Problems) -> list[tuple[int, str]]:
    """(line, label) of every line, blank ones with an empty label; what is wrong with the archive is noted.

    Nothing is unpacked to the disk, and no more than `LARGEST` bytes into the memory, whatever the archive says.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            member = _only_member(archive, str(path), problems)
            content = None if member is None else _content(archive, member, str(path), problems)
    except zipfile.BadZipFile as fault:
        problems.add("FORMAT", f"not a readable zip file: {fault}", file=str(path), hint=HOW + ".")
        return []
    return [] if content is None else _lines(content, f"{path}/{member.filename if member else MEMBER}", problems)


def _only_member(archive: zipfile.ZipFile, file: str, problems: Problems) -> zipfile.ZipInfo | None:
    """The one file that the archive may hold; under a wrong name it is still looked into."""
    found = archive.infolist()[:MOST_MEMBERS]
    members = [member for member in found if not member.is_dir()]
    right = [member for member in members if member.filename == MEMBER]
    if not members:
        problems.add("MEMBER", f"the archive is empty; it must hold the file {MEMBER!r}.", file=file, hint=HOW + ".")
        return None
    if len(found) > 1:
        others = [member.filename for member in found if member not in right[:1]]
        shown = ", ".join(shorten(name) for name in others[:5])
        told = (
            f"{len(archive.infolist()):,} entries" if right else f"{len(archive.infolist()):,} entries, none so named"
        )
        message = f"the archive must hold one file, {MEMBER!r}, and holds {told}: besides, {shown}."
        if not right:
            message = f"the archive must hold one file, {MEMBER!r}, and holds {told}: {shown}."
        problems.add("MEMBER", message, file=file, hint=HOW + ".")
        return right[0] if right else None
    if not right:
        message = f"the file in the archive must be named {MEMBER!r}. Got {shorten(members[0].filename)} instead."
        problems.add("MEMBER", message, file=file, hint=_why(members[0].filename))
    return members[0]


def _why(name: str) -> str:
    stem = name.rpartition("/")[2]
    if stem == MEMBER:
        return f"It must not lie in a folder. {HOW}, from within that folder."
    if stem.partition(".")[0] == MEMBER:
        return f"The name has no extension. {HOW}."
    return f"{HOW}."


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str, problems: Problems) -> bytes | None:
    """The member's bytes. The size that an archive declares may be a lie: reading stops at the cap as well."""
    if member.flag_bits & 0x1:
        problems.add("FORMAT", f"{shorten(member.filename)} is encrypted", file=file, hint="Zip it without a password.")
        return None
    try:
        with archive.open(member) as stream:
            content = b"" if member.file_size > LARGEST else stream.read(LARGEST + 1)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error) as fault:
        problems.add("TRUNCATED", f"{shorten(member.filename)} cannot be read: {fault}", file=file, hint=HOW + ".")
        return None
    if member.file_size > LARGEST or len(content) > LARGEST:
        message = f"{shorten(member.filename)} is larger than {LARGEST >> 20} MB unpacked, which no list of labels is"
        problems.add("TOO_LONG", message, file=file)
        return None
    return content


def _lines(content: bytes, file: str, problems: Problems) -> list[tuple[int, str]]:
    try:
        refuse_utf16(content, file)
        text = content.removeprefix(BOM).decode()
    except UnicodeDecodeError as bad:
        at = bad.start + (len(BOM) if content.startswith(BOM) else 0)
        problems.add("ENCODING", f"byte {at} of the file is no valid UTF-8", file=file)
        return []
    except InputError as refusal:
        for problem in refusal.problems:
            problems.add(problem.code, problem.message, file=file, hint=problem.hint)
        return []
    lines = text.split("\n")
    if not lines[-1].strip():  # what stands behind the last newline
        lines.pop()
    if not lines:
        problems.add("EMPTY", "the file has no lines", file=file)
    return list(enumerate((line.strip() for line in lines), 1))
