"""The input of a sample in a log of inspect_ai: messages with parts, and media that are attachments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from multimodal_eval.data.logs.loose_json import loosely
from multimodal_eval.data.readers.json_file import DECODE_ERRORS
from multimodal_eval.data.readers.problems import Columns

__all__ = ["attachments_of", "conversation", "texts"]

_ATTACHMENT = "attachment://"
_MEDIA = ("image", "audio", "video")


class _Attachments(msgspec.Struct):
    attachments: dict[str, str] = {}


_ATTACHED = msgspec.json.Decoder(_Attachments)


def texts(content: list[Any]) -> Iterator[str]:
    """The texts of the parts of a message."""
    for part in content:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            yield part["text"]


def conversation(items: list[Any], resolve: Callable[[str], str]) -> Columns:
    """The question (what the last user message says), the media, and the messages if there are several."""
    messages: list[Columns] = []
    media: dict[str, list[str]] = {kind: [] for kind in _MEDIA}
    question = None
    for item in items:
        if not isinstance(item, dict):
            continue
        role, content = item.get("role"), item.get("content")
        if isinstance(content, list):
            content = [_part(part, media, resolve) for part in content if isinstance(part, dict | str)]
            text = "\n".join(texts(content))
        else:
            content = text = resolve(content) if isinstance(content, str) else ""
        if role == "user":
            question = text or question
        if isinstance(role, str) and role and (content or content == ""):
            messages.append({"role": role, "content": content})
    images = media["image"]
    return {
        "question": question,
        "image": images[0] if len(images) == 1 else None,
        "images": images if len(images) > 1 else None,
        "audio": media["audio"][0] if media["audio"] else None,
        "video": media["video"][0] if media["video"] else None,
        "messages": messages if len(messages) > 1 else None,
    }


def _part(part: dict[str, Any] | str, media: dict[str, list[str]], resolve: Callable[[str], str]) -> Columns | str:
    """A part of a message. Media are kept apart, and a part without content takes their place."""
    if isinstance(part, str):
        return resolve(part)
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        return {"type": "text", "text": resolve(text) if isinstance(text, str) else ""}
    source = part.get(kind) if isinstance(kind, str) and kind in _MEDIA else None
    if isinstance(source, str) and isinstance(kind, str):
        media[kind].append(resolve(source))
        return {"type": kind}
    return {"type": kind if isinstance(kind, str) and kind else "other"}


def attachments_of(text: bytes) -> Callable[[str], str]:
    """A function that replaces a reference to an attachment by its content."""
    attached: dict[str, str] | None = None

    def resolve(value: str) -> str:
        nonlocal attached
        if not value.startswith(_ATTACHMENT):
            return value
        if attached is None:
            try:
                attached = _ATTACHED.decode(text).attachments
            except DECODE_ERRORS:
                attached = _loose_attachments(text)
        return attached.get(value.removeprefix(_ATTACHMENT), value)

    return resolve


def _loose_attachments(text: bytes) -> dict[str, str]:
    content = loosely(text)
    values = content.get("attachments") if isinstance(content, dict) else None
    return {key: value for key, value in values.items() if isinstance(value, str)} if isinstance(values, dict) else {}
