"""What a display consists of. Every text is untrusted, and escaped when the blocks are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup

__all__ = ["Block", "Card", "Cell", "Drawing", "Folded", "Gallery", "Lines", "Notes", "Row", "Table", "Text", "Tone"]

Tone = Literal["", "good", "bad", "warning", "quiet", "strong"]


@dataclass(frozen=True)
class Text:
    """A paragraph. `lead` is set in bold in front of it."""

    text: str
    lead: str = ""
    tone: Tone = ""


@dataclass(frozen=True)
class Drawing:
    """SVG or an image made by this package. Plain text leaves it out."""

    markup: Markup


@dataclass(frozen=True)
class Lines:
    """A cell with several lines; `tones` are colours of the drawing beside them."""

    lines: Sequence[str]
    tones: Sequence[str] = ()


Cell = str | Lines | Drawing


@dataclass(frozen=True)
class Row:
    """A row of a table; `is_axis` rows belong to drawings only."""

    cells: Sequence[Cell]
    is_strong: bool = False
    is_axis: bool = False


@dataclass(frozen=True)
class Table:
    """A table; the first `left` columns are names, and the others are aligned to the right."""

    heads: Sequence[str]
    rows: Sequence[Row]
    left: int = 1
    title: str = ""


@dataclass(frozen=True)
class Notes:
    """Warnings, one per line."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Folded:
    """Blocks that a reader opens. Plain text leaves them out."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Card:
    """A sample of a gallery: images, and texts with their names."""

    title: str
    images: Sequence[Drawing] = ()
    fields: Sequence[tuple[str, str]] = ()
    scores: Sequence[tuple[str, str]] = ()
    remarks: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Gallery:
    """Samples side by side."""

    cards: Sequence[Card]


Block = Text | Table | Notes | Folded | Gallery | Drawing
