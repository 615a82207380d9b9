"""Datasets of VLMEvalKit: a TSV with `index`, `image` in base64, `question`, the choices in `A`, `B`, …, and `answer`.

A cell of at most 64 characters in `image` is the index of the row that has the image. Rows with one image are a group.
Cells are text as they are written: `None`, `N/A` and `007` are not converted, and only an empty cell is missing.
"""

from __future__ import annotations

import base64
import binascii
import string
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.datasets.dataset_format import DatasetFormat, written_list
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers.formats import read_delimited
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

LONGEST_INDEX = 64  # characters; a longer cell is an image
_ANSWERS = ("prediction", "generated_answer", "model_output")
_KEYS = ("index", "question")
_IMAGES = ("image", "image_path")


class VlmEvalKitTsv(DatasetFormat):
    """The format of VLMEvalKit's datasets."""

    name = "vlmevalkit-tsv"
    suffixes = (".tsv",)

    def recognises(self, head: Head) -> bool:
        """By the header. A file with answers is a log."""
        names = head.data.partition(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r").split("\t")
        names = [name.strip('"') for name in names]
        has_images = any(name in names for name in _IMAGES)
        return has_images and all(name in names for name in _KEYS) and not {"id", *_ANSWERS} & set(names)

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per row."""
        with tempfile.TemporaryFile() as file:
            shared = _Shared(path, file)
            for line, cells in _rows(path, problems):
                record = _record(cells)
                if shared:
                    record["group"] = shared.row_of(cells)
                try:
                    _set_images(record, cells, shared)
                except ValueError as fault:
                    problems.add("TYPE", str(fault), file=str(path), line=line, field="image")
                    continue
                yield line, record


FORMAT = VlmEvalKitTsv()


def _rows(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    rows = read_delimited(path, problems, "\t")
    return cast(Iterator[tuple[int, dict[str, str]]], rows)


def _record(cells: dict[str, str]) -> Columns:
    """The columns of a sample, without its images."""
    letters = [letter for letter in string.ascii_uppercase if letter in cells]
    choices = {letter: cells[letter] for letter in letters if cells[letter]}
    others = {name: cell or None for name, cell in cells.items() if name not in (*letters, "index", "answer", *_IMAGES)}
    record: Columns = {"id": cells.get("index") or None, **others}
    if choices:
        record["choices"] = choices
    answer = cells.get("answer", "")
    references = None if choices else written_list(answer)
    if references:
        record["references"] = references
    elif answer:
        record["expected_answer"] = answer
    return record


def _set_images(record: Columns, cells: dict[str, str], shared: _Shared) -> None:
    """Add `image` or `images`: bytes, or paths if there are no images in the file."""
    cell = cells.get("image", "")
    if cell:
        images: Sequence[bytes | str] = [_decoded(text) for text in _listed(shared.content(cell))]
        if cells.get("image_path"):
            record["image_path"] = cells["image_path"]
    else:
        images = _listed(cells.get("image_path", ""))
    if len(images) > 1:
        record["images"] = list(images)
    elif images:
        record["image"] = images[0]


def _listed(cell: str) -> list[str]:
    items = written_list(cell)
    return items if items is not None else [cell] if cell else []


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        message = f"`image` must be base64, or the index of a row with an image. Got {shorten(text)} instead."
        raise ValueError(message) from None


class _Shared:
    """Images that several rows show. They are in a temporary file, so that they do not fill the memory."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[str, tuple[int, int]] = {}
        self._wanted = {
            cells["image"] for _, cells in _rows(path, Problems()) if 0 < len(cells.get("image", "")) <= LONGEST_INDEX
        }
        for _, cells in _rows(path, Problems()) if self._wanted else ():
            index, image = cells.get("index", ""), cells.get("image", "").encode()
            if index in self._wanted and len(image) > LONGEST_INDEX and index not in self._places:
                self._places[index] = file.tell(), len(image)
                file.write(image)

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def row_of(self, cells: dict[str, str]) -> str | None:
        """The index of the row that has the image of this row."""
        cell = cells.get("image", "")
        return (cell if 0 < len(cell) <= LONGEST_INDEX else cells.get("index")) or None

    def content(self, cell: str) -> str:
        """The image in a cell, or in the row that it names."""
        if len(cell) > LONGEST_INDEX:
            return cell
        if cell not in self._places:
            raise ValueError(f"`image` is {shorten(cell)}, but no row with this index has an image")
        start, length = self._places[cell]
        self._file.seek(start)
        return self._file.read(length).decode()
