"""What each field of a sample takes: one check a field, for a value from a file or from memory."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from math import isfinite
from numbers import Integral
from os import PathLike
from typing import Any

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.metric import is_number
from multimodal_eval.core.sample import FIELDS

MINUS = "Is the minus sign missing?"  # of what ought to be a perplexity or a log-probability
LONGEST_TEXT = 1_000_000  # bytes
LONGEST_DATA_URI = 1 << 27

Check = Callable[[str, Any], Any]


class RefusedError(Exception):
    """A value that a field does not take."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.hint = code, hint


def checked_text(field: str, value: Any) -> str:
    """A text without NUL and half characters, not too long, in NFC; anything else is refused."""
    return value if _is_sound_ascii(field, value, LONGEST_TEXT) else unicodedata.normalize("NFC", value)


def _is_sound_ascii(field: str, value: Any, longest: int) -> bool:
    """Whether a text is ASCII; one that is not sound is refused."""
    if type(value) is not str:
        raise RefusedError("TYPE", f"`{field}` must be text. Got {shorten(value)} instead.")
    if "\0" in value:
        raise RefusedError("CONTROL_CHAR", f"`{field}` holds a NUL character, at offset {value.index(chr(0))}")
    ascii_only = value.isascii()
    try:
        size = len(value) if ascii_only else len(value.encode())
    except UnicodeEncodeError as lone:
        message = f"`{field}` holds half of a surrogate pair, at offset {lone.start}"
        raise RefusedError("CONTROL_CHAR", message) from None
    if size > longest:
        raise RefusedError("TOO_LONG", f"`{field}` is longer than {longest:,} bytes")
    return ascii_only


def checked_name(field: str, value: Any) -> str:
    """Ids and groups: text or whole numbers (NumPy's too), kept as text."""
    if type(value) is not str and isinstance(value, Integral) and not isinstance(value, bool):
        return str(value)
    text = checked_text(field, value)
    if not text or text.isspace():
        raise RefusedError("TYPE", f"`{field}` is blank")
    return text


def _reference_text(field: str, value: Any) -> str:
    text = checked_text(field, value)
    if not text or text.isspace():
        raise RefusedError(
            "EMPTY_REFERENCE",
            f"`{field}` holds a blank text",
            "Leave it out, or give null, where there is none.",
        )
    return text


def checked_references(field: str, value: Any) -> list[str]:
    """A list of texts, none of them blank; anything else is refused."""
    if type(value) is not list and not isinstance(value, tuple):
        raise RefusedError("TYPE", f"`{field}` must be a list of strings. Got {shorten(value)} instead.")
    if not value:
        hint = "Leave it out, or give null, where there is none."
        raise RefusedError("NO_REFERENCE", f"`{field}` is an empty list", hint)
    if set(map(type, value)) != {str}:
        raise RefusedError("TYPE", f"`{field}` must be a list of strings. Got {shorten(value)} instead.")
    joined = "".join(value)
    if joined.isascii() and "\0" not in joined and len(joined) <= LONGEST_TEXT and all(map(str.strip, value)):
        return list(value)  # sound, every one of them: the long way is for those that are not ASCII, and for faults
    return [_reference_text(field, item) for item in value]


def _number(field: str, value: Any) -> float:
    if not is_number(value):
        raise RefusedError("TYPE", f"`{field}` must be a number. Got {shorten(value)} instead.")
    try:
        number = float(value)
    except OverflowError:
        raise RefusedError("NONFINITE", f"`{field}` is too large to be finite") from None
    if not isfinite(number):
        raise RefusedError("NONFINITE", f"`{field}` is {value}")
    return number


def checked_perplexity(field: str, value: Any) -> float:
    """A finite number of at least 1; anything else is refused."""
    number = _number(field, value)
    if number < 1:
        raise RefusedError("RANGE", f"`{field}` must be at least 1. Got {number!r}.", MINUS)
    return number


def _logprobs(field: str, value: Any) -> list[float]:
    if not isinstance(value, list | tuple):
        raise RefusedError("TYPE", f"`logprobs` must be a list of numbers. Got {shorten(value)} instead.")
    numbers = [_number(f"logprobs[{index}]", item) for index, item in enumerate(value)]
    for index, number in enumerate(numbers):
        if number > 0:
            raise RefusedError("RANGE", f"logprobs[{index}] is above 0: {number!r}", MINUS)
    return numbers


def _boolean(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedError("TYPE", f"`{field}` must be true or false. Got {shorten(value)} instead.")
    return value


def checked_mapping(field: str, value: Any) -> dict[str, Any]:
    """An object whose values are sound; anything else is refused."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise RefusedError("TYPE", f"`{field}` must be an object. Got {shorten(value)} instead.")
    return {key: checked_value(field, item) for key, item in value.items()}


def _annotations(field: str, value: Any) -> dict[str, Any]:
    """Annotator -> label; of a list, the first is the first annotator's; a map of Parquet is a list of pairs."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        if len(dict(value)) < len(value):
            raise RefusedError("DUPLICATE", f"`{field}` names an annotator twice: {shorten(value)}")
        value = dict(value)
    elif isinstance(value, list | tuple):
        value = {str(place): item for place, item in enumerate(value, 1)}
    return checked_mapping(field, value)


def checked_value(field: str, value: Any) -> Any:
    """A value of any type: texts in it are checked and normalised, numbers must be finite."""
    if type(value) is str:
        return checked_text(field, value)
    if isinstance(value, Mapping):
        return {checked_text(field, str(key)): checked_value(field, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [checked_value(field, item) for item in value]
    if is_number(value):
        if not isfinite(value):
            raise RefusedError("NONFINITE", f"`{field}` is {value}")
        return value if type(value) in (int, float) else value.item() if hasattr(value, "item") else value
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def _media(field: str, value: Any) -> Any:
    """Text (path, URL, data URI), bytes, a picture in memory, or the {bytes, path} pair of dataset files."""
    if isinstance(value, PathLike):
        value = str(value)
    if isinstance(value, Mapping) and value.keys() <= {"bytes", "path"}:
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, bytes) or hasattr(value, "save"):
        return value
    # A path is kept letter by letter: in another normal form it would name another file.
    is_data_uri = isinstance(value, str) and value[:5].lower() == "data:"
    _is_sound_ascii(field, value, LONGEST_DATA_URI if is_data_uri else LONGEST_TEXT)
    return value


CHECKS: dict[str, Check] = {
    **dict.fromkeys(FIELDS, checked_text),
    **dict.fromkeys(("id", "group"), checked_name),
    **dict.fromkeys(("expected_answer", "caption"), _reference_text),
    **dict.fromkeys(("image", "audio"), _media),
    "annotations": _annotations,
    "metadata": checked_mapping,
    "references": checked_references,
    "relevant": _boolean,
    "perplexity": checked_perplexity,
    "logprobs": _logprobs,
}

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def meaning_of_cell(field: str, cell: str, *, alone: bool) -> Any:
    """What a CSV cell means for a field. An empty cell is null, except for the answer, where it is blank."""
    if not cell and field != "generated_answer":
        return None
    if field == "references":
        return json_cell(field, cell) if alone and cell.lstrip().startswith("[") else [cell]
    if field in ("annotations", "metadata", "logprobs"):
        return json_cell(field, cell)
    if field == "perplexity":
        try:
            return float(cell)
        except ValueError:
            return cell
    if field == "relevant":
        return _TRUTH.get(cell.strip().lower(), cell)
    return cell


def json_cell(field: str, cell: str) -> Any:
    """What a cell says that holds JSON."""
    try:
        return msgspec.json.decode(cell.encode())
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise RefusedError("SYNTAX", f"`{field}` must be JSON here. Got {shorten(cell)} instead: {error}") from None
