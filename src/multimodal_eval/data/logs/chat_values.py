"""Values as chat logs write them: contents of messages, stringified lists, and conversations."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["as_text", "conversation", "python_texts", "reasoning_of", "text_of"]

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
