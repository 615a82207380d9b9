"""The lists that give Sphinx the order of pages."""

from __future__ import annotations

from collections.abc import Iterable


def toctree(pages: Iterable[str], caption: str = "", depth: int = 1) -> str:
    """A hidden list of pages, for the navigation."""
    head = [":hidden:", f":maxdepth: {depth}", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *head, "", *pages, "```", ""])
