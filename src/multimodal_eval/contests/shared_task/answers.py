"""The answers of a submission: the file of a stranger, of which only ids and answers are read.

A participant's mistakes are collected in `Problems`. No other column of a submission is used: an `error` would leave a
sample unscored, and references or images would replace those of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import ANSWER_ALIASES, Sample
from multimodal_eval.data.readers.blocks import DamagedStreamError
from multimodal_eval.data.readers.formats import is_textual, reader_of
from multimodal_eval.data.readers.json_file import first_character
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.records import RecordChecker

_ID = ("id", "question_id", "image_id")
_ANSWER = ("generated_answer", *ANSWER_ALIASES, "answer", "caption")
_SHOWN = 10  # ids of a kind
_EXAMPLE = '{"id": "…", "generated_answer": "…"}'


@dataclass(frozen=True)
class Answers:
    """The answer of every sample, and what the participant should know."""

    by_id: dict[str, str]
    notes: tuple[str, ...]


def read_answers(path: Path, samples: Mapping[str, Sample], max_answer: int) -> Answers:
    """Exactly one answer for every sample; an InputError names all mistakes."""
    problems = Problems()
    by_id: dict[str, str] = {}
    lines: dict[str, int] = {}
    unknown: list[str] = []
    for line, name, answer in _answers(path, problems):
        if name in lines:
            message = f"the id {shorten(name)} is already on line {lines[name]}. Give one answer per id"
            problems.add("DUPLICATE", message, file=path.name, line=line)
        elif answer is None:
            pass  # its problem is known
        elif len(answer) > max_answer:
            message = f"the answer has {len(answer):,} characters, but at most {max_answer:,} are allowed"
            problems.add("TOO_LONG", message, file=path.name, line=line, id=name)
        elif name not in samples:
            unknown.append(name)
        else:
            by_id[name] = answer
        lines.setdefault(name, line)
    missing = [name for name in samples if name not in lines]
    if not problems.total or lines:  # not if the whole file is unreadable
        _add_ids(problems, "MISSING", missing, len(samples), "have no answer")
    _add_ids(problems, "UNKNOWN", unknown, len(lines), "of the submission are not in the task")
    problems.raise_if_any()
    return Answers(by_id, tuple(_notes(by_id)))


def _answers(path: Path, problems: Problems) -> Iterator[tuple[int, str, str | None]]:
    """(line, id, answer) of every record with an id; the answer is None if it has a problem, which is noted."""
    if path.suffix.lower() == ".json" and _is_object(path):
        hint = f"Write a list of objects, [{_EXAMPLE}, …], or one object per line in a .jsonl file."
        problems.add("FORMAT", "the file is one JSON object.", file=path.name, hint=hint)
        return
    checker = RecordChecker(path.name, problems, {}, textual=is_textual(path))
    columns: tuple[str, str] | None = None
    is_empty = True
    for line, record in reader_of(path)(path, problems):
        is_empty = False
        columns = columns or _columns(record, path.name, line, problems)
        if columns is None:
            return
        id_column, answer_column = columns
        kept: Columns = {"id": record.get(id_column), "generated_answer": record.get(answer_column)}
        fields, name = checker.fields(line, kept), checker.id_of(kept)
        if fields is not None and "generated_answer" not in fields:
            message = f"`{answer_column}` is missing or null. An answer is text, and may be empty"
            problems.add("NO_ANSWER", message, file=path.name, line=line, id=name)
        if name is not None:
            yield line, name, None if fields is None else fields.get("generated_answer")
    if is_empty and not problems.total:
        problems.add("EMPTY", "the file has no records", file=path.name)


def _is_object(path: Path) -> bool:
    try:
        return first_character(path) == "{"
    except DamagedStreamError:
        return False  # the reader reports it


def _columns(record: Columns, file: str, line: int, problems: Problems) -> tuple[str, str] | None:
    """The columns of the id and of the answer, by the first record."""
    names = [next((name for name in known if name in record), None) for known in (_ID, _ANSWER)]
    if names[0] is not None and names[1] is not None:
        return names[0], names[1]
    absent = " and ".join(known for known, name in zip(("`id`", "`generated_answer`"), names, strict=True) if not name)
    shown = ", ".join(shorten(name) for name in list(record)[:8]) or "none"
    message = f"no column {absent}. The first record has the columns {shown}."
    problems.add("COLUMNS", message, file=file, line=line, hint=f"A record looks like {_EXAMPLE}.")
    return None


def _add_ids(problems: Problems, code: str, names: list[str], total: int, what: str) -> None:
    if names:
        first = ", ".join(map(shorten, names[:_SHOWN]))
        more = " …" if len(names) > _SHOWN else ""
        problems.add(code, f"{len(names):,} of {total:,} ids {what}: {first}{more}")


def _notes(by_id: Mapping[str, str]) -> Iterator[str]:
    blank = sum(not answer.strip() for answer in by_id.values())
    if blank:
        yield f"{blank:,} of {len(by_id):,} answers are blank"
    not_numbers = sum(answer.strip().lower() == "nan" for answer in by_id.values())
    if not_numbers:
        yield f"{not_numbers:,} answers are the text 'nan'. Is a value missing in the program that wrote them?"
