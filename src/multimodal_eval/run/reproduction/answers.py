"""Published answers, joined with their questions by id, and what shows that they have lost their end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multimodal_eval.benchmarks.recipes import Recipe
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.datasets.dataset_format import written_list
from multimodal_eval.data.datasets.declared_rows import add_groups, field_of
from multimodal_eval.data.readers.formats import check_file, reader_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.evaluation.rules._readings import letters_of
from multimodal_eval.run.reproduction.ledger import Entry

__all__ = ["FIELDS", "Answers", "Row", "Source", "answers_of", "cut_off", "row_of", "signs_of_cuts", "values_of"]

Columns = Mapping[str, Any]
# Field -> the columns that published files have for it; the first that a row has.
FIELDS: Mapping[str, Sequence[str]] = {
    "id": ("id", "index", "question_id", "pid", "idx"),
    "model": ("model",),
    "response": ("response", "generated_answer", "full_prediction", "prediction", "output"),
    "extraction": ("extraction", "extracted_answer", "model_answer", "extracted"),
    "verdict": ("verdict", "true_false", "is_correct", "correct", "hit", "match", "vlmevalkit.hit", "vlmevalkit.match"),
    "gold": ("gold", "references", "expected_answer", "answer"),
    "choices": ("choices", "options", "n_choices"),
}
_SAME = {
    "generated_answer": "response",
    "expected_answer": "gold",
    "references": "gold",
    "extracted_answer": "extraction",
}
_TRUTH = {
    **dict.fromkeys(("true", "yes", "correct", "right"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "wrong"), 0.0),
}
_FIRST_ELEMENT = 0xE000  # a sequence of numbers is compared like a text of which each number is a character


@dataclass(frozen=True)
class Row:
    """An answer with its question."""

    id: str
    response: str | None
    extraction: str | None
    verdict: float | None
    has_verdict: bool  # whether the file has such a column
    gold: str | list[str] | None
    choices: dict[str, str] | None
    columns: Columns

    def sample(self, answer: str | None, gold: str | list[str] | None = None) -> Sample:
        """The sample with an answer, and with another gold answer if one is given."""
        gold = self.gold if gold is None else gold
        return Sample(
            id=self.id,
            generated_answer=answer or "",
            expected_answer=gold if isinstance(gold, str) else None,
            references=gold if isinstance(gold, list) else None,
            choices=self.choices,
            metadata=dict(self.columns),
        )


@dataclass(frozen=True)
class Answers:
    """The answers of a model in the order of the file, each id once; and what is wrong with the ids."""

    rows: Sequence[Row]
    missing: Sequence[str]  # questions without an answer
    unknown: Sequence[Row]  # answers without a question
    doubled: Sequence[Row]  # further answers to the same question
    questions: Mapping[str, Columns]  # empty if the answers have them
    names: Mapping[str, Sequence[str]]  # field -> columns


class Source:
    """The files of a folder, or else of that of the ledger. Only the latest ones are kept in memory."""

    def __init__(self, folder: Path, beside: Path) -> None:
        self.folder, self.beside = folder, beside
        self._rows: dict[str, list[Columns]] = {}

    def rows(self, name: str, key: str, keep: Iterable[str] = ()) -> list[Columns]:
        """The rows of a file; `key` is that of the ledger."""
        if name not in self._rows:
            self._rows = {known: rows for known, rows in self._rows.items() if known in keep}
            paths = [self.folder / name, self.beside / name]
            path = next((each for each in paths if each.is_file()), paths[0])
            if not path.is_file():
                near = did_you_mean(path.name, [file.name for file in path.parent.glob("*")])
                raise ConfigError(f"`{key}`: there is no file {path}. Name the folder with --data DIR.{near}")
            check_file(path)
            problems = Problems()
            self._rows[name] = [columns for _, columns in reader_of(path)(path, problems)]
            problems.raise_if_any()
        return self._rows[name]


def answers_of(entry: Entry, recipe: Recipe, source: Source, where: str) -> Answers:
    """The answers of an entry."""
    names = _names(entry, recipe)
    made_of = _made_of(entry, recipe)
    rows = [_with_fields(row, made_of) for row in source.rows(entry.answers, "answers", [entry.questions or ""])]
    if entry.model is not None:
        models = dict.fromkeys(str(model) for row in rows if (model := _first(row, names["model"])) is not None)
        if entry.model in models:
            rows = [row for row in rows if str(_first(row, names["model"])) == entry.model]
        elif models:
            near = did_you_mean(entry.model, list(models))
            raise ConfigError(f"{where}: `model`: {entry.answers} has no answers of {entry.model!r}.{near}")
    questions: dict[str, Columns] = {}
    if entry.questions is not None:
        asked = [_with_fields(row, made_of) for row in source.rows(entry.questions, "questions", [entry.answers])]
        _check_ids(entry, {entry.answers: rows, entry.questions: asked}, names, where)
        questions = {_id(row, names, number): row for number, row in enumerate(asked, 1)}
    _check_columns(entry, rows, questions, where)
    known: dict[str, Row] = {}
    unknown, doubled = [], []
    for number, row in enumerate(rows, 1):
        name = _id(row, names, number)
        made = _row(name, {**questions.get(name, {}), **row}, names, recipe)
        if questions and name not in questions:
            unknown.append(made)
        elif name in known:
            doubled.append(made)
        else:
            known[name] = made
    missing = [name for name in questions if name not in known]
    return Answers(list(known.values()), missing, unknown, doubled, questions, names)


def _names(entry: Entry, recipe: Recipe) -> dict[str, Sequence[str]]:
    """Field or column -> the columns that it may be in. The entry comes before the recipe."""
    names = {**FIELDS}
    for field, column in recipe.task.columns.items():
        if isinstance(column, str) and (field := _SAME.get(field, field)) in names:
            names[field] = (*names[field], column)
    for field, columns in recipe.task.reproduction.columns.items():
        names[field] = (*columns, *names.get(field, (field,)))
    for field, given in entry.columns.items():
        field = _SAME.get(field, field)
        column = given if isinstance(given, str) else field
        names[field] = (column, *names["id"]) if field == "id" else (column,)  # questions may have another one
    return names


def _made_of(entry: Entry, recipe: Recipe) -> dict[str, list[str]]:
    """Fields that are made of several columns."""
    several = {**recipe.task.columns, **entry.columns}
    return {_SAME.get(field, field): columns for field, columns in several.items() if not isinstance(columns, str)}


def _with_fields(row: Columns, made_of: Mapping[str, Sequence[str]]) -> Columns:
    made = {
        field: field_of("references" if field == "gold" else field, [row[name] for name in columns])
        for field, columns in made_of.items()
        if all(name in row for name in columns)
    }
    return {**row, **made} if made else row


def _check_ids(
    entry: Entry, files: Mapping[str, Sequence[Columns]], names: Mapping[str, Sequence[str]], where: str
) -> None:
    """A column of ids that is named must be in the answers, and the questions must have ids, too."""
    for file, rows in files.items():
        if "id" in entry.columns and rows and not any(name in row for row in rows[:100] for name in names["id"]):
            present = ", ".join(map(repr, rows[0]))
            raise ConfigError(
                f"{where}: `columns`, id: {file} has no column {names['id'][0]!r}, and none of the usual names of ids. "
                f"It has {present}. Name its column in `columns` of the recipe: {{id: …}}"
            )


def _check_columns(entry: Entry, rows: Sequence[Columns], questions: Mapping[str, Columns], where: str) -> None:
    present = {name for row in (*rows[:100], *list(questions.values())[:100]) for name in row}
    for field, given in entry.columns.items():
        for column in [given] if isinstance(given, str) else given:
            if rows and column not in present:
                near = did_you_mean(column, sorted(present))
                raise ConfigError(f"{where}: `columns`, {field}: the files have no column {column!r}.{near}")


def _id(row: Columns, names: Mapping[str, Sequence[str]], number: int) -> str:
    value = _first(row, names["id"])
    return str(number if value is None else value)


def _first(row: Columns, columns: Iterable[str]) -> Any:
    return next((row[name] for name in columns if row.get(name) is not None), None)


def row_of(question: Columns, names: Mapping[str, Sequence[str]], recipe: Recipe) -> Row:
    """A question without an answer."""
    return _row(_id(question, names, 0), question, names, recipe)


def _row(name: str, row: Columns, names: Mapping[str, Sequence[str]], recipe: Recipe) -> Row:
    data, reproduction = recipe.task.data, recipe.task.reproduction
    columns = dict(row)
    if not isinstance(data, str):
        columns = {**data.add, **columns}
        for column in data.lists:
            if isinstance(text := columns.get(column), str):
                columns[column] = written_list(text) or [text]
        for column in data.last:
            if isinstance(items := columns.get(column), list):
                columns[column] = items[-1] if items else None
        for column, meanings in data.values.items():
            if column in columns:
                columns[column] = meanings.get(str(columns[column]), columns[column])
    for column in names.keys() - FIELDS.keys():
        if (value := _first(columns, names[column])) is not None:
            columns[column] = value
    add_groups(columns, (data.groups if not isinstance(data, str) else {}) | reproduction.groups)
    verdict = _first(columns, names["verdict"])
    return Row(
        name,
        _text(_first(columns, names["response"])),
        _text(_first(columns, names["extraction"])),
        _number(verdict),
        any(name in columns for name in names["verdict"]),
        _gold(_first(columns, names["gold"])),
        _choices(_first(columns, names["choices"])),
        columns,
    )


def _text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(each, int) for each in value):
        return "".join(chr(_FIRST_ELEMENT + each) for each in value)
    return None if value is None else str(value)


def _gold(value: Any) -> str | list[str] | None:
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return value
    return _text(value)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        value = _TRUTH.get(value.strip().lower(), value)
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _choices(value: Any) -> dict[str, str] | None:
    if isinstance(value, str) and value.startswith("["):
        value = written_list(value)
    if isinstance(value, int | float) or (isinstance(value, str) and value.isdigit()):
        return dict.fromkeys(letters_of(int(value)), "")
    if isinstance(value, list) and value:
        return dict(zip(letters_of(len(value)), map(str, value), strict=True))
    return {str(letter): str(text) for letter, text in value.items()} if isinstance(value, dict) and value else None


def values_of(row: Row, column: str) -> Iterator[str]:
    """The values of a row in a column; a list has several."""
    value = row.columns.get(column)
    for each in value if isinstance(value, list) else [value]:
        yield str(each)


_SHORTEST = 12  # characters of an answer that may be cut off
_FEWEST = 3  # answers
_MOST, _USUAL = 0.8, 0.4  # the share of the answers that end in the middle of a sentence, and of the others
_OPEN_MARKS = ",-([{/:;"


def cut_off(rows: Sequence[Row]) -> tuple[int, list[Row]]:
    """The length of the longest answers, and these answers if they are so many that all answers are cut off there."""
    lengths = [len(row.response or "") for row in rows]
    longest = max(lengths, default=0)
    cut = [row for row, length in zip(rows, lengths, strict=True) if length == longest]
    is_varied = 2 * len({row.response for row in cut}) >= len(cut)  # else the same answer, such as the text of a choice
    is_cut = longest >= _SHORTEST and len(cut) >= max(_FEWEST, len(rows) // 50) and is_varied
    return longest, cut if is_cut else []


def signs_of_cuts(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    """What shows that most of some answers have lost their end; empty if nothing does."""
    texts = [(row.response or "").strip() for row in rows]
    empty = sum(not text for text, row in zip(texts, rows, strict=True) if row.verdict)
    if 2 * empty > len(rows):
        return f": {empty:,} of these answers are empty, and right for the authors"
    these = {row.id for row in rows}
    _, cut = cut_off(all_rows)
    if 2 * (count := sum(row.id in these for row in cut)) > len(rows):
        return f": {count:,} of these answers are cut off"
    others = [(row.response or "").strip() for row in all_rows if row.id not in these]
    length, count = Counter(map(len, texts)).most_common(1)[0]
    starts = {text for text in texts if len(text) == length}  # one of them may be the text of a choice
    in_a_word = any(other[length : length + 1].isalnum() for other in others if other[:length] in starts)
    if length >= _SHORTEST and count >= _FEWEST and 2 * count > len(rows) and (2 * len(starts) > count or in_a_word):
        return f": {count:,} of these answers are cut off after {length:,} characters"
    count, usual = sum(map(_is_open, texts)), sum(map(_is_open, others)) / max(len(others), 1)
    if count >= _FEWEST and count > _MOST * len(rows) and usual < _USUAL:
        return f": {count:,} of these answers end in the middle of a sentence, and {usual:.0%} of the others"
    return ""


def _is_open(text: str) -> bool:
    """Whether a text of several words ends without a full stop."""
    return len(text) >= _SHORTEST and " " in text and (text[-1].isalnum() or text[-1] in _OPEN_MARKS)
