"""WebDataset shards: tar archives, in which consecutive files with the same name but for the extension are a sample.

    00017.jpg  00017.json  00017.txt  00017.cls

The name is the id. Images, audio and video become these fields, `.txt` is the caption, `.cls` the expected answer, and
the keys of `.json` are columns. Files with other extensions are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.datasets.dataset_format import DatasetFormat, natural_key
from multimodal_eval.data.datasets.tar_entries import BrokenTarError, tar_entries
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import DamagedStreamError, open_bytes
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

_MEMBER = re.compile(r"((?:.*/|)[^./][^./]*)\.([^/]*)", re.DOTALL)  # as webdataset: up to the first dot of the name
_MARKER = re.compile(r"__[^/]*__(?:$|/)")  # such as __meta__, as webdataset
_MEDIA = {
    **dict.fromkeys(("jpg", "jpeg", "png", "webp", "gif", "bmp", "ppm", "pgm", "tif", "tiff"), "image"),
    **dict.fromkeys(("wav", "mp3", "flac", "ogg"), "audio"),
    **dict.fromkeys(("mp4", "webm", "mkv", "mov", "avi"), "video"),
}
_NAMED = {"txt": "caption", "cls": "expected_answer"}
_TEXTS = ("json", *_NAMED)
Member = tuple[str, str, bytes]  # key, extension, content


class WebDataset(DatasetFormat):
    """The format of WebDataset."""

    name = "webdataset"
    suffixes = (".tar",)

    def recognises(self, head: Head) -> bool:
        """By the suffix, so that a damaged archive is reported as one."""
        return True

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per key, in the order of the archive."""
        file = str(path)
        try:
            with open_bytes(path) as stream:
                members = _members(stream, file)
                for number, (key, group) in enumerate(groupby(members, itemgetter(0)), 1):
                    record = _record(key, list(group), problems, file, number)
                    if record is not None:
                        yield number, record
        except (BrokenTarError, DamagedStreamError) as fault:
            problems.add(fault.code, f"{fault}.", file=file)


FORMAT = WebDataset()


def _members(stream: IO[bytes], file: str) -> Iterator[Member]:
    """(key, extension, content) of the members that belong to a sample. A sample must fit in a record's memory."""
    key, size = "", 0
    for entry in tar_entries(stream, file):
        match = _MEMBER.fullmatch(entry.name.removeprefix("./"))
        if match is None or _MARKER.match(entry.name):
            continue
        key, size = match[1], (size if match[1] == key else 0) + len(entry.content)
        if size > limits.current().record_bytes:
            limits.refuse_record(file, None, size, f"the sample {shorten(key)}")
        extension = match[2].lower()
        wanted = extension.rpartition(".")[2] in (*_MEDIA, *_TEXTS)
        yield key, extension, entry.content if wanted else b""


def _record(key: str, members: list[Member], problems: Problems, file: str, number: int) -> Columns | None:
    """The columns of a sample; None if a member cannot be read, which is a problem."""
    contents: dict[str, bytes] = {}
    for _, extension, content in members:
        if extension in contents:
            message = f"the sample {shorten(key)} has two files with the extension {shorten(extension)}"
            problems.add("DUPLICATE", message, file=file, line=number)
            return None
        contents[extension] = content
    record: Columns = {"id": key, "__key__": key}
    for extension in sorted(contents, key=_json_first):
        if extension.rpartition(".")[2] not in _TEXTS:
            continue
        try:
            columns = _text_columns(extension, contents[extension], file, number)
            named = _NAMED.get(extension, "")
            if record.get(named, columns.get(named)) != columns.get(named):  # the JSON has another one
                columns = {extension: columns[named]}
            record |= columns
        except ValueError as fault:
            code = "ENCODING" if isinstance(fault, UnicodeDecodeError) else "SYNTAX"
            problems.add(code, f"{shorten(f'{key}.{extension}')} {_reason(fault)}", file=file, line=number)
            return None
    return record | _media(contents)


def _reason(fault: ValueError) -> str:
    return f"is not valid UTF-8, at byte {fault.start}" if isinstance(fault, UnicodeDecodeError) else str(fault)


def _text_columns(extension: str, content: bytes, file: str, number: int) -> Columns:
    """The columns of a JSON object, a caption or a class. A longer extension, as in `0.info.json`, is a column."""
    head, _, kind = extension.rpartition(".")
    if kind == "json":
        limits.check_json(content, file, number)
        value = _json(content)
        if head:
            return {head: value}
        if not isinstance(value, dict):
            raise ValueError(f"must be a JSON object. Got {shorten(value)} instead.")
        return value
    text = content.decode("utf-8-sig")
    if head:
        return {extension: text}
    return {_NAMED[kind]: text if kind == "txt" else text.strip()}


def _json_first(extension: str) -> bool:
    return not extension.endswith("json")


def _json(content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise ValueError(f"is not valid JSON: {fault}") from None


def _media(contents: dict[str, bytes]) -> Columns:
    """The media: one image is `image`, several are `images`, in the order of their extensions."""
    record: Columns = {}
    for field in dict.fromkeys(_MEDIA.values()):
        named = {each: data for each, data in contents.items() if _MEDIA.get(each.rpartition(".")[2]) == field}
        media = [named[extension] for extension in sorted(named, key=natural_key)]
        if field == "image" and len(media) > 1:
            record["images"] = media
        elif media:
            record[field] = media[0]
    return record
