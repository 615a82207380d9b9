"""A renderer writes blocks in one language. `rendered` finds the renderer of a `--format`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Generic, TypeVar

from multimodal_eval.display.blocks import (
    Block,
    Chart,
    Drawing,
    Figures,
    Finding,
    Folded,
    Gallery,
    Grid,
    Notes,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.figure_tables import as_figures, figure_table, grid_table

__all__ = ["FORMATS", "Renderer", "rendered", "renderer_of"]

T = TypeVar("T")
# Format -> its renderer, imported when it is used.
FORMATS = {
    "table": "terminal.TerminalRenderer",
    "json": "json_text.JsonRenderer",
    "latex": "latex.LatexRenderer",
    "markdown": "markdown.MarkdownRenderer",
    "html": "html.HtmlRenderer",
}


class Renderer(ABC, Generic[T]):
    """One method per kind of block. Figures, grids and charts have a default in terms of the others."""

    def block(self, block: Block) -> T:
        """The block, by its method."""
        method = getattr(self, type(block).__name__.lower())
        written: T = method(block)
        return written

    @abstractmethod
    def text(self, block: Text) -> T:
        """A paragraph."""

    @abstractmethod
    def table(self, block: Table) -> T:
        """A table of texts, with its title and caption."""

    def figures(self, block: Figures) -> T:
        """Numbers with their intervals."""
        return self.table(figure_table(block))

    def grid(self, block: Grid) -> T:
        """Figures of names by columns."""
        return self.table(grid_table(block))

    @abstractmethod
    def finding(self, block: Finding) -> T:
        """Its code and sentence, why it matters, its figure and its examples."""

    @abstractmethod
    def verdict(self, block: Verdict) -> T:
        """The question, the sentence and the evidence."""

    def chart(self, block: Chart) -> T:
        """The figures of the chart."""
        return self.figures(as_figures(block))

    @abstractmethod
    def gallery(self, block: Gallery) -> T:
        """Samples."""

    @abstractmethod
    def notes(self, block: Notes) -> T:
        """Warnings."""

    @abstractmethod
    def folded(self, block: Folded) -> T:
        """What a reader opens."""

    @abstractmethod
    def drawing(self, block: Drawing) -> T:
        """A drawing, in HTML only."""

    @abstractmethod
    def page(self, blocks: Sequence[Block]) -> str:
        """All blocks as one text."""


def renderer_of(format_: str) -> Renderer[object]:
    """The renderer of a `--format`."""
    module, _, name = FORMATS[format_].partition(".")
    renderer: Renderer[object] = getattr(import_module(f"multimodal_eval.display.{module}"), name)()
    return renderer


def rendered(blocks: Sequence[Block], format_: str) -> str:
    """The blocks as text."""
    return renderer_of(format_).page(blocks)
