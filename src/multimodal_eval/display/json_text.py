"""Blocks as JSON, with identifiers and full precision. A result with a JSON form of its own is printed in that form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import msgspec

from multimodal_eval.core.records import to_json
from multimodal_eval.display.blocks import (
    Block,
    Cell,
    Chart,
    Drawing,
    Figures,
    Finding,
    Folded,
    Gallery,
    Grid,
    Lines,
    Notes,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.figure_tables import without_drawings
from multimodal_eval.display.renderer import Renderer

__all__ = ["JsonRenderer"]

Object = dict[str, Any]


class JsonRenderer(Renderer[Object]):
    """One object per block, with its kind as `block`."""

    def text(self, block: Text) -> Object:
        """Its fields."""
        return _object(block)

    def table(self, block: Table) -> Object:
        """Heads, and rows of texts."""
        kept = without_drawings(block)
        rows = [list(map(_cell, row.cells)) for row in kept.rows]
        return {"block": "table", "title": kept.title, "heads": list(kept.heads), "rows": rows, "caption": kept.caption}

    def figures(self, block: Figures) -> Object:
        """Every field of every figure."""
        return _object(block)

    def grid(self, block: Grid) -> Object:
        """Every field of every figure."""
        return _object(block)

    def finding(self, block: Finding) -> Object:
        """Its fields, and its sentence."""
        return {**_object(block), "sentence": block.sentence}

    def verdict(self, block: Verdict) -> Object:
        """Its fields, and the evidence."""
        return {**_object(block), "evidence": [self.finding(each) for each in block.evidence]}

    def chart(self, block: Chart) -> Object:
        """Its figures."""
        return _object(block)

    def gallery(self, block: Gallery) -> Object:
        """The texts of the samples."""
        cards = [
            {
                "title": card.title,
                "fields": dict(card.fields),
                "scores": dict(card.scores),
                "remarks": list(card.remarks),
            }
            for card in block.cards
        ]
        return {"block": "gallery", "cards": cards}

    def notes(self, block: Notes) -> Object:
        """The lines."""
        return _object(block)

    def folded(self, block: Folded) -> Object:
        """The summary and the blocks."""
        return {"block": "folded", "summary": block.summary, "blocks": [self.block(each) for each in block.blocks]}

    def drawing(self, block: Drawing) -> Object:
        """Nothing but its place."""
        return {"block": "drawing"}

    def page(self, blocks: Sequence[Block]) -> str:
        """A list of the blocks."""
        return to_json([self.block(block) for block in blocks]).decode()


def _cell(cell: Cell) -> str | list[str]:
    if isinstance(cell, Lines):
        return list(cell.lines)
    return cell if isinstance(cell, str) else getattr(cell, "text", "")


def _object(block: Block) -> Object:
    """The fields of a block that are set."""
    content: Object = {"block": type(block).__name__.lower()}
    for each in fields(block):
        value = getattr(block, each.name)
        if value not in ("", (), None, False):
            content[each.name] = msgspec.to_builtins(value)
    return content
