"""Files of the VQA datasets: annotations, questions and results, as VQA v1 and v2 publish them.

    annotations   {"annotations": [{"question_id", "image_id", "answers": [{"answer"}, …], "question_type", …}, …]}
    questions     {"questions": [{"question_id", "image_id", "question"}, …]}
    results       [{"question_id", "answer"}, …]

Annotations and questions become one record per question: the human answers are its references, and the image is its
group, since questions about one image are related. The other columns, such as the type of the question, are metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import ANSWER_ALIASES
from multimodal_eval.data.readers.blocks import open_bytes
from multimodal_eval.data.readers.json_file import read_json_object
from multimodal_eval.data.readers.problems import Columns, Problems, Record

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
        answers = _answers(item.get("answers"))
        if answers is None and (name == "annotations" or "answers" in item):
            message = (
                f'{place}.answers must be a list of {{"answer": text}}. Got {shorten(item.get("answers"))} instead.'
            )
            problems.add("TYPE", message, file=file, line=number, field="references")
            continue
        yield number, _record(item, answers, content)


def _answers(values: Any) -> list[Any] | None:
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
