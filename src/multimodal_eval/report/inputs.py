"""How a page shows the choices, the conversation, the boxes and the video of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.sample import Box
from multimodal_eval.report.media import media_name

MAX_MESSAGES = 50
MAX_BOXES = 100

Choices = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A part of a message: its kind, and its text or the name of its content."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message, ready to be shown."""

    role: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Choices, conversation, boxes and video of a sample. Media are named and never opened."""

    choices: list[tuple[str, str]]
    messages: list[ShownMessage]
    more_messages: int
    boxes: list[str] | None  # an empty list states that there are no boxes
    more_boxes: int
    video: str | None


def shown_inputs(
    choices: Choices | None, messages: Sequence[Message] | None, boxes: Sequence[Box] | None, video: str | None
) -> Inputs:
    """The inputs of one sample; `video` is the name of its video."""
    messages = messages or ()
    return Inputs(
        lettered(choices or ()),
        [_shown(message) for message in messages[:MAX_MESSAGES]],
        max(0, len(messages) - MAX_MESSAGES),
        None if boxes is None else [_box(box) for box in boxes[:MAX_BOXES]],
        max(0, len(boxes or ()) - MAX_BOXES),
        video,
    )


def lettered(choices: Choices) -> list[tuple[str, str]]:
    """The choices with their letters; the choices of a list are numbered from 1."""
    if isinstance(choices, Mapping):
        return list(choices.items())
    return [(str(number), text) for number, text in enumerate(choices, 1)]


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
    """The label, then left, top, right and bottom, then the score."""
    edges = ", ".join(f"{edge:g}" for edge in box.box)
    label = "" if box.label is None else f"{box.label}: "
    return f"{label}{edges}" + ("" if box.score is None else f" (score {box.score:g})")


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
