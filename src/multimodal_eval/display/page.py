"""Blocks as HTML of a page with the style sheet of report and viewer: classes instead of inline styles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from markupsafe import Markup

from multimodal_eval.core.figure import Bounds, Figure
from multimodal_eval.core.visible import shortened
from multimodal_eval.display.blocks import Block, Drawing, Finding, Folded, Lines, Notes, Row, Table, Text
from multimodal_eval.display.drawings import STYLE, dots
from multimodal_eval.display.figure_tables import between, in_words, number
from multimodal_eval.display.html import HtmlRenderer, content_of, shown, sign_of
from multimodal_eval.display.plain_text import visible
from multimodal_eval.display.scales import Scale

__all__ = ["PageRenderer", "ViewerRenderer", "interval_drawing"]

_LONGEST = 2_000  # characters of a paragraph
_SHORT = 12  # characters of a name that is never broken
_SCREEN, _PAPER = 240, 110  # the width of a drawing in pixels
_SHADES = 4  # of a heat map
_WIDE = 9  # columns, from which a table takes the whole width


class PageRenderer(HtmlRenderer):
    """Elements with classes. On paper, everything is unfolded."""

    region = Markup('class="scroll" data-label="{}"')  # page.js lets the keyboard reach those that scroll

    def __init__(self, *, unfolds: bool = False) -> None:
        self.unfolds = unfolds
        self.width = _PAPER if unfolds else _SCREEN

    def joined(self, blocks: Sequence[Block]) -> Markup:
        """The elements of the blocks; warnings that follow each other are one list."""
        written = []
        for is_warning, same in groupby(blocks, key=lambda block: isinstance(block, Finding) and _warns(block)):
            parts = Markup("").join(map(self.block, same))
            written.append(Markup('<ul class="warnings">{}</ul>').format(parts) if is_warning else parts)
        return Markup("").join(written)

    def text(self, block: Text) -> Markup:
        """A paragraph, or a heading if it is in bold."""
        body = shown(block.text, _LONGEST)
        if block.tone == "strong" and not block.lead:
            return Markup("<h3>{}</h3>").format(body)
        lead = Markup("<strong>{}</strong> ").format(shown(block.lead)) if block.lead else Markup("")
        if block.is_code:
            body = Markup('<span class="signature">{}</span>').format(body)
        kind = Markup(' class="small quiet"') if block.tone == "quiet" else Markup("")
        return Markup("<p{}>{}{}{}</p>").format(kind, sign_of(block.tone, self), lead, body)

    def table(self, block: Table) -> Markup:
        """A table in a region that can scroll, with its title above and the explanation below."""
        drawn = {column for row in block.rows for column, cell in enumerate(row.cells) if isinstance(cell, Drawing)}
        hidden = drawn | {column for column, head in enumerate(block.heads) if head in block.optional}
        most = max((count for row in block.rows for count in _counts(row)), default=0) if block.is_heat_map else None
        heads = Markup("").join(
            Markup('<th scope="col"{}>{}</th>' if head else "<td{}>{}</td>").format(
                _classes("" if column < block.left else "number", "only-wide" if column in hidden else ""), shown(head)
            )
            for column, head in enumerate(block.heads)
        )
        body = Markup("").join(_row(row, block.left, hidden, most) for row in block.rows)
        label = block.title or ", ".join(filter(None, block.heads))
        caption = Markup('<caption class="{}">{}</caption>').format(
            "title" if block.title else "visually-hidden", shown(label)
        )
        table = Markup("<div {}><table{}>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>").format(
            self.region.format(f"Table: {visible(shortened(label, _LONGEST))}"),
            _classes("wide" if len(block.heads) >= _WIDE else ""),
            caption,
            heads,
            body,
        )
        return table + (self.text(Text(block.caption, tone="quiet")) if block.caption else Markup(""))

    def drawing(self, block: Drawing) -> Markup:
        """Its markup."""
        return _drawn(block)

    def finding(self, block: Finding) -> Markup:
        """An item of the list of warnings, with its examples folded; or a paragraph, if it does not warn."""
        code = Markup("<strong>{}</strong> ").format(shown(block.code)) if block.code else Markup("")
        sentence = code + shown(block.sentence, _LONGEST)
        if not _warns(block):
            return Markup("<p>{}</p>").format(sentence)
        why = [*([] if block.figure is None else [in_words(block.figure)]), *block.why.splitlines()]
        below = Markup("").join(Markup('<p class="small">{}</p>').format(shown(line, _LONGEST)) for line in why)
        if block.examples and not self.unfolds:
            listed = Markup(", ").join(self.example(block, each) for each in block.examples)
            below += Markup('<details class="small"><summary>Examples</summary><p>{}</p></details>').format(listed)
        return Markup("<li>{}{}</li>").format(sentence, below)

    def example(self, block: Finding, text: str) -> Markup:
        """An example of a finding."""
        return shown(text)

    def notes(self, block: Notes) -> Markup:
        """A list of warnings."""
        if not block.lines:
            return Markup("")
        lines = Markup("").join(Markup("<li>{}</li>").format(shown(line, _LONGEST)) for line in block.lines)
        return Markup('<ul class="warnings">{}</ul>').format(lines)

    def folded(self, block: Folded) -> Markup:
        """A details element."""
        return Markup("<details{}><summary>{}</summary>{}</details>").format(
            self._open, shown(block.summary), self.joined(block.blocks)
        )

    @property
    def _open(self) -> Markup:
        return Markup(" open") if self.unfolds else Markup("")


class ViewerRenderer(PageRenderer):
    """On pages that change without page.js: the keyboard reaches every table."""

    region = Markup('class="scroll" tabindex="0" role="region" aria-label="{}"')


def interval_drawing(entry: Estimated, bounds: Bounds) -> Markup:
    """A value with its interval within the bounds of its metric; nothing without bounds."""
    low, high = bounds
    if entry.value is None or low is None or high is None or high <= low:
        return Markup("")
    figure = Figure(entry.value, None, entry.low, entry.high, "")
    label = f"{number(figure.value)} [{between(figure)}]"
    return _drawn(dots([figure], Scale(low, high, 2), ["series-1"], label=label))


class Estimated(Protocol):
    """A value with its interval."""

    value: float | None
    low: float | None
    high: float | None


def _warns(block: Finding) -> bool:
    return block.level == "warning"


def _classes(*names: str) -> Markup:
    known = " ".join(filter(None, names))
    return Markup(' class="{}"').format(known) if known else Markup("")


def _drawn(block: Drawing) -> Markup:
    """A drawing with the class of the page; its style would be refused there."""
    return Markup(str(block.markup).replace(f' style="{STYLE}"', ' class="drawing"'))  # made by this package


def _counts(row: Row) -> list[int]:
    return [count for cell in row.cells if (count := _count(cell)) is not None]


def _count(cell: object) -> int | None:
    digits = cell.replace(",", "") if isinstance(cell, str) else ""
    return int(digits) if digits.isdecimal() and digits.isascii() else None


def _row(row: Row, left: int, hidden: set[int], most: int | None) -> Markup:
    cells = []
    for column, cell in enumerate(row.cells):
        is_drawn = isinstance(cell, Drawing)
        names = ["drawn" if is_drawn else "" if column < left else "number"]
        names += ["only-wide"] if column in hidden else []
        names += ["short"] if isinstance(cell, str) and column < left and 0 < len(cell) <= _SHORT else []
        names += [row.tone] if row.tone and column == len(row.cells) - 1 else []
        if most is not None and column >= left and (count := _count(cell)) is not None:
            names += ["heat", f"heat-{1 + min(_SHADES, _SHADES * count // max(most, 1))}" if count else "heat-0"]
        tag = Markup('th scope="row"') if column == 0 and not row.is_axis else Markup("td")
        end = Markup("th" if column == 0 and not row.is_axis else "td")
        inside = (
            _drawn(cell) if isinstance(cell, Drawing) else _lines(cell) if isinstance(cell, Lines) else content_of(cell)
        )
        cells.append(Markup("<{}{}>{}</{}>").format(tag, _classes(*names), inside, end))
    kind = "axis" if row.is_axis else "strong" if row.is_strong else "part" if row.is_quiet else ""
    hides = Markup(' aria-hidden="true"') if row.is_axis else Markup("")
    return Markup("<tr{}{}>{}</tr>").format(_classes(kind), hides, Markup("").join(cells))


def _lines(cell: Lines) -> Markup:
    tones = cell.tones or [""] * len(cell.lines)
    lines = [
        (Markup('<span class="dot {}">●</span> ').format(tone) if tone else Markup(""))
        + (Markup("<strong>{}</strong>").format(shown(line)) if cell.is_strong and place == 0 else shown(line))
        for place, (line, tone) in enumerate(zip(cell.lines, tones, strict=True))
    ]
    return Markup("<br>").join(lines)
