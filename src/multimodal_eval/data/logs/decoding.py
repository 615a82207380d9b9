"""Decode what logs contain: lines, array elements and documents into structs with few fields, and chat values."""

from __future__ import annotations

import ast
import json
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import IO, Any, Generic, Self, TypeVar

import msgspec

from multimodal_eval._native import array_elements
from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import COMPRESSED, DamagedStreamError, line_blocks, open_bytes, refuse_utf16
from multimodal_eval.data.readers.json_file import DECODE_ERRORS, element, note_fault
from multimodal_eval.data.readers.problems import Problems

__all__ = [
    "LineIndex",
    "as_text",
    "conversation",
    "decoded_elements",
    "decoded_lines",
    "document_of",
    "finite",
    "loosely",
    "python_texts",
    "reasoning_of",
    "text_of",
]


# JSON as Python writes it: with NaN and Infinity, which are not JSON and which the fast decoder refuses.

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loosely(text: bytes, constant: Callable[[str], object] = lambda _: None) -> Any:
    """The value of a text; None if it is not JSON or Unicode. Numbers that are too large are None.

    `constant` returns the value of NaN, Infinity and -Infinity.
    """
    try:
        value = json.loads(text.decode(), parse_constant=constant, parse_float=finite)
        if _SURROGATE.search(text):  # an error if it is half of a pair
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def finite(text: str) -> float | None:
    """A number; None if it is too large to be finite."""
    value = float(text)
    return value if isfinite(value) else None


# Values as chat logs write them: contents of messages, stringified lists, and conversations.

_LONGEST_LITERAL = 100_000  # characters; the parser takes much memory for more
_TEXT_PARTS = ("text", "input_text", "output_text")
_MEDIA_PARTS = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
}


def as_text(value: object) -> str | None:
    """Text as it is, numbers as text, None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def text_of(content: object) -> str | None:
    """The text of a message's content, which may consist of parts."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [
        text for part in content if isinstance(text := _text_part(part) if isinstance(part, Mapping) else part, str)
    ]
    return "\n".join(texts) if texts else None


def _text_part(part: Mapping[str, Any]) -> object:
    return part.get("text") if part.get("type", "text") in _TEXT_PARTS else None


def reasoning_of(content: object) -> str | None:
    """The reasoning among the parts of a message's content."""
    parts = content if isinstance(content, list) else []
    texts = [
        part.get(key)
        for part in parts
        if isinstance(part, Mapping)
        for key in ("reasoning", "thinking")
        if part.get("type") == key
    ]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def conversation(messages: Sequence[object]) -> dict[str, object]:
    """The columns of a sample from the messages before the answer: the last question, its media, and the messages.

    The messages themselves are a column only if there are more than a question and an instruction.
    """
    known = [message for message in messages if isinstance(message, Mapping) and isinstance(message.get("role"), str)]
    users = [message for message in known if message["role"] == "user"]
    if not users:
        return {}
    content = users[-1].get("content")
    columns: dict[str, object] = {"question": text_of(content) or None}
    images = [media for part in _parts(content) if (media := _medium(part, "image")) is not None]
    if len(images) == 1:
        columns["image"] = images[0]
    elif images:
        columns["images"] = images
    for kind in ("audio", "video"):
        others = [medium for part in _parts(content) if (medium := _medium(part, kind)) is not None]
        if len(others) == 1:
            columns[kind] = others[0]
    system = [text for message in known if message["role"] == "system" if (text := text_of(message.get("content")))]
    if system:
        columns["system"] = "\n".join(system)
    if len(users) > 1:
        columns["messages"] = [
            {"role": message["role"], "content": text}
            for message in known
            if (text := text_of(message.get("content"))) is not None
        ]
    return columns


def _parts(content: object) -> list[Mapping[str, Any]]:
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _medium(part: Mapping[str, Any], kind: str) -> str | None:
    """The path, address or data URI of a part of this kind."""
    name = part.get("type")
    if not isinstance(name, str) or _MEDIA_PARTS.get(name) != kind:
        return None
    value = next((part[key] for key in (name, kind, f"{kind}_url", "url", "data") if part.get(key) is not None), None)
    if isinstance(value, Mapping):
        data, form = value.get("data"), value.get("format")
        if isinstance(data, str):
            return data if data.startswith("data:") else f"data:{kind}/{form or 'octet-stream'};base64,{data}"
        value = value.get("url")
    return value if isinstance(value, str) and value.strip() else None


def python_texts(text: str) -> list[str] | None:
    """The texts of a list that was written as Python source; None if the text is not such a list."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")) or len(stripped) > _LONGEST_LITERAL:
        return None
    try:
        values = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(values, list):
        return None
    texts = [as_text(value) for value in values]
    return [each for each in texts if each is not None] if None not in texts else None


Struct = TypeVar("Struct", bound=msgspec.Struct)
_TOGETHER = 200  # elements that are found at once
_LARGEST_DOCUMENT = 64 << 20  # bytes


def decoded_lines(
    path: Path, problems: Problems, decoder: msgspec.json.Decoder[Struct], what: str
) -> Iterator[tuple[int, Struct]]:
    """(line, struct) of every line; `what` names such a line in messages."""
    file, last_good = str(path), 0
    try:
        with open_bytes(path) as stream:
            for block in line_blocks(stream, file):
                start = block.offset
                for line, text in enumerate(block.data.split(b"\n"), block.first_line):
                    begin, start = start, start + len(text) + 1
                    if not text or text.isspace():
                        continue
                    limits.check_json(text, file, line)
                    if block.budget is not None:
                        block.budget.spend_json(text)
                    cut_off = not block.ends_in_newline and start > block.offset + len(block.data)
                    place = _Place(file, line, begin, last_good, cut_off=cut_off)
                    decoded = _decoded(text, decoder, what, problems, place)
                    if decoded is not None:
                        last_good = line
                        yield line, decoded
    except DamagedStreamError as damage:
        problems.add(damage.code, f"{damage}; the last good record is line {last_good}", file=file)


def decoded_elements(
    path: Path, problems: Problems, decoder: msgspec.json.Decoder[Struct], what: str, key: str | None = None
) -> Iterator[tuple[int, Struct]]:
    """(line, struct) of every element of an array: of the whole document, or of the value of `key` in an object."""
    file = str(path)
    try:
        with _Text(path) as text:
            refuse_utf16(bytes(text[:8]), file)
            pattern = rb"\[" if key is None else rb'"' + re.escape(key.encode()) + rb'"\s*:\s*\['
            start = re.compile(pattern).search(text)
            if start is None:
                where = "the file" if key is None else f"`{key}`"
                problems.add("TYPE", f"{where} must be a list", file=file)
                return
            budget = limits.Budget(file, path.stat().st_size) if path.suffix.lower() in COMPRESSED else None
            yield from _elements(text, start.end(), file, problems, decoder, what, budget)
    except DamagedStreamError as damage:
        problems.add(damage.code, str(damage), file=file)


def _elements(
    text: bytes | mmap.mmap,
    position: int,
    file: str,
    problems: Problems,
    decoder: msgspec.json.Decoder[Struct],
    what: str,
    budget: limits.Budget | None,
) -> Iterator[tuple[int, Struct]]:
    line, closed, last_good = 1 + text[:position].count(b"\n"), False, 0
    while not closed:
        elements, position, passed, closed, broken = array_elements(text, position, _TOGETHER)
        for begin, end, before in elements:
            here = line + before
            raw = element(text, begin, end, file, here, budget)
            if broken and end == elements[-1][1]:
                continue  # it is cut off, which is reported below
            decoded = _decoded(raw, decoder, what, problems, _Place(file, here, begin, last_good))
            if decoded is not None:
                last_good = here
                yield here, decoded
        line += passed
        if broken:
            message = f"the list is not closed; the last good record starts on line {last_good}"
            problems.add("TRUNCATED", message, file=file, line=line)
            return


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a text is: its first line and byte, and the line of the last good record before it."""

    file: str
    line: int
    start: int
    last_good: int
    cut_off: bool = False  # it is the last line, without a newline


def _decoded(
    text: bytes, decoder: msgspec.json.Decoder[Struct], what: str, problems: Problems, place: _Place
) -> Struct | None:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        shown = shorten(text[:1000].decode(errors="replace"))
        problems.add("TYPE", f"not {what}: {error}", file=place.file, line=place.line, value=shown)
    except DECODE_ERRORS as error:
        where = {"line": place.line, "start": place.start, "last_good": place.last_good}
        note_fault(problems, place.file, text, error, cut_off=place.cut_off, **where)
    return None


class _Text:
    """The bytes of a file, memory-mapped unless it is compressed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._view: mmap.mmap | None = None

    def __enter__(self) -> bytes | mmap.mmap:
        if self._path.suffix.lower() in COMPRESSED:
            with open_bytes(self._path, whole=True) as stream:
                return stream.read()
        if self._path.stat().st_size == 0:
            return b""
        with self._path.open("rb") as file:
            self._view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._view

    def __exit__(self, *_: object) -> None:
        if self._view is not None:
            self._view.close()


def document_of(path: Path, kind: type[Struct]) -> Struct | None:
    """The JSON document beside a log as a struct; None if there is none, or if it has other content."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_DOCUMENT:
            return None
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (*DECODE_ERRORS, OSError):
        return None


class LineIndex(Generic[Struct]):
    """The lines of a plain file by a key. Only their places are in memory; a line is decoded when it is asked for.

    Lines that cannot be decoded are left out. If a key repeats, its last line counts.
    """

    def __init__(self, path: Path | None, key: Callable[[bytes], str], decoder: msgspec.json.Decoder[Struct]) -> None:
        self._decoder = decoder
        self._places: dict[str, tuple[int, int]] = {}
        self._stream: IO[bytes] | None = None
        with suppress(OSError):
            if path is not None:
                self._stream = path.open("rb")
                self._fill(self._stream, key)

    def _fill(self, stream: IO[bytes], key: Callable[[bytes], str]) -> None:
        start = 0
        for text in stream:
            with suppress(*DECODE_ERRORS):
                self._places[key(text)] = start, len(text)
            start += len(text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def get(self, key: str) -> Struct | None:
        """The line of a key; None if there is none, or if it has other content."""
        place = self._places.get(key)
        if place is None or self._stream is None or place[1] > limits.current().text_bytes:
            return None
        with suppress(*DECODE_ERRORS, OSError):
            self._stream.seek(place[0])
            return self._decoder.decode(self._stream.read(place[1]))
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
