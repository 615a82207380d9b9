"""The fast way to read a COCO pair, annotations and results, if nothing about the two files is unusual.

Whole lists are checked at once. Anything that would be a problem, or that needs a second look, makes `regular_pair`
return None: then the usual readers read the files and report every problem with its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import is_normalized

import msgspec

from multimodal_eval._native import repeated_keys
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.blocks import BOM
from multimodal_eval.data.readers.field_checks import LONGEST_TEXT

LARGEST = 256 << 20  # bytes per file, which is read at once
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_FIELDS = {"image_id": "id", "caption": "generated_answer"}  # column of the results -> field


@dataclass(frozen=True)
class CocoPair:
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
