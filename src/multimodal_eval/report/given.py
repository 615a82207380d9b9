"""How a page shows what a sample gives beside its texts: choices, a conversation, boxes, a video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.sample import Box
from multimodal_eval.report.media import media_name

MOST_MESSAGES = 50
MOST_BOXES = 100

Choices = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A part of a message: its kind, and its text or the name of its content."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as it is shown."""

    role: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Given:
    """The fields as they are shown; media are named and never opened."""

    choices: list[tuple[str, str]]
    messages: list[ShownMessage]
    more_messages: int
    boxes: list[str] | None  # an empty list says that there is nothing to see
    more_boxes: int
    video: str | None


def given(
    choices: Choices | None, messages: Sequence[Message] | None, boxes: Sequence[Box] | None, video: str | None
) -> Given:
    """The fields of one sample; `video` is the name of its video."""
    said, marked = messages or (), boxes or ()
    return Given(
        lettered(choices or ()),
        [_shown(message) for message in said[:MOST_MESSAGES]],
        max(0, len(said) - MOST_MESSAGES),
        None if boxes is None else [_box(box) for box in marked[:MOST_BOXES]],
        max(0, len(marked) - MOST_BOXES),
        video,
    )


def lettered(choices: Choices) -> list[tuple[str, str]]:
    """The choices with their letters; those of a list are counted from 1."""
    if isinstance(choices, Mapping):
        return list(choices.items())
    return [(str(place), text) for place, text in enumerate(choices, 1)]


def _shown(message: Message) -> ShownMessage:
    lines = [_line(part) for part in message.parts]
    return ShownMessage(message.role, lines + [Line(key, _json(value)) for key, value in message.extra.items()])


def _line(part: MessagePart) -> Line:
    if part.type == "text":
        return Line(part.type, str(part.content))
    if part.content is not None:
        return Line(part.type, media_name(part.content))
    return Line(part.type, _json(part.extra) if part.extra else "")


def _box(box: Box) -> str:
    """left, top, right, bottom, with the label before them and the score behind them."""
    edges = ", ".join(f"{edge:g}" for edge in box.box)
    label = "" if box.label is None else f"{box.label}: "
    return f"{label}{edges}" + ("" if box.score is None else f" (score {box.score:g})")


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
