"""Parse metric cards into blocks for a template. Supports only the Markdown that the cards use."""

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
    """A piece of a line; `kind` is `text`, `code` or `strong`."""

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
    """The blocks of a card, in order. A link becomes its text and its URL."""
    return list(_blocks(source.splitlines()))


def inlines(line: str) -> list[Inline]:
    """Split a line at its code, strong text and links."""
    pieces: list[Inline] = []
    end = 0
    for match in _INLINE.finditer(line):
        if match.start() > end:
            pieces.append(Inline("text", line[end : match.start()]))
        code, strong, label, url = match.groups()
        if code is not None:
            pieces.append(Inline("code", code))
        elif strong is not None:
            pieces.append(Inline("strong", strong))
        else:
            pieces.append(Inline("text", label if "://" not in url else f"{label} ({url})"))
        end = match.end()
    if end < len(line):
        pieces.append(Inline("text", line[end:]))
    return pieces


def _blocks(lines: list[str]) -> Iterator[Block]:
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not line.strip():
            continue
        if fence := _FENCE.match(line.strip()):
            inner = []
            while index < len(lines) and not lines[index].strip().startswith(fence[0]):
                inner.append(lines[index])
                index += 1
            index += 1
            yield Block("preformatted", text="\n".join(inner))
        elif heading := _HEADING.fullmatch(line):
            yield Block("heading", inlines(heading[2]), level=len(heading[1]))
        elif item := _ITEM.fullmatch(line):
            yield Block("item", inlines(item[2]), level=len(item[1]) // 2)
        elif line.lstrip().startswith("|"):
            rows = [line]
            while index < len(lines) and lines[index].lstrip().startswith("|"):
                rows.append(lines[index])
                index += 1
            yield Block("table", rows=[_cells(row) for row in rows if not _RULE.fullmatch(row.strip())])
        else:
            paragraph = [line.strip()]
            while index < len(lines) and _continues(lines[index]):
                paragraph.append(lines[index].strip())
                index += 1
            yield Block("paragraph", inlines(" ".join(paragraph)))


def _continues(line: str) -> bool:
    text = line.strip()
    return bool(text) and not (
        _HEADING.fullmatch(line) or _ITEM.fullmatch(line) or _FENCE.match(text) or text.startswith("|")
    )


def _cells(row: str) -> list[list[Inline]]:
    return [inlines(cell.strip()) for cell in row.strip().strip("|").split("|")]
