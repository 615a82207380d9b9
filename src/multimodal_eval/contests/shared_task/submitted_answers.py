"""The answers of a submission to a shared task: its file is found in what was sent, and its answers are read."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from multimodal_eval.contests.archives import member_content, read_archive
from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import ANSWER_ALIASES, Sample
from multimodal_eval.data.readers.blocks import DamagedStreamError
from multimodal_eval.data.readers.column_names import peeked, taken_columns
from multimodal_eval.data.readers.formats import is_textual, reader_of
from multimodal_eval.data.readers.json_file import first_character
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.records import ColumnMap, Fields, RecordChecker

# The one file of answers in what a participant has sent: a file, a zip archive or an unpacked folder.
#
# Nothing is followed, run or unpacked to a name that the participant chose.

ACCEPTED = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
MAX_ENTRIES = 1000
MAX_DEPTH = 4
_SHOWN_FILES = 5
# Written by systems and platforms, not by participants.
_IGNORED = ("__MACOSX", "metadata", "metadata.yaml", "Thumbs.db", "desktop.ini")
_HOW = "Zip one file of answers, without a password"


@dataclass(frozen=True)
class _Entry:
    name: str  # relative to what was sent
    mode: int
    size: int


def submitted_file(sent: Path, scratch: Path, max_mb: int) -> Path:
    """The file of answers; that of an archive is written to `scratch`. An InputError says why there is none."""
    problems = Problems()
    path = _chosen(sent, scratch, max_mb, problems)
    problems.raise_if_any()
    assert path is not None
    return path


def _chosen(sent: Path, scratch: Path, max_mb: int, problems: Problems) -> Path | None:
    if sent.is_dir():
        entry = _only_entry(_entries(sent, problems), problems, (*ACCEPTED, ".zip"))
        path = None if entry is None else sent / entry.name
    else:
        entry = _Entry(sent.name, sent.lstat().st_mode, sent.lstat().st_size)
        path = sent if _is_regular(entry, problems) else None
    if path is None or entry is None:
        return None
    if _suffix(path.name) == ".zip" or (_suffix(path.name) not in ACCEPTED and zipfile.is_zipfile(path)):
        return _from_archive(path, scratch, max_mb, problems)
    if _suffix(path.name) not in ACCEPTED:
        problems.add("FORMAT", f"{shorten(path.name)} is not accepted. Send one of {', '.join(ACCEPTED)}, or a zip")
        return None
    if entry.size > max_mb << 20:
        problems.add("TOO_LONG", f"{shorten(entry.name)} is larger than {max_mb} MB")
        return None
    return path


def _entries(folder: Path, problems: Problems) -> list[_Entry]:
    """All files below a folder; links are entries, and are not followed."""
    entries: list[_Entry] = []
    waiting: list[tuple[Path, int]] = [(folder, 1)]
    while waiting:
        place, depth = waiting.pop()
        with os.scandir(place) as listed:
            for item in listed:
                name = Path(item.path).relative_to(folder).as_posix()
                if _is_ignored(name):
                    continue
                if item.is_dir(follow_symlinks=False):
                    if depth >= MAX_DEPTH:
                        problems.add("FORMAT", f"{shorten(name)} is more than {MAX_DEPTH} folders deep")
                        return []
                    waiting.append((Path(item.path), depth + 1))
                else:
                    about = item.stat(follow_symlinks=False)
                    entries.append(_Entry(name, about.st_mode, about.st_size))
                if len(entries) + len(waiting) > MAX_ENTRIES:
                    problems.add("FORMAT", f"the submission has more than {MAX_ENTRIES:,} files. Send one")
                    return []
    return sorted(entries, key=lambda entry: entry.name)


def _from_archive(path: Path, scratch: Path, max_mb: int, problems: Problems) -> Path | None:
    def read(archive: zipfile.ZipFile) -> Path | None:
        members = {member.filename: member for member in archive.infolist()[: MAX_ENTRIES + 1] if not member.is_dir()}
        if len(members) > MAX_ENTRIES:
            problems.add("FORMAT", f"the archive has more than {MAX_ENTRIES:,} files. Send one", file=path.name)
            return None
        entries = [
            _Entry(name, member.external_attr >> 16, member.file_size)
            for name, member in members.items()
            if not _is_ignored(name)
        ]
        entry = _only_entry(entries, problems, ACCEPTED)
        if entry is None:
            return None
        what = "a submission"
        content = member_content(
            archive, members[entry.name], path.name, problems, most=max_mb << 20, what=what, how=_HOW
        )
        if content is None:
            return None
        target = scratch / f"answers{_suffix(entry.name)}"
        target.write_bytes(content)
        return target

    before = problems.total
    result = read_archive(path, read, problems, _HOW)
    assert result is not None or problems.total > before
    return result


def _only_entry(entries: list[_Entry], problems: Problems, accepted: tuple[str, ...]) -> _Entry | None:
    """The only file with an accepted suffix."""
    if problems.total:
        return None
    unsafe = [entry.name for entry in entries if _is_unsafe(entry.name)]
    if unsafe:
        problems.add("FORMAT", f"{shorten(unsafe[0])} leads out of the submission. {_HOW}")
        return None
    fitting = [entry for entry in entries if _suffix(entry.name) in accepted]
    if len(fitting) == 1:
        return fitting[0] if _is_regular(fitting[0], problems) else None
    names = list(_shown(fitting or entries))
    if fitting:
        problems.add("FORMAT", f"the submission has {len(fitting)} files of answers: {', '.join(names)}. Send one")
    else:
        sent = f"It has {', '.join(names)}" if names else "It is empty"
        problems.add("FORMAT", f"the submission has no file of answers ({', '.join(ACCEPTED)}). {sent}")
    return None


def _shown(entries: list[_Entry]) -> Iterator[str]:
    yield from (shorten(entry.name) for entry in entries[:_SHOWN_FILES])
    if len(entries) > _SHOWN_FILES:
        yield "…"


def _is_regular(entry: _Entry, problems: Problems) -> bool:
    """Whether it is a file. Archives made on some systems do not say what their entries are."""
    kind = stat.S_IFMT(entry.mode)
    if kind in (0, stat.S_IFREG):
        return True
    what = "a link" if kind == stat.S_IFLNK else "not a regular file"
    problems.add("FORMAT", f"{shorten(entry.name)} is {what}. Send the file itself")
    return False


def _is_unsafe(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in path.parts[0]


def _is_ignored(name: str) -> bool:
    return any((part.startswith(".") and part != "..") or part in _IGNORED for part in PurePosixPath(name).parts)


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


# The answers of a submission: the file of a stranger, of which only ids and answers are read.
#
# A participant's mistakes are collected in `Problems`. No other column of a submission is used: an `error` would leave
# a sample unscored, and references or images would replace those of the task. Scoring programs of platforms need an
# answer for every id (`read_answers`); on a leaderboard an answer may be null, and is then a failed one
# (`read_submitted`).

_ID = ("id", "question_id", "image_id")
_SURE = ("generated_answer", *ANSWER_ALIASES)
_POSSIBLE = ("answer", "caption")  # references in other files
_SHOWN_IDS = 10  # ids of a kind
_EXAMPLE = '{"id": "…", "generated_answer": "…"}'
_KNOWN: ColumnMap = {"id": _ID, "generated_answer": (*_SURE, *_POSSIBLE)}
MODEL_FIELDS = ("generated_answer", "perplexity", "logprobs")  # what a model says, and how sure it is


@dataclass(frozen=True)
class Answers:
    """The answer of every sample, and what the participant should know."""

    by_id: dict[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Submitted:
    """What a submission says about each sample, and notes about what of it is ignored.

    Samples without an answer have no `generated_answer`.
    """

    by_id: dict[str, Fields]
    notes: tuple[str, ...]


def read_answers(path: Path, samples: Mapping[str, Sample], max_answer: int) -> Answers:
    """Exactly one answer for every sample; an InputError names all mistakes."""
    problems = Problems()
    by_id: dict[str, str] = {}
    unknown: list[str] = []
    seen = _SeenOnce(path.name, problems)
    for line, name, fields in _records(path, path.name, _KNOWN, problems, needs_answers=True):
        answer = None if fields is None else fields.get("generated_answer")
        if not seen.add(name, line) or answer is None:
            continue  # its problem is known
        if len(answer) > max_answer:
            message = f"the answer has {len(answer):,} characters, but at most {max_answer:,} are allowed"
            problems.add("TOO_LONG", message, file=path.name, line=line, id=name)
        elif name not in samples:
            unknown.append(name)
        else:
            by_id[name] = answer
    if not problems.total or seen.lines:  # not if the whole file is unreadable
        _add_missing(problems, samples, seen.lines)
    _add_ids(problems, "UNKNOWN", unknown, len(seen.lines), "of the submission are not in the task")
    problems.raise_if_any()
    return Answers(by_id, tuple(_notes(by_id)))


def read_submitted(path: Path, ids: Collection[str], mapped: ColumnMap, *, allow_partial: bool = False) -> Submitted:
    """The answers of a submission to a leaderboard; an InputError names all mistakes.

    `mapped` are the columns that the organiser names. Of the other fields of a model, only those named there are read.
    Every id must have a record, unless `allow_partial`. Answers to other ids are ignored: the organiser may have left
    these samples out.
    """
    problems, file = Problems(), str(path)
    columns = peeked(path)
    taken = taken_columns(columns, {}, (), ("predictions", file)).fields
    known = {"id": (*mapped.get("id", ()), *_ID)}
    known["generated_answer"] = (*mapped.get("generated_answer", ()), *_SURE, *taken, *_POSSIBLE)
    known |= {name: mapped[name] for name in MODEL_FIELDS if name in mapped and name not in known}
    by_id: dict[str, Fields] = {}
    unknown: list[str] = []
    seen = _SeenOnce(file, problems)
    for line, name, fields in _records(path, file, known, problems, columns):
        if seen.add(name, line) and fields is not None:
            if name in ids:
                by_id[name] = {field: fields[field] for field in MODEL_FIELDS if field in fields}
            else:
                unknown.append(name)
    if not allow_partial and not problems.total:
        _add_missing(problems, ids, seen.lines, file, "With --allow-partial, they count as failed answers.")
    if problems.total:  # ids that are spelled in another way
        _add_ids(problems, "UNKNOWN", unknown, len(seen.lines), "of the submission are not in the data", file)
    problems.raise_if_any()
    used = {next((column for column in names if column in columns), None) for names in known.values()}
    return Submitted(by_id, tuple(_ignored([name for name in columns if name not in used], len(unknown))))


def _ignored(columns: list[str], unknown: int) -> Iterator[str]:
    if columns:
        shown = ", ".join(map(shorten, columns[:_SHOWN_IDS])) + (" …" if len(columns) > _SHOWN_IDS else "")
        what = "1 column" if len(columns) == 1 else f"{len(columns):,} columns"
        yield f"ignored: {what} beside the id and the answer ({shown})"
    if unknown:
        yield f"ignored: {unknown:,} answers to ids that the data do not have"


class _SeenOnce:
    """The lines of the ids of a file; an id that occurs again is a problem."""

    def __init__(self, file: str, problems: Problems) -> None:
        self._file, self._problems = file, problems
        self.lines: dict[str, int] = {}

    def add(self, name: str, line: int) -> bool:
        """Whether the id is new."""
        is_new = name not in self.lines
        if not is_new:
            message = f"the id {shorten(name)} is already on line {self.lines[name]}. Give one answer per id"
            self._problems.add("DUPLICATE", message, file=self._file, line=line)
        self.lines.setdefault(name, line)
        return is_new


def _records(
    path: Path,
    file: str,
    known: ColumnMap,
    problems: Problems,
    names: Collection[str] = (),
    *,
    needs_answers: bool = False,
) -> Iterator[tuple[int, str, Fields | None]]:
    """(line, id, checked fields) of every record with an id; the fields are None if they have a problem.

    `known` has the names of each field's column, the preferred ones first. `names` are the columns of the file; by
    default those of its first record.
    """
    if path.suffix.lower() == ".json" and _is_object(path):
        hint = f"Write a list of objects, [{_EXAMPLE}, …], or one object per line in a .jsonl file."
        problems.add("FORMAT", "the file is one JSON object.", file=file, hint=hint)
        return
    checker = RecordChecker(file, problems, {}, textual=is_textual(path))
    columns: dict[str, str] | None = None
    is_empty = True
    for line, record in reader_of(path)(path, problems):
        is_empty = False
        columns = columns or _columns(names or record, known, file, line, problems)
        if columns is None:
            return
        kept: Columns = {field: record.get(column) for field, column in columns.items()}
        fields, name = checker.fields(line, kept), checker.id_of(kept)
        if needs_answers and fields is not None and "generated_answer" not in fields:
            message = f"`{columns['generated_answer']}` is missing or null. An answer is text, and may be empty"
            problems.add("NO_ANSWER", message, file=file, line=line, id=name)
        if name is not None:
            yield line, name, fields
    if is_empty and not problems.total:
        problems.add("EMPTY", "the file has no records", file=file)


def _is_object(path: Path) -> bool:
    try:
        return first_character(path) == "{"
    except DamagedStreamError:
        return False  # the reader reports it


def _columns(
    names: Collection[str], known: ColumnMap, file: str, line: int, problems: Problems
) -> dict[str, str] | None:
    """The column of each field, by the names of the columns; without an id and an answer, nothing can be read."""
    columns = {
        field: column
        for field, candidates in known.items()
        if (column := next((name for name in candidates if name in names), None)) is not None
    }
    absent = " and ".join(f"`{field}`" for field in _KNOWN if field not in columns)
    if not absent:
        return columns
    shown = ", ".join(shorten(name) for name in list(names)[:8]) or "none"
    message = f"no column {absent}. The first record has the columns {shown}."
    problems.add("COLUMNS", message, file=file, line=line, hint=f"A record looks like {_EXAMPLE}.")
    return None


def _add_missing(
    problems: Problems,
    ids: Collection[str],
    answered: Collection[str],
    file: str | None = None,
    hint: str | None = None,
) -> None:
    missing = [name for name in ids if name not in answered]
    _add_ids(problems, "MISSING", missing, len(ids), "have no answer", file, hint)


def _add_ids(
    problems: Problems,
    code: str,
    names: list[str],
    total: int,
    what: str,
    file: str | None = None,
    hint: str | None = None,
) -> None:
    if names:
        first = ", ".join(map(shorten, names[:_SHOWN_IDS]))
        more = " …" if len(names) > _SHOWN_IDS else ""
        end = "" if hint is None else "."
        problems.add(code, f"{len(names):,} of {total:,} ids {what}: {first}{more}{end}", file=file, hint=hint)


def _notes(by_id: Mapping[str, str]) -> Iterator[str]:
    blank = sum(not answer.strip() for answer in by_id.values())
    if blank:
        yield f"{blank:,} of {len(by_id):,} answers are blank"
    not_numbers = sum(answer.strip().lower() == "nan" for answer in by_id.values())
    if not_numbers:
        yield f"{not_numbers:,} answers are the text 'nan'. Is a value missing in the program that wrote them?"
