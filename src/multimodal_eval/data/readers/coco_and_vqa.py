"""The files of COCO captions and of the VQA datasets, as they are published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import is_normalized

import msgspec

from multimodal_eval._native import repeated_keys
from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import ANSWER_ALIASES, Sample
from multimodal_eval.data.readers.blocks import BOM, open_bytes
from multimodal_eval.data.readers.field_checks import LONGEST_TEXT
from multimodal_eval.data.readers.json_file import read_json_object
from multimodal_eval.data.readers.problems import Columns, Problems, Record

# The fast way to read a COCO pair, annotations and results, if nothing about the two files is unusual.
#
# Whole lists are checked at once. Anything that would be a problem, or that needs a second look, makes `regular_pair`
# return None: then the usual readers read the files and report every problem with its place.

LARGEST = 256 << 20  # bytes per file, which is read at once
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_FIELDS = {"image_id": "id", "caption": "generated_answer"}  # column of the results -> field


class CocoPair(msgspec.Struct, frozen=True):
    """The samples of two files, the number of records with each field, and the number of blank captions."""

    samples: list[Sample]
    fields: Counter[str]
    blank_answers: int


def regular_pair(annotations: Path, results: Path) -> CocoPair | None:
    """The samples in the order of the annotations; None if the files must be read record by record."""
    if annotations.suffix != ".json" or results.suffix != ".json":
        return None
    content, rows = _decoded(annotations), _decoded(results)
    if not isinstance(content, dict) or not isinstance(rows, list):
        return None
    references, answers = _references(content.get("annotations")), _answers(rows)
    if references is None or answers is None or references.keys() != answers.keys():
        return None
    names = _file_names(content.get("images"), references, type(content["annotations"][0]["image_id"]))
    if names is None:
        return None
    fields = _field_counts(rows)
    fields.update({"id": len(references), "references": len(references), "image": len(names)})
    samples = [
        Sample(id=image, image=names.get(image), references=captions, generated_answer=answers[image])
        for image, captions in references.items()
    ]
    return CocoPair(samples, +fields, sum(not answer.strip() for answer in answers.values()))


def _decoded(path: Path) -> Any:
    """The content of a file; None if it cannot be decoded or repeats a key."""
    if path.stat().st_size > LARGEST:
        return None
    raw = path.read_bytes()
    if raw.startswith(_UTF_16) or b"\0" in raw[:8]:
        return None
    raw = raw.removeprefix(BOM)
    try:
        return None if repeated_keys(raw, False) else msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _references(annotations: Any) -> dict[str, list[str]] | None:
    """The captions by image id."""
    pairs = _pairs(annotations)
    if pairs is None or not all(map(str.strip, pairs[1])):
        return None
    references: dict[str, list[str]] = {}
    for image, caption in zip(*pairs, strict=True):
        references.setdefault(image, []).append(caption)
    return references


def _answers(rows: list[Any]) -> dict[str, str] | None:
    """The caption of each image. Other columns would be metadata, and an image must have one caption."""
    pairs = _pairs(rows)
    if pairs is None or any(len(row) > len(_FIELDS) for row in rows):
        return None
    answers = dict(zip(*pairs, strict=True))
    return answers if len(answers) == len(rows) else None


def _pairs(records: Any) -> tuple[list[str], list[str]] | None:
    """Image ids and captions, as they are stored in samples."""
    if not isinstance(records, list) or not records or set(map(type, records)) != {dict}:
        return None
    try:
        images = [record["image_id"] for record in records]
        captions = [record["caption"] for record in records]
    except KeyError:
        return None
    kinds = set(map(type, images))
    if kinds == {int}:
        images = list(map(str, images))
    elif kinds != {str} or not _are_plain(images) or not all(map(str.strip, images)):
        return None
    return (images, captions) if _are_plain(captions) else None


def _are_plain(texts: Sequence[Any]) -> bool:
    """Whether all values are valid text in NFC. A part of a text in NFC is in NFC too."""
    if set(map(type, texts)) != {str} or max(map(len, texts)) > LONGEST_TEXT // 4:
        return False
    joined = "".join(texts)
    return "\0" not in joined and (joined.isascii() or is_normalized("NFC", joined))


def _file_names(images: Any, wanted: Iterable[str], kind: type) -> dict[str, str] | None:
    """The file names of the images that have one; None if one is unusual. `kind` is the type of all image ids."""
    if not isinstance(images, list):
        return {}
    if set(map(type, images)) - {dict}:
        return None
    names = {str(image["id"]): image.get("file_name") for image in images if "id" in image}
    named = {image: name for image in wanted if (name := names.get(image)) is not None}
    is_regular = all(type(image["id"]) is kind for image in images if "id" in image)
    return named if is_regular and _are_valid(named.values()) else None


def _are_valid(names: Iterable[Any]) -> bool:
    """Whether all values are text. A file name is not normalised: another normal form would name another file."""
    return all(type(name) is str and "\0" not in name and len(name) <= LONGEST_TEXT // 4 for name in names)


def _field_counts(rows: list[dict[str, Any]]) -> Counter[str]:
    """The number of results with each field, in the order of the first record with another order of columns."""
    counts: Counter[str] = Counter()
    for columns, records in Counter(map(tuple, rows)).items():
        counts.update({_FIELDS[column]: records for column in columns})
    return counts


# Files of the VQA datasets: annotations, questions and results, as VQA v1 and v2 publish them.
#
#     annotations   {"annotations": [{"question_id", "image_id", "answers": [{"answer"}, …], "question_type", …}, …]}
#     questions     {"questions": [{"question_id", "image_id", "question"}, …]}
#     results       [{"question_id", "answer"}, …]
#
# Annotations and questions become one record per question: the human answers are its references, and the image is its
# group, since questions about one image are related. The other columns, such as the type of the question, are
# metadata.

_HEAD = 1 << 16  # bytes: what precedes the first question is shorter
_KEY = "question_id"
_RESULTS = {"id": _KEY, "generated_answer": "answer"}


def has_questions(path: Path) -> bool:
    """Whether a JSON object contains VQA annotations or questions, by the beginning of the file."""
    with open_bytes(path) as stream:
        return f'"{_KEY}"'.encode() in stream.read(_HEAD)


def read_vqa(path: Path, problems: Problems) -> Iterator[Record]:
    """(number, columns) of every annotation or question in a file."""
    file = str(path)
    content = read_json_object(path, problems)
    if content is None:
        return
    name = "annotations" if "annotations" in content else "questions"
    items = content.get(name)
    if not isinstance(items, list):
        problems.add("TYPE", "a VQA file must be an object with a list `annotations` or `questions`", file=file)
        return
    for number, item in enumerate(items, 1):
        place = f"{name}[{number - 1}]"
        if not isinstance(item, dict) or _KEY not in item:
            problems.add("TYPE", f"{place} must be an object with `{_KEY}`", file=file, line=number)
            continue
        answers = _vqa_answers(item.get("answers"))
        if answers is None and (name == "annotations" or "answers" in item):
            message = (
                f'{place}.answers must be a list of {{"answer": text}}. Got {shorten(item.get("answers"))} instead.'
            )
            problems.add("TYPE", message, file=file, line=number, field="references")
            continue
        yield number, _record(item, answers, content)


def _vqa_answers(values: Any) -> list[Any] | None:
    """The human answers: a list of objects, or of texts."""
    if not isinstance(values, list):
        return None
    answers = [value.get("answer") if isinstance(value, dict) else value for value in values]
    return answers if all(isinstance(answer, str) for answer in answers) else None


def _record(item: Mapping[str, Any], answers: list[Any] | None, content: Columns) -> Columns:
    rest = {key: value for key, value in item.items() if key not in (_KEY, "image_id", "answers")}
    image = item.get("image_id")
    return {"id": item[_KEY], "group": image, "image": _file_name(image, content), "references": answers, **rest}


def _file_name(image: Any, content: Columns) -> str | None:
    """The file of a COCO image, as the datasets name it."""
    subtype = content.get("data_subtype")
    if content.get("data_type") != "mscoco" or not isinstance(subtype, str) or type(image) is not int:
        return None
    return f"COCO_{subtype}_{image:012d}.jpg"


def questions_beside(annotations: Path) -> Path | None:
    """The file of questions in the same folder, if it has the name that the datasets use."""
    name = annotations.name.replace("annotations", "questions")
    names = (name, f"OpenEnded_{name}", name.replace("v2_", "v2_OpenEnded_", 1))
    paths = (annotations.with_name(each) for each in names if each != annotations.name)
    return next((path for path in paths if path.is_file()), None)


def with_questions(records: Iterator[Record], questions: Path, problems: Problems) -> Iterator[Record]:
    """The records of annotations, with the question and the image of each from another file."""
    before = problems.total
    known = {record["id"]: record for _, record in read_vqa(questions, problems) if isinstance(record["id"], int | str)}
    if problems.total > before:
        return
    matched = False
    for number, record in records:
        question = known.get(record["id"], {}) if isinstance(record["id"], int | str) else {}
        matched = matched or bool(question)
        for column in ("question", "group", "image"):
            if record.get(column) is None:
                record[column] = question.get(column)
        yield number, record
    if known and not matched:
        problems.add("UNMATCHED", "no question has the `question_id` of an annotation.", file=str(questions))


def result_columns(record: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """The columns of the id and the answer in a file of results, by its first record; empty for other files."""
    if _KEY not in record:
        return {}
    present = {"generated_answer" if column in ANSWER_ALIASES else column for column in record}
    return {field: (column,) for field, column in _RESULTS.items() if field not in present and column in record}
