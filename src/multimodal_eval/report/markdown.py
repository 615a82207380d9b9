"""Metric cards as blocks that a template can show: the little of Markdown that they are written in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"( *)[-*] +(.*)")
_FENCE = re.compile(r"```|\$\$")
_RULE = re.compile(r"\|?[ :|-]+\|?")
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Inline:
    """A stretch of a line: `text`, `code` or `strong`."""

    kind: str
    text: str


@dataclass(slots=True)
class Block:
    """A heading (its depth in `level`), a paragraph, a list item (its indentation), a table or preformatted text."""

    kind: str
    inlines: list[Inline] = field(default_factory=list)
    level: int = 0
    text: str = ""
    rows: list[list[list[Inline]]] = field(default_factory=list)


def blocks(source: str) -> list[Block]:
    """The blocks of a card, in order. A link becomes its text and its address."""
    return list(_blocks(source.splitlines()))


def inlines(line: str) -> list[Inline]:
    """A line cut at its code, its strong words and its links."""
    found: list[Inline] = []
    end = 0
    for mark in _INLINE.finditer(line):
        if mark.start() > end:
            found.append(Inline("text", line[end : mark.start()]))
        code, strong, label, address = mark.groups()
        if code is not None:
            found.append(Inline("code", code))
        elif strong is not None:
            found.append(Inline("strong", strong))
        else:
            found.append(Inline("text", label if "://" not in address else f"{label} ({address})"))
        end = mark.end()
    if end < len(line):
        found.append(Inline("text", line[end:]))
    return found


def _blocks(lines: list[str]) -> Iterator[Block]:
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if not line.strip():
            continue
        if fence := _FENCE.match(line.strip()):
            inner = []
            while place < len(lines) and not lines[place].strip().startswith(fence[0]):
                inner.append(lines[place])
                place += 1
            place += 1
            yield Block("preformatted", text="\n".join(inner))
        elif heading := _HEADING.fullmatch(line):
            yield Block("heading", inlines(heading[2]), level=len(heading[1]))
        elif item := _ITEM.fullmatch(line):
            yield Block("item", inlines(item[2]), level=len(item[1]) // 2)
        elif line.lstrip().startswith("|"):
            rows = [line]
            while place < len(lines) and lines[place].lstrip().startswith("|"):
                rows.append(lines[place])
                place += 1
            yield Block("table", rows=[_cells(row) for row in rows if not _RULE.fullmatch(row.strip())])
        else:
            paragraph = [line.strip()]
            while place < len(lines) and _continues(lines[place]):
                paragraph.append(lines[place].strip())
                place += 1
            yield Block("paragraph", inlines(" ".join(paragraph)))


def _continues(line: str) -> bool:
    text = line.strip()
    return bool(text) and not (
        _HEADING.fullmatch(line) or _ITEM.fullmatch(line) or _FENCE.match(text) or text.startswith("|")
    )


def _cells(row: str) -> list[list[Inline]]:
    return [inlines(cell.strip()) for cell in row.strip().strip("|").split("|")]
