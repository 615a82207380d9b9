"""Common names of columns: which are read as a field, and which are suggested for `--map`.

The tables here are the ones of docs/input.md. A name is compared without case, and with "_" for blanks, "-" and ".".
A column is read as a field only if no column has the field's name and no other column could be it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import msgspec

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS

Kind = Literal["text", "texts", "letters", "integer", "other", "null"]  # lists of strings; objects of strings
Kinds = Mapping[str, Kind]  # by column
Role = Literal["data", "predictions"]  # of one of two joined files

REFERENCES = ("references", "expected_answer", "caption")  # the fields that count as references
# Names that can only be the model's answer.
TAKEN = (
    *("pred", "predicted", "predicted_answer", "predicted_caption", "pred_answer", "pred_caption", "hyp", "hypothesis"),
    *("output", "model_answer", "model_response", "model_prediction", "response", "completion", "generation"),
    *("generated", "generated_text", "generated_caption", "generated_response"),
)
# Names that are the model's answer in a file of predictions, and a reference in the data beside it.
TAKEN_IN_PAIRS = ("answer",)
CHOICES = ("options",)  # names of the choices of a question, in any file
GOLD_POSITIONS = ("answer",)  # names that are the gold answer if they hold integers and the question has choices
# Names that may be a field: no column is read as one of these, but messages suggest it.
SUGGESTED: Mapping[str, tuple[str, ...]] = {
    "generated_answer": (
        "answer",
        "text",
        "caption",
        "result",
        "candidate",
        "reply",
        "label",
        "predictions",
        "outputs",
    ),
    "expected_answer": (
        *("gt", "gold", "ground_truth", "groundtruth", "target", "label", "answer", "reference", "gold_answer"),
        *("gt_answer", "correct_answer", "gt_caption", "solution"),
    ),
    "references": (
        *("refs", "ref", "gts", "captions", "answers", "targets", "labels", "ground_truths", "gold_answers"),
        *("reference_captions", "gt_captions"),
    ),
    "id": ("sample_id", "question_id", "image_id", "example_id", "qid", "uid", "uuid", "key", "index", "idx"),
    "image": ("image_path", "image_file", "img", "img_path", "image_url", "file_name", "filename", "path"),
    "question": ("query", "instruction", "input"),
}
_NUMBERED = re.compile(r"(ref|reference|caption|answer|gt|human)_?\d+")
PEEKED = 100  # records whose columns decide
_ANSWER = ("generated_answer", *ANSWER_ALIASES)
_NO_COLUMNS: Mapping[str, tuple[str, ...]] = {}


class TakenColumns(msgspec.Struct, frozen=True):
    """Columns that are read as a field although they have another name, and notes about them."""

    fields: Mapping[str, str] = msgspec.field(default_factory=dict)  # column -> field
    notes: tuple[str, ...] = ()


def numbering(kinds: Kinds) -> str:
    """The note about samples that are numbered because no column is the id; empty if one is, or none is known."""
    if not kinds or "id" in kinds:
        return ""
    likely = suggestion("id", kinds)
    flag = "--map id=COLUMN" if likely is None else map_flag("id", likely.column)
    return f"no column is `id`, so the samples are numbered. To take a column: {flag}"


def taken_columns(
    kinds: Kinds,
    columns: Mapping[str, tuple[str, ...]] = _NO_COLUMNS,
    annotators: Iterable[str] = (),
    pair: tuple[Role, str] | None = None,
) -> TakenColumns:
    """The columns that are read as a field; `columns` is the map, whose fields and columns are left alone.

    `pair` says which of two joined files this is, with its name.
    """
    mapped = {column for names in columns.values() for column in names}
    patterns = tuple(annotators)
    free = {
        column: kind
        for column, kind in kinds.items()
        if column not in mapped and not any(fnmatchcase(column, pattern) for pattern in patterns)
    }
    role, where = (None, "") if pair is None else (pair[0], f" of {pair[1]}")
    take = partial(_taken, columns=columns, where=where)
    if role == "data":
        read = [take(free, TAKEN_IN_PAIRS, REFERENCES), take(free, CHOICES, ("choices",))]
    else:
        read = [take(free, (*_ANSWER, *TAKEN), _ANSWER)]
        if role is None:
            read.append(take(free, CHOICES, ("choices",)))
            if "choices" in (*kinds, *columns, *read[0].fields.values(), *read[1].fields.values()):
                # An integer cannot be a model's answer; beside choices it is the position of the correct one.
                usable = {column: kind for column, kind in free.items() if column in FIELDS or kind == "integer"}
                read.append(take(usable, GOLD_POSITIONS, REFERENCES))
        elif read == [TakenColumns()]:
            read = [take(free, TAKEN_IN_PAIRS, _ANSWER)]
    fields = {column: field for taken in read for column, field in taken.fields.items()}
    return TakenColumns(fields, tuple(note for taken in read for note in taken.notes))


def _taken(
    kinds: Kinds, names: Sequence[str], fields: Sequence[str], columns: Mapping[str, tuple[str, ...]], where: str
) -> TakenColumns:
    """The one column with one of the names, if none of the fields has a column."""
    if any(name in kinds or name in columns for name in fields):
        return TakenColumns()
    candidates = {
        column: _field_for(fields, kind)
        for column, kind in kinds.items()
        if isinstance(column, str) and column not in FIELDS and plain_name(column) in names and _field_for(fields, kind)
    }
    if len(candidates) > 1:
        listed = " and ".join(map(repr, candidates))
        first, name = next(iter(candidates.items()))
        note = f"the columns {listed}{where} may each be {name}, so none is read as it. Choose one: "
        return TakenColumns({}, (note + map_flag(str(name), first),))
    return TakenColumns(
        {column: str(name) for column, name in candidates.items()},
        tuple(f"the column {column!r}{where} is read as {name}" for column, name in candidates.items()),
    )


def _field_for(fields: Sequence[str], kind: Kind) -> str | None:
    """The field of a column with such values, or None if they do not fit."""
    if fields == REFERENCES:
        return {"text": "expected_answer", "integer": "expected_answer", "texts": "references"}.get(kind)
    if fields == ("choices",):
        return "choices" if kind in ("text", "texts", "letters") else None
    return fields[0] if kind == "text" else None


def plain_name(column: str) -> str:
    """The name in the form of the tables."""
    return re.sub(r"[\s.-]+", "_", column.strip().casefold())


def map_flag(name: str, column: str) -> str:
    """The option that names the column of a field, quoted for a shell."""
    return f"--map {quote(f'{name}={column}')}"


# suggestions


class Suggestion(msgspec.Struct, frozen=True):
    """The likely column of a field, and other columns that are possible too."""

    field: str
    column: str  # several, separated by commas, only for references
    others: tuple[str, ...] = ()


def suggestion(need: str, kinds: Kinds) -> Suggestion | None:
    """The column that a field that no sample has is probably in. `need` is as in a metric: `a|b` is either."""
    candidates = list(dict.fromkeys(_candidates(need, kinds)))
    if not candidates:
        return None
    name, column = candidates[0]
    others = dict.fromkeys(other for _, other in candidates[1:] if other != column)
    return Suggestion(name, column, tuple(others))


def _candidates(need: str, kinds: Kinds) -> Iterator[tuple[str, str]]:
    """(field, column), the likely ones first."""
    from difflib import get_close_matches

    usable = {column: kind for column, kind in kinds.items() if column == column.strip() and kind != "null"}
    plain = {column: plain_name(column) for column in usable}
    fields = tuple(need.split("|"))
    if "references" in fields:
        fields = REFERENCES[:2]
    for name in fields:
        yield from ((name, column) for column in usable if column != name and plain[column] == name)
    if "generated_answer" in fields:
        names = (*ANSWER_ALIASES, *TAKEN, *SUGGESTED["generated_answer"])
        yield from (("generated_answer", column) for column in _in_order(plain, names) if usable[column] == "text")
    elif fields == REFERENCES[:2]:
        numbered = [column for column in usable if _NUMBERED.fullmatch(plain[column]) and usable[column] == "text"]
        if len(numbered) > 1 and not any("," in column for column in numbered):
            yield "references", ",".join(numbered)
        names = (*SUGGESTED["expected_answer"], *SUGGESTED["references"])
        for column in _in_order(plain, names):
            if usable[column] in ("text", "integer"):
                yield "expected_answer", column
            elif usable[column] == "texts" and "," not in column:
                yield "references", column
    else:
        for name in fields:
            yield from ((name, column) for column in _in_order(plain, SUGGESTED.get(name, ())))
    for name in fields:
        free = [column for column in usable if column not in FIELDS]
        yield from ((name, column) for column in get_close_matches(name, free, n=3, cutoff=0.8))
    if "generated_answer" in fields:  # by no name: any column with text
        unknown = _unknown(free, plain)
        yield from (("generated_answer", column) for column in unknown if usable[column] == "text")
    elif fields == REFERENCES[:2]:
        gold = {"text": "expected_answer", "texts": "references"}
        yield from ((gold[usable[column]], column) for column in _unknown(free, plain) if usable[column] in gold)


def _unknown(columns: Iterable[str], plain: Mapping[str, str]) -> list[str]:
    """The columns whose names say nothing about what they hold."""
    known = {*ANSWER_ALIASES, *TAKEN, *CHOICES, *(name for names in SUGGESTED.values() for name in names)}
    return [column for column in columns if plain[column] not in known and not _NUMBERED.fullmatch(plain[column])]


def _in_order(plain: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    """The columns with these names, in the order of the names."""
    places = {name: place for place, name in enumerate(names)}
    return iter(sorted((column for column in plain if plain[column] in places), key=lambda each: places[plain[each]]))


# the columns of an input


def kinds_of(records: Iterable[Mapping[str, object]]) -> dict[str, Kind]:
    """The kinds of the values of each column; a column with several kinds is "other"."""
    kinds: dict[str, Kind] = {}
    for record in records:
        for column, value in record.items():
            kind, before = _kind(value), kinds.get(column)
            if before is None or before == "null":
                kinds[column] = kind
            elif kind not in ("null", before):
                kinds[column] = "other"
    return kinds


def _kind(value: object) -> Kind:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int) and not isinstance(value, bool):
        return "integer"
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return "texts"
    if isinstance(value, dict) and len(value) > 1 and all(isinstance(item, str | None) for item in value.values()):
        return "letters" if all(isinstance(key, str) and len(key) == 1 for key in value) else "other"
    return "other"


def peeked(path: Path, log: str | None = None) -> dict[str, Kind]:
    """The columns of a file by its schema, or by its first records; none if they cannot be read.

    `log` is the name of its format, if it is a log or a dataset.
    """
    from multimodal_eval.data.readers.blocks import bare_suffix
    from multimodal_eval.data.readers.formats import is_textual, reader_of
    from multimodal_eval.data.readers.json_file import read_coco_annotations
    from multimodal_eval.data.readers.problems import Problems

    with suppress(MultimodalEvalError, OSError):
        if log is None and bare_suffix(path) == ".parquet":
            return _kinds_of_schema(path)
        reader = reader_of(path, log)
        if reader is not read_coco_annotations:
            kinds = kinds_of(record for _, record in islice(reader(path, Problems()), PEEKED))
            return dict.fromkeys(kinds, "text") if is_textual(path, log) else kinds
    return {}


def _kind_of_type(kind: Any) -> Kind:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return "integer"
    is_letters = pa.types.is_struct(kind) and kind.num_fields > 1
    return "letters" if is_letters and all(len(each.name) == 1 and _is_text(each.type) for each in kind) else "other"


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _kinds_of_schema(path: Path) -> dict[str, Kind]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from multimodal_eval.data.readers.parquet_file import parquet_errors

    try:
        schema = pq.read_schema(path)
    except parquet_errors():
        return {}
    kinds: dict[str, Kind] = {}
    for column in schema:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if _is_text(kind):
            kinds[column.name] = "text"
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kinds[column.name] = "texts" if _is_text(kind.value_type) else "other"
        else:
            kinds[column.name] = "null" if pa.types.is_null(kind) else _kind_of_type(kind)
    return kinds
