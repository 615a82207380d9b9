"""What is said to a model in several turns: each a list of parts, which are texts, pictures or sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PartType = Literal["text", "image", "audio"]
PART_TYPES: tuple[PartType, ...] = get_args(PartType)


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """A sound: one channel, from -1 to 1, so many samples a second."""

    samples: NDArray[np.float32]
    rate: int


@dataclass(frozen=True, slots=True)
class Part:
    """A text, or a picture or a sound: by the name of its file, or opened (a Pillow image, an `Audio`)."""

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
