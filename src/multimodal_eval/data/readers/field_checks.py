"""One check per field of a sample, for values from files and from memory."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf, isfinite
from numbers import Integral
from os import PathLike
from typing import Any, cast

import msgspec

from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.errors import did_you_mean, shorten
from multimodal_eval.core.metric import is_number
from multimodal_eval.core.sample import Box
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.problems import Columns

MINUS = "Is the minus sign missing?"
LONGEST_TEXT = 1_000_000  # bytes
LONGEST_DATA_URI = 1 << 27

Check = Callable[[str, Any], Any]


class RefusedError(Exception):
    """A value that a field does not accept."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.hint = code, hint


def checked_text(field: str, value: Any) -> str:
    """Text in NFC; NUL characters, lone surrogates and text that is too long are refused."""
    if type(value) is str and value.isascii() and "\0" not in value and len(value) <= LONGEST_TEXT:
        return value  # the usual case, without a further call
    return value if _is_ascii(field, value, LONGEST_TEXT) else unicodedata.normalize("NFC", value)


def _are_plain(values: Collection[Any]) -> bool:
    """Whether all are valid ASCII texts, all together: the fast path."""
    if set(map(type, values)) != {str}:
        return False
    joined = "".join(values)
    return joined.isascii() and "\0" not in joined and len(joined) <= LONGEST_TEXT


def _is_ascii(field: str, value: Any, longest: int) -> bool:
    """Whether the text is ASCII; invalid text is refused."""
    if type(value) is not str:
        raise RefusedError("TYPE", f"`{field}` must be text. Got {shorten(value)} instead.")
    if "\0" in value:
        raise RefusedError("CONTROL_CHAR", f"`{field}` contains a NUL character, at offset {value.index(chr(0))}")
    ascii_only = value.isascii()
    try:
        size = len(value) if ascii_only else len(value.encode())
    except UnicodeEncodeError as lone:
        message = f"`{field}` contains half of a surrogate pair, at offset {lone.start}"
        raise RefusedError("CONTROL_CHAR", message) from None
    if size > longest:
        raise RefusedError("TOO_LONG", f"`{field}` is longer than {longest:,} bytes")
    return ascii_only


def checked_name(field: str, value: Any) -> str:
    """Ids and groups: text or integers (including NumPy's), kept as text."""
    if type(value) is not str and isinstance(value, Integral) and not isinstance(value, bool):
        return str(value)
    text = checked_text(field, value)
    if not text or text.isspace():
        raise RefusedError("TYPE", f"`{field}` is blank")
    return text


_BLANK_REFERENCES = ContextVar("blank_references", default=False)


@contextmanager
def taking_blank_references(taken: bool) -> Iterator[None]:
    """Accept blank references in everything that is read inside: the transcript of silence."""
    token = _BLANK_REFERENCES.set(taken)
    try:
        yield
    finally:
        _BLANK_REFERENCES.reset(token)


def checked_reference(field: str, value: Any) -> str:
    """Text that is not blank, unless it may be."""
    text = checked_text(field, value)
    if (not text or text.isspace()) and not _BLANK_REFERENCES.get():
        raise RefusedError(
            "EMPTY_REFERENCE",
            f"`{field}` contains blank text",
            "Leave it out, or use null, if there is none.",
        )
    return text


def checked_expected(field: str, value: Any) -> str:
    """Text that is not blank, or a whole number, such as the position of a choice."""
    if type(value) is not str and isinstance(value, Integral) and not isinstance(value, bool):
        return str(value)
    return checked_reference(field, value)


def checked_references(field: str, value: Any) -> list[str]:
    """A list of strings, none of them blank, or one string; anything else is refused."""
    if type(value) is str:
        return [checked_reference(field, value)]
    if type(value) is not list and not isinstance(value, tuple):
        raise RefusedError("TYPE", f"`{field}` must be a list of strings. Got {shorten(value)} instead.")
    if not value:
        hint = "Leave it out, or use null, if there is none."
        raise RefusedError("NO_REFERENCE", f"`{field}` is an empty list", hint)
    if _are_plain(value) and all(map(str.strip, value)):
        return list(value)
    if set(map(type, value)) != {str}:
        raise RefusedError("TYPE", f"`{field}` must be a list of strings. Got {shorten(value)} instead.")
    return [checked_reference(field, item) for item in value]


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


def checked_logprobs(field: str, value: Any) -> list[float]:
    """A list of finite numbers, none above 0."""
    if not isinstance(value, list | tuple):
        raise RefusedError("TYPE", f"`logprobs` must be a list of numbers. Got {shorten(value)} instead.")
    numbers = [_number(f"logprobs[{index}]", item) for index, item in enumerate(value)]
    for index, number in enumerate(numbers):
        if number > 0:
            raise RefusedError("RANGE", f"logprobs[{index}] is above 0: {number!r}", MINUS)
    return numbers


def checked_boolean(field: str, value: Any) -> bool:
    """A boolean; values such as 1 or "true" are refused."""
    if not isinstance(value, bool):
        raise RefusedError("TYPE", f"`{field}` must be true or false. Got {shorten(value)} instead.")
    return value


def as_mapping(field: str, value: Any, *, twice: str = "has a key twice") -> Any:
    """A Parquet map, which is read as a list of pairs, as a mapping; other values unchanged."""
    if not (isinstance(value, list) and value and all(isinstance(item, tuple) for item in value)):
        return value
    try:
        mapping = dict(value)
    except (TypeError, ValueError):  # keys that are lists, or items that are not pairs
        raise RefusedError("TYPE", f"`{field}` must be an object. Got {shorten(value)} instead.") from None
    if len(mapping) < len(value):
        raise RefusedError("DUPLICATE", f"`{field}` {twice}: {shorten(value)}")
    return mapping


def checked_mapping(field: str, value: Any) -> Columns:
    """An object with valid values; anything else is refused."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise RefusedError("TYPE", f"`{field}` must be an object. Got {shorten(value)} instead.")
    return {key: checked_value(field, item) for key, item in value.items()}


def checked_annotations(field: str, value: Any) -> Columns:
    """Annotator -> label; a list is numbered from 1."""
    value = as_mapping(field, value, twice="names an annotator twice")
    if isinstance(value, list | tuple):
        value = {str(place): item for place, item in enumerate(value, 1)}
    return checked_mapping(field, value)


def checked_value(field: str, value: Any, depth: int = 0) -> Any:
    """A value of any type: text in it is checked and normalised, and numbers must be finite."""
    kind = type(value)
    if kind is str:
        return checked_text(field, value)
    if depth > limits.DEEPEST:
        raise _too_deep(field)
    if kind is list:
        return [checked_value(field, item, depth + 1) for item in value]
    if kind is bool or value is None:
        return value
    if isinstance(value, Mapping):
        return {checked_text(field, str(key)): checked_value(field, item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [checked_value(field, item, depth + 1) for item in value]
    if is_number(value):
        _refuse_nonfinite(field, value)
        return value if type(value) in (int, float) else value.item() if hasattr(value, "item") else value
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def _too_deep(field: str) -> RefusedError:
    return RefusedError("NESTING", f"`{field}` is nested deeper than {limits.DEEPEST} levels")


def _refuse_nonfinite(field: str, value: Any) -> None:
    try:
        if isfinite(value):
            return
    except OverflowError:  # an integer
        raise RefusedError("NONFINITE", f"`{field}` is too large to be finite") from None
    raise RefusedError("NONFINITE", f"`{field}` is {value}")


def checked_media(field: str, value: Any) -> Any:
    """Text (path, URL, data URI), bytes, an image in memory, or the {bytes, path} pair of dataset files."""
    if isinstance(value, PathLike):
        value = str(value)
    if isinstance(value, Mapping) and value.keys() <= {"bytes", "path"}:
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, bytes) or hasattr(value, "save"):
        return value
    # A path is not normalised: another normal form would name another file.
    is_data_uri = isinstance(value, str) and value[:5].lower() == "data:"
    _is_ascii(field, value, LONGEST_DATA_URI if is_data_uri else LONGEST_TEXT)
    return value


_CHOICES = "a list of strings or an object letter -> text"
_BOX_KEYS = ("box", "label", "score")
_LARGEST_EPOCH = 2**63 - 1


def wrong_type(field: str, expected: str, value: object) -> RefusedError:
    """A value of the wrong type: the column may hold something other than the field."""
    message = f"`{field}` must be {expected}. Got {shorten(value)} instead."
    return RefusedError("TYPE", message, hint_to_keep(field))


def hint_to_keep(field: str) -> str:
    """How to keep a column that has a field's name but holds something else."""
    return f"If the column holds something else, --map {field}= keeps it as metadata."


def checked_choices(field: str, value: Any) -> list[str] | dict[str, str] | None:
    """The options of a question; letters with null text are left out, and an empty result is null."""
    if type(value) is str:
        written = written_choices(value)
        value = value if written is None else written
    value = as_mapping(field, value)
    if isinstance(value, Mapping):
        texts = {key: text for key, text in value.items() if text is not None}
        if _are_plain([*texts, *texts.values()]):
            return texts or None
        if not all(isinstance(item, str) for pair in texts.items() for item in pair):
            raise wrong_type(field, _CHOICES, value)
        return {checked_text(field, key): checked_text(field, text) for key, text in texts.items()} or None
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise wrong_type(field, _CHOICES, value)
    return [checked_text(field, text) for text in value] or None


def written_choices(text: str) -> list[Any] | dict[str, Any] | None:
    """Choices written as text: JSON, or a list or dict as Python prints it. None if the text is neither."""
    if not text.lstrip().startswith(("[", "{")) or len(text) > LONGEST_TEXT:
        return None
    with suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return cast("list[Any] | dict[str, Any]", msgspec.json.decode(text.encode()))
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text.strip())
        return value if isinstance(value, list | dict) else None
    return None


def checked_images(field: str, value: Any) -> list[Any] | None:
    """A list of images, each like `image`; an empty list is null."""
    if not isinstance(value, list | tuple):
        raise wrong_type(field, "a list of images", value)
    return [checked_media(f"{field}[{place}]", item) for place, item in enumerate(value)] or None


def checked_video(field: str, value: Any) -> str | bytes:
    """A path, a URL, a data URI or bytes, unchanged."""
    pair = isinstance(value, Mapping) and value and value.keys() <= {"bytes", "path"}
    if not pair and not isinstance(value, str | bytes | bytearray | memoryview | PathLike):
        raise wrong_type(field, "a path, a URL, a data URI or bytes", value)
    video: str | bytes = checked_media(field, value)
    return video


def checked_boxes(field: str, value: Any) -> list[Box]:
    """A list of boxes: four numbers each, or objects with `box` and optionally `label` and `score`."""
    if not isinstance(value, list | tuple):
        raise wrong_type(field, "a list of boxes", value)
    return [_box(f"{field}[{place}]", item) for place, item in enumerate(value)]


def _box(field: str, value: Any) -> Box:
    if isinstance(value, Box):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        return Box(_edges(field, value))
    unknown = [key for key in value if key not in _BOX_KEYS]
    if unknown:
        raise RefusedError("TYPE", f"`{field}` has a key {unknown[0]!r}.{did_you_mean(unknown[0], _BOX_KEYS)}")
    label, score = value.get("label"), value.get("score")
    return Box(
        _edges(f"{field}.box", value.get("box")),
        None if label is None else checked_text(f"{field}.label", label),
        None if score is None else _number(f"{field}.score", score),
    )


def _edges(field: str, value: Any) -> tuple[float, float, float, float]:
    if not isinstance(value, list | tuple) or len(value) != 4:
        message = f"`{field}` must be four numbers: left, top, right, bottom. Got {shorten(value)} instead."
        raise RefusedError("TYPE", message)
    left, top, right, bottom = (_number(field, edge) for edge in value)
    if right < left or bottom < top:
        message = f"`{field}` ends before it starts: left {left:g}, top {top:g}, right {right:g}, bottom {bottom:g}."
        raise RefusedError("RANGE", message, "Are the last two its width and height? Add left and top to them.")
    return left, top, right, bottom


def checked_epoch(field: str, value: Any) -> int:
    """A whole number, 0 or more."""
    if not is_number(value) or value != value or value in (inf, -inf) or value != int(value):
        raise wrong_type(field, "a whole number", value)
    number = int(value)
    if not 0 <= number <= _LARGEST_EPOCH:
        raise RefusedError("RANGE", f"`{field}` must be a whole number, 0 or more. Got {shorten(number)} instead.")
    return number


def json_cell(field: str, cell: str, hint: str | None = None) -> Any:
    """The decoded content of a cell with JSON."""
    try:
        return msgspec.json.decode(cell.encode())
    except RecursionError:
        raise _too_deep(field) from None
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        message = f"`{field}` must be JSON here. Got {shorten(cell)} instead: {error}"
        raise RefusedError("SYNTAX", message, hint) from None


# The messages of a conversation, in the formats of common chat logs.
#
# A message is `{"role": "user", "content": "…"}`. Its content may also be a list of parts:
#
#     {"type": "text", "text": "…"}
#     {"type": "image_url", "image_url": {"url": "…", "detail": "low"}}     OpenAI, vLLM; also audio_url and video_url
#     {"type": "input_audio", "input_audio": {"data": "<base64>", "format": "wav"}}
#     {"type": "image", "image": "…"}                                       inspect_ai, transformers; audio and video
#     {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "<base64>"}}    Anthropic
#     {"type": "image", "content": "…"}                                     this package
#
# Base64 becomes a data URI. Other keys of a message or a part are kept in `extra`.

_KINDS = {
    **dict.fromkeys(("text", "input_text", "output_text"), "text"),
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
}
_MEDIA_KEYS = ("url", "path", "source")  # in addition to `content` and the name of the type


def checked_messages(field: str, value: Any) -> list[Message] | None:
    """A list of messages; an empty list is null."""
    if not isinstance(value, list | tuple):
        raise wrong_type(field, "a list of messages", value)
    return [_message(f"{field}[{place}]", item) for place, item in enumerate(value)] or None


def _message(field: str, value: Any) -> Message:
    items = _present(field, value, "a message with `role` and `content`")
    if "role" not in items:
        raise RefusedError("TYPE", f"`{field}` has no `role`. Got {shorten(value)} instead.")
    role, content = checked_name(f"{field}.role", items.pop("role")), items.pop("content", None)
    extra = _extra(field, items)
    if content is None:
        if not extra:
            raise RefusedError("TYPE", f"`{field}` has no `content`. Got {shorten(value)} instead.")
        return Message(role, None, extra)
    if isinstance(content, list | tuple):
        return Message(role, [_part(f"{field}.content[{place}]", part) for place, part in enumerate(content)], extra)
    if not isinstance(content, str):
        message = f"`{field}.content` must be text or a list of parts. Got {shorten(content)} instead."
        raise RefusedError("TYPE", message)
    return Message(role, checked_text(f"{field}.content", content), extra)


def _part(field: str, value: Any) -> MessagePart:
    if isinstance(value, str):
        return MessagePart("text", checked_text(field, value))
    items = _present(field, value, "text or a part with a `type`")
    name = items.pop("type", None)
    if not isinstance(name, str) or not name:
        raise RefusedError("TYPE", f"`{field}` has no `type`. Got {shorten(value)} instead.")
    kind = _KINDS.get(name)
    if kind is None:
        return MessagePart(checked_text(field, name), None, _extra(field, items))
    if kind == "text":
        key = "text" if "text" in items else "content"
        return MessagePart(kind, checked_text(f"{field}.{key}", items.pop(key, None)), _extra(field, items))
    key = next((key for key in ("content", name, kind, *_MEDIA_KEYS) if key in items), "")
    content, others = _media(f"{field}.{key}", kind, items.pop(key)) if key else (None, {})
    return MessagePart(kind, content, others | _extra(field, items))


def _media(field: str, kind: str, value: Any) -> tuple[object, Columns]:
    """The media of a part, and its other keys."""
    value = as_mapping(field, value)
    if not isinstance(value, Mapping) or value.keys() <= {"bytes", "path"}:
        return checked_media(field, value), {}
    items = {key: item for key, item in value.items() if item is not None and key != "type"}
    if "url" in items:
        return checked_media(f"{field}.url", items.pop("url")), _extra(field, items)
    if not isinstance(items.get("data"), str):
        raise RefusedError("TYPE", f"`{field}` must have `url` or `data`. Got {shorten(value)} instead.")
    form, data = items.pop("format", None), items.pop("data")
    media_type = items.pop("media_type", None) or (f"{kind}/{form}" if form else "application/octet-stream")
    uri = data if data[:5].lower() == "data:" else f"data:{media_type};base64,{data}"
    return checked_media(field, uri), _extra(field, items)


def _present(field: str, value: Any, expected: str) -> Columns:
    """The items of an object that are not null; in Parquet, missing keys of a struct are null."""
    if isinstance(value, Message | MessagePart):
        value = msgspec.structs.asdict(value)
    value = as_mapping(field, value)
    if not isinstance(value, Mapping):
        raise RefusedError("TYPE", f"`{field}` must be {expected}. Got {shorten(value)} instead.")
    return {str(key): item for key, item in value.items() if item is not None}


def _extra(field: str, items: Columns) -> Columns:
    """The remaining keys, including those below the key `extra`, which this package writes."""
    inner = items.get("extra")
    if isinstance(inner, Mapping):
        items = {**{key: item for key, item in items.items() if key != "extra"}, **inner}
    return {checked_text(field, key): checked_value(f"{field}.{key}", item) for key, item in items.items()}
