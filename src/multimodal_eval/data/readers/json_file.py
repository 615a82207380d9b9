"""Readers of JSON Lines, JSON arrays (element by element) and COCO caption annotation files."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from multimodal_eval._native import array_elements, repeated_keys
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import (
    BOM,
    COMPRESSED,
    Block,
    DamagedStreamError,
    line_blocks,
    open_bytes,
    refuse_utf16,
)
from multimodal_eval.data.readers.problems import Columns, Problems, Record

_BATCH = 1000
Value = TypeVar("Value")
Decode = Callable[[bytes], Columns]
_DECODER = msgspec.json.Decoder(Columns)


def read_jsonl(path: Path, problems: Problems, decode: Decode = _DECODER.decode) -> Iterator[Record]:
    """(line number, fields) of every line with a record; problems with the others are recorded."""
    last_good = 0
    try:
        with open_bytes(path) as stream:
            for block in line_blocks(stream, str(path)):
                for line, fields in records_of_block(block, path, problems, last_good, decode):
                    last_good = line
                    yield line, fields
    except DamagedStreamError as damage:
        problems.add(damage.code, f"{damage}; the last good record is line {last_good}", file=str(path))


def record_of_line(
    text: bytes, file: str, problems: Problems, *, line: int, start: int, cut_off: bool, last_good: int
) -> Columns | None:
    """The fields of one line, `start` bytes into the file. None if it is blank or has problems, which are recorded."""
    if not text or text.isspace():
        return None
    limits.check_json(text, file, line)
    repeated = repeated_by_line(text, line, line_delimited=True)
    if repeated:
        note_repeated_keys(problems, file, repeated)
        return None
    try:
        return _DECODER.decode(text)
    except DECODE_ERRORS as error:
        note_fault(problems, file, text, error, line=line, start=start, cut_off=cut_off, last_good=last_good)
        return None


def records_of_block(
    block: Block, path: Path, problems: Problems, last_good: int, decode: Decode = _DECODER.decode
) -> Iterator[Record]:
    """(line number, fields) of every line of a block with a record; `last_good` is the last one before the block."""
    if block.data.isspace():
        return
    file = str(path)
    repeating = repeated_by_line(block.data, block.first_line, line_delimited=True)
    lines = block.data.split(b"\n")
    if block.ends_in_newline:
        lines.pop()
    start = block.offset
    for line, text in enumerate(lines, block.first_line):
        begin, start = start, start + len(text) + 1
        if not text or text.isspace():
            continue
        if line in repeating:
            note_repeated_keys(problems, file, {line: repeating[line]})
            continue
        limits.check_json(text, file, line)
        if block.budget is not None:
            block.budget.spend_json(text)
        try:
            fields = decode(text)
        except DECODE_ERRORS as error:
            cut_off = not block.ends_in_newline and start > block.offset + len(block.data)
            note_fault(problems, file, text, error, line=line, start=begin, cut_off=cut_off, last_good=last_good)
            continue
        last_good = line
        yield line, fields


@contextmanager
def mapped(path: Path) -> Iterator[bytes | mmap.mmap]:
    """The whole file: memory-mapped, or decompressed into memory."""
    if path.suffix.lower() in COMPRESSED:
        with open_bytes(path, whole=True) as stream:
            yield stream.read()
    elif path.stat().st_size == 0:
        yield b""
    else:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            yield view


def first_character(path: Path) -> str:
    """The first character that is not white space: '[' for an array, '{' for an object."""
    with open_bytes(path) as stream:
        head = stream.read(4096)
    return head.removeprefix(BOM).lstrip()[:1].decode(errors="replace")


def read_json_array(path: Path, problems: Problems) -> Iterator[Record]:
    """(first line, fields) of every object of the array."""
    decode = _DECODER.decode
    file = str(path)
    last_good = 0
    budget = limits.Budget(file, path.stat().st_size) if path.suffix.lower() in COMPRESSED else None
    try:
        with mapped(path) as text:
            refuse_utf16(bytes(text[:8]), file)
            position, line = _after_bracket(text)
            closed = position < 0
            if closed:
                problems.add("TYPE", "the file must hold a JSON array of objects", file=file)
            while not closed:
                elements, position, passed, closed, broken = array_elements(text, position, _BATCH)
                for begin, end, before in elements:
                    here = line + before
                    raw = element(text, begin, end, file, here, budget)
                    repeated = repeated_by_line(raw, here, line_delimited=False)
                    if repeated:
                        note_repeated_keys(problems, file, repeated)
                        continue
                    try:
                        fields = decode(raw)
                    except DECODE_ERRORS as error:
                        if not (broken and end == elements[-1][1]):  # reported below
                            note_fault(
                                problems,
                                file,
                                raw,
                                error,
                                line=here,
                                start=begin,
                                cut_off=False,
                                last_good=last_good,
                            )
                        continue
                    last_good = here
                    yield here, fields
                line += passed
                if broken:
                    message = f"the array is not closed; the last good record starts on line {last_good}"
                    problems.add("TRUNCATED", message, file=file, line=line)
                    return
            if position >= 0 and bytes(text[position : position + 4096]).strip():
                problems.add("SYNTAX", "there is text after the end of the array", file=file, line=line)
    except DamagedStreamError as damage:
        problems.add(damage.code, str(damage), file=file)


def element(text: bytes | mmap.mmap, begin: int, end: int, file: str, line: int, budget: limits.Budget | None) -> bytes:
    """An element of a JSON array that is within the limits."""
    if end - begin > limits.current().text_bytes:
        limits.refuse_text(file, line)
    raw = bytes(text[begin:end])
    limits.check_json(raw, file, line)
    if budget is not None:
        budget.spend_json(raw)
    return raw


def _after_bracket(text: bytes | mmap.mmap) -> tuple[int, int]:
    """The offset and the line at which the array's content starts; the offset is -1 if there is no array."""
    head = bytes(text[:65536])
    start = len(BOM) if head.startswith(BOM) else 0
    body = head[start:].lstrip()
    if not body.startswith(b"["):
        return -1, 1
    position = len(head) - len(body) + 1
    return position, 1 + head.count(b"\n", 0, position)


def read_json_object(path: Path, problems: Problems) -> Columns | None:
    """The object in a file; None if it cannot be read or repeats a key."""
    raw = _document(path, str(path), problems)
    if raw is None:
        return None
    limits.check_json(raw, str(path), None, "the document", free=path.stat().st_size)  # a plain file cannot be a bomb
    return _decoded(raw, str(path), problems, Columns)


def read_json_value(source: Path | bytes, file: str, problems: Problems) -> Columns | list[Any] | None:
    """The object or the array in a file, which may be in memory; None if it cannot be read or repeats a key."""
    raw = _document(source, file, problems)
    if raw is None:
        return None
    if raw.lstrip()[:1] == b"[":
        return _decoded(raw, file, problems, list[Any])
    return _decoded(raw, file, problems, Columns)


def _document(source: Path | bytes, file: str, problems: Problems) -> bytes | None:
    """The bytes of a document without a byte order mark; None if they are damaged."""
    if isinstance(source, bytes):
        refuse_utf16(source[:8], file)
        return source.removeprefix(BOM)
    try:
        with mapped(source) as text:
            refuse_utf16(bytes(text[:8]), file)
            return bytes(text).removeprefix(BOM)
    except DamagedStreamError as damage:
        problems.add(damage.code, str(damage), file=file)
        return None


def _decoded(raw: bytes, file: str, problems: Problems, kind: type[Value]) -> Value | None:
    if not raw.strip():
        problems.add("EMPTY", "the file is empty", file=file)
        return None
    repeated = repeated_by_line(raw, 1, line_delimited=False)
    if repeated:
        note_repeated_keys(problems, file, repeated)
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except DECODE_ERRORS as error:
        note_fault(problems, file, raw, error, line=1, start=0, cut_off=True, last_good=0)
        return None


def read_coco_annotations(path: Path, problems: Problems) -> Iterator[Record]:
    """A COCO caption annotation file as one record per image: id, captions as references, file name."""
    file = str(path)
    content = read_json_object(path, problems)
    if content is None:
        return
    annotations = content.get("annotations")
    if not isinstance(annotations, list):
        message = "a JSON object must be a COCO caption file with a list `annotations`; other data must be an array"
        problems.add("TYPE", message, file=file)
        return
    references: dict[Any, list[Any]] = {}
    for index, annotation in enumerate(annotations):
        if not isinstance(annotation, dict) or not annotation.keys() >= {"image_id", "caption"}:
            problems.add("TYPE", f"annotations[{index}] must be an object with `image_id` and `caption`", file=file)
            continue
        if not isinstance(annotation["image_id"], int | str):
            problems.add("TYPE", f"annotations[{index}].image_id must be a number or text", file=file)
            continue
        references.setdefault(annotation["image_id"], []).append(annotation["caption"])
    images = content.get("images")
    names = {
        image["id"]: image.get("file_name")
        for image in (images if isinstance(images, list) else [])
        if isinstance(image, dict) and isinstance(image.get("id"), int | str)
    }
    for number, (image_id, captions) in enumerate(references.items(), 1):
        yield number, {"id": image_id, "references": captions, "image": names.get(image_id)}


# Raised by the decoder on invalid text.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class Fault(msgspec.Struct, frozen=True):
    """A code, a message, and the offset of the fault in the text (None if unknown)."""

    code: str
    message: str
    offset: int | None = None


def diagnose(text: bytes, error: Exception, *, cut_off: bool = False) -> Fault:
    """Find the fault in `text`. `cut_off`: it is the file's last line and lacks its newline."""
    if isinstance(error, RecursionError):
        return Fault("NESTING", "the JSON is nested too deeply")
    try:
        text.decode()
    except UnicodeDecodeError as bad:
        if cut_off and bad.reason == "unexpected end of data":
            return Fault("TRUNCATED", "the file ends in the middle of a character")
        return Fault("ENCODING", f"byte 0x{text[bad.start]:02x} is not valid UTF-8", bad.start)
    reported = str(error)
    if "Expected `object`" in reported:
        return Fault("TYPE", "a record must be a JSON object")
    if "Integer value out of range" in reported:
        return Fault("RANGE", "an integer has more digits than can be read")
    if "Number out of range" in reported:
        return Fault("NONFINITE", "a number is too large to be finite")
    surrogate = _lone_surrogate(text)
    if surrogate is not None:
        return Fault("CONTROL_CHAR", "half of a surrogate pair without the other half", surrogate)
    constant = _constant(text)
    if constant:
        return Fault("NONFINITE", f"{constant} is not a JSON number", text.find(constant.encode()))
    if cut_off and "truncated" in reported:
        return Fault("TRUNCATED", "the file ends in the middle of a record")
    where = re.search(r"\(byte (\d+)\)", reported)
    message = re.sub(r" \(byte \d+\)", "", reported).replace("Input data was truncated", "the JSON ends too early")
    return Fault("SYNTAX", message, int(where.group(1)) if where else None)


def _lone_surrogate(text: bytes) -> int | None:
    """The offset of a \\u escape that is half of a surrogate pair without the other half."""
    open_high: re.Match[bytes] | None = None
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        adjacent = open_high is not None and open_high.end() == escape.start()
        if open_high is not None and not (adjacent and 0xDC00 <= code < 0xE000):
            return open_high.start()
        if open_high is None and 0xDC00 <= code < 0xE000:
            return escape.start()
        open_high = escape if 0xD800 <= code < 0xDC00 else None
    return open_high.start() if open_high is not None else None


def _constant(text: bytes) -> str | None:
    """NaN or ±Infinity if it occurs as a value; strings with this text do not count."""
    constants: list[str] = []
    with suppress(ValueError, RecursionError):
        json.loads(text, parse_constant=constants.append)
    return constants[0] if constants else None


def repeated_by_line(text: bytes, first_line: int, *, line_delimited: bool) -> dict[int, list[str]]:
    """The keys that an object repeats, by line. The decoder would silently keep the last value."""
    repeated: dict[int, list[str]] = {}
    line, counted = first_line, 0
    for offset, key in repeated_keys(text, line_delimited):
        line, counted = line + text.count(b"\n", counted, offset), offset
        repeated.setdefault(line, []).append(key)
    return repeated


def note_repeated_keys(problems: Problems, file: str, repeated: Mapping[int, Sequence[str]]) -> None:
    """Add a problem for each repeated key."""
    for line, keys in repeated.items():
        for key in keys:
            message = f"the key {key!r} occurs twice in one object"
            problems.add("DUPLICATE", message, file=file, line=line, field=key)


def note_fault(
    problems: Problems,
    file: str,
    text: bytes,
    error: Exception,
    *,
    line: int,
    start: int,
    cut_off: bool,
    last_good: int,
) -> None:
    """Add a problem: the record `text`, `start` bytes into the file, cannot be decoded."""
    if problems.is_full:  # skip the slow diagnosis, whose message would not be kept
        problems.add("SYNTAX", "")
        return
    fault = diagnose(text, error, cut_off=cut_off)
    message = fault.message
    if fault.offset is not None:
        message += f", at byte {start + fault.offset} of the file"
    if fault.code == "TRUNCATED":
        message += f"; the last good record is on line {last_good}"
    problems.add(fault.code, message, file=file, line=line, value=text[:60].decode(errors="replace"))
