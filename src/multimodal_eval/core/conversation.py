"""What is said to a model in several turns: each a list of parts, which are texts, pictures or sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

PartType = Literal["text", "image", "audio"]
PART_TYPES: tuple[PartType, ...] = get_args(PartType)


@dataclass(frozen=True, slots=True)
class Part:
    """A text, or a picture or a sound: by the name of its file, or opened."""

    type: PartType
    content: Any


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side says before the other speaks."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text parts, one a line."""
        return "\n".join(part.content for part in self.parts if part.type == "text")
