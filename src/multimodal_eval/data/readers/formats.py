"""Which reader a file has: its suffix tells the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.readers.blocks import DamagedStreamError, bare_suffix
from multimodal_eval.data.readers.json_file import first_character, read_coco_annotations, read_json_array
from multimodal_eval.data.readers.jsonl import Record, read_jsonl
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.tables import read_delimited, read_parquet

Reader = Callable[[Path, Problems], Iterator[Record]]

_READERS: dict[str, Reader] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json_array,
    ".csv": partial(read_delimited, delimiter=","),
    ".tsv": partial(read_delimited, delimiter="\t"),
    ".parquet": read_parquet,
}
SUFFIXES = tuple(_READERS)  # also with .gz or .zst behind
_TEXTUAL = (".csv", ".tsv")


def reader_of(path: Path) -> Reader:
    """What reads the file; an unknown format is refused."""
    suffix = bare_suffix(path)
    if suffix not in _READERS:
        known = ", ".join(SUFFIXES)
        message = f"the suffix tells the format, and {suffix!r} is not known. Known: {known}, also with .gz or .zst"
        raise InputError([Problem(code="FORMAT", message=message, file=str(path))])
    if suffix == ".json":
        try:
            return read_coco_annotations if first_character(path) == "{" else read_json_array
        except DamagedStreamError:
            return read_json_array  # which says so
    return _READERS[suffix]


def check_file(path: Path) -> None:
    """A file that is not there, or whose format is not known, is refused before anything is read."""
    if path.is_dir():
        raise InputError([Problem(code="FORMAT", message="a folder, where a file is needed", file=str(path))])
    if not path.is_file():
        raise InputError([Problem(code="NOT_FOUND", message="no such file", file=str(path))])
    reader_of(path)


def is_textual(path: Path) -> bool:
    """Whether the file's format knows texts only."""
    return bare_suffix(path) in _TEXTUAL
