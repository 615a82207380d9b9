"""Conversations: messages as in a file, and turns as input of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Audio", "Message", "MessagePart", "Part", "PartType", "Turn"]

PartType = Literal["text", "image", "audio"]
PART_TYPES: tuple[PartType, ...] = get_args(PartType)


class Audio(msgspec.Struct, frozen=True, eq=False):
    """Mono audio: samples in [-1, 1], `rate` of them per second."""

    samples: NDArray[np.float32]
    rate: int


class Part(msgspec.Struct, frozen=True):
    """Text, an image or audio; media by file name, or opened (a Pillow image, an `Audio`)."""

    type: PartType
    content: Any


class Turn(msgspec.Struct, frozen=True):
    """Everything that one side says before the other replies."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text parts, one per line."""
        return "\n".join(part.content for part in self.parts if part.type == "text")


class MessagePart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a message: `text`, `image`, `audio` or `video`, or another type whose values are all in `extra`.

    The content of an image, audio or video is a path, a URL, a data URI, bytes or a Pillow image, and is never opened
    here. It is None if the part is a placeholder for an item of the sample's `images`, `audio` or `video`.
    """

    type: str
    content: object = None
    extra: dict[str, object] = msgspec.field(default_factory=dict)


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation. `content` is a string or a list of parts; `extra` holds the other keys."""

    role: str
    content: str | list[MessagePart] | None = None
    extra: dict[str, object] = msgspec.field(default_factory=dict)

    @property
    def parts(self) -> list[MessagePart]:
        """The content as parts; a string is a single part."""
        if isinstance(self.content, str):
            return [MessagePart("text", self.content)]
        return list(self.content or ())

    @property
    def text(self) -> str:
        """The text parts, one per line."""
        return "\n".join(str(part.content) for part in self.parts if part.type == "text")
