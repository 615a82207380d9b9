"""What is wrong with a JSON text, in words that help: keys given twice, and what the decoder refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from multimodal_eval._native import repeated_keys
from multimodal_eval.data.readers.problems import Problems

# What the decoder raises on bad text.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """A code, a message, and the byte of the text at which it shows (None: not known)."""

    code: str
    message: str
    offset: int | None = None


def diagnose(text: bytes, error: Exception, *, cut_off: bool = False) -> Fault:
    """Name the fault of `text`. `cut_off`: it is the file's last line and lacks its newline."""
    if isinstance(error, RecursionError):
        return Fault("NESTING", "the JSON is nested too deeply")
    try:
        text.decode()
    except UnicodeDecodeError as bad:
        if cut_off and bad.reason == "unexpected end of data":
            return Fault("TRUNCATED", "the file ends in the middle of a character")
        return Fault("ENCODING", f"byte 0x{text[bad.start]:02x} is no valid UTF-8", bad.start)
    said = str(error)
    if "Expected `object`" in said:
        return Fault("TYPE", "a record must be a JSON object")
    if "Integer value out of range" in said:
        return Fault("RANGE", "an integer has more digits than can be read")
    if "Number out of range" in said:
        return Fault("NONFINITE", "a number is too large to be finite")
    surrogate = _lone_surrogate(text)
    if surrogate is not None:
        return Fault("CONTROL_CHAR", "half of a surrogate pair stands alone", surrogate)
    constant = _constant(text)
    if constant:
        return Fault("NONFINITE", f"{constant} is no JSON number", text.find(constant.encode()))
    if cut_off and "truncated" in said:
        return Fault("TRUNCATED", "the file ends in the middle of a record")
    where = re.search(r"\(byte (\d+)\)", said)
    message = re.sub(r" \(byte \d+\)", "", said).replace("Input data was truncated", "the JSON ends too early")
    return Fault("SYNTAX", message, int(where.group(1)) if where else None)


def _lone_surrogate(text: bytes) -> int | None:
    """Where a \\u escape gives half of a pair and the other half does not stand beside it."""
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
    """NaN or ±Infinity where a value should be; a strict parse finds it, strings that say so do not."""
    found: list[str] = []
    with suppress(ValueError, RecursionError):
        json.loads(text, parse_constant=found.append)
    return found[0] if found else None


def repeated_by_line(text: bytes, first_line: int, *, line_delimited: bool) -> dict[int, list[str]]:
    """The keys that an object repeats, by line; the decoder would keep the last value and say nothing."""
    found: dict[int, list[str]] = {}
    for offset, key in repeated_keys(text, line_delimited):
        found.setdefault(first_line + text.count(b"\n", 0, offset), []).append(key)
    return found


def note_repeated_keys(problems: Problems, file: str, repeated: Mapping[int, Sequence[str]]) -> None:
    """Note repeated keys."""
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
    """Note why the record `text`, `start` bytes into the file, could not be decoded."""
    if problems.is_full:  # enough has been said; a long file of nonsense must not take long
        problems.add("SYNTAX", "")
        return
    fault = diagnose(text, error, cut_off=cut_off)
    message = fault.message
    if fault.offset is not None:
        message += f", at byte {start + fault.offset} of the file"
    if fault.code == "TRUNCATED":
        message += f"; the last good record is on line {last_good}"
    problems.add(fault.code, message, file=file, line=line, value=text[:60].decode(errors="replace"))
