"""The messages of a conversation, in the formats of common chat logs.

A message is `{"role": "user", "content": "…"}`. Its content may also be a list of parts:

    {"type": "text", "text": "…"}
    {"type": "image_url", "image_url": {"url": "…", "detail": "low"}}     OpenAI, vLLM; also audio_url and video_url
    {"type": "input_audio", "input_audio": {"data": "<base64>", "format": "wav"}}
    {"type": "image", "image": "…"}                                       inspect_ai, transformers; also audio and video
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "<base64>"}}    Anthropic
    {"type": "image", "content": "…"}                                     this package

Base64 becomes a data URI. Other keys of a message or a part are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.field_checks import (
    RefusedError,
    as_mapping,
    checked_media,
    checked_name,
    checked_text,
    checked_value,
    wrong_type,
)
from multimodal_eval.data.readers.problems import Columns

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
