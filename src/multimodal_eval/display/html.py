"""Blocks as HTML: inline styles, no script, no class, no address of another server. For notebooks and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from markupsafe import Markup, escape

from multimodal_eval.core.figure import Figure
from multimodal_eval.core.visible import shortened
from multimodal_eval.display.blocks import (
    Block,
    Card,
    Cell,
    Chart,
    Drawing,
    Figures,
    Finding,
    Folded,
    Gallery,
    Grid,
    GridCell,
    Lines,
    Notes,
    Row,
    Strong,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.drawings import LINE, RAISED, WIDTH, axis, chart, colour, dots, scale_of, sides
from multimodal_eval.display.figure_tables import (
    ShownRow,
    as_figures,
    figure_table,
    grid_caption,
    grid_lines,
    in_words,
    shown_rows,
    strengths,
)
from multimodal_eval.display.plain_text import visible
from multimodal_eval.display.renderer import Renderer
from multimodal_eval.display.scales import Scale, nice_scale

__all__ = ["HtmlRenderer", "content_of", "shown", "sign_of"]

_LONGEST_CELL = 400  # characters
_LONGEST = 2_000
_CELL = f"padding:3px 6px;border:0;border-bottom:1px solid {LINE};vertical-align:middle;white-space:normal"
_QUIET = "opacity:0.75;font-size:90%"
_NARROWEST = 24  # characters of a column of names
_WRAP = "overflow-wrap:anywhere"
_SIGNS = {"good": "▲", "bad": "▼", "warning": "!"}
_UNIT = (0.0, 1.0)


class HtmlRenderer(Renderer[Markup]):
    """Elements with inline styles."""

    width = WIDTH  # of the drawing of a figure, in pixels

    def page(self, blocks: Sequence[Block]) -> str:
        """One element with all blocks."""
        body = self.joined(blocks)
        return str(Markup('<div style="max-width:100%;overflow-x:auto;line-height:1.4">{}</div>').format(body))

    def joined(self, blocks: Sequence[Block]) -> Markup:
        """The elements of the blocks."""
        return Markup("").join(map(self.block, blocks))

    def text(self, block: Text) -> Markup:
        """A paragraph."""
        lead = Markup("<strong>{}</strong> ").format(shown(block.lead)) if block.lead else Markup("")
        body = shown(block.text, _LONGEST)
        if block.is_code:
            body = Markup("<code>{}</code>").format(body)
        if block.tone == "strong":
            body = Markup("<strong>{}</strong>").format(body)
        style = f"margin:4px 0;{_WRAP}" + (f";{_QUIET}" if block.tone == "quiet" else "")
        return Markup('<p style="{}">{}{}{}</p>').format(style, sign_of(block.tone), lead, body)

    def table(self, block: Table) -> Markup:
        """The title, the table and the caption."""
        heads = Markup("").join(_head(text, column < block.left) for column, text in enumerate(block.heads))
        body = Markup("").join(_row(row, block.left) for row in block.rows)
        title = Markup('<p style="margin:8px 0 2px"><strong>{}</strong></p>').format(shown(block.title))
        table = Markup(
            '{}<table style="border-collapse:collapse;border:0;margin:4px 0;width:auto;table-layout:auto">'
            "<thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        ).format(title if block.title else "", heads, body)
        return table + (self.text(Text(block.caption, tone="quiet")) if block.caption else Markup(""))

    def figures(self, block: Figures) -> Markup:
        """A table with a dot and an interval per row. Figures from 0 to 1 share a scale; others do if all are alike."""
        rows = list(shown_rows(block))
        if block.is_difference:
            return self._differences(block, rows)
        on_unit = [row.figure for row in rows if row.figure.bounds == _UNIT]
        drawn = on_unit or [row.figure for row in rows if row.figure.bounds is None]
        if not any(figure.low is not None for figure in drawn):
            return self.table(figure_table(block))
        scale = scale_of(drawn)
        kept = {id(figure) for figure in drawn}
        cells = [
            self._dots(row, scale)
            if id(row.figure) in kept
            else self._dots(row, _own_scale(row, rows), with_grid=False)
            for row in rows
        ]
        if any(cell and id(row.figure) not in kept for cell, row in zip(cells, rows, strict=True)):
            caption = "; ".join(filter(None, [block.caption, "a drawing without lines has a scale of its own"]))
            block = replace(block, caption=caption)
        return self.table(figure_table(block, [*cells, axis(scale, self.width)]))

    def _dots(self, row: ShownRow, scale: Scale | None, *, with_grid: bool = True) -> Cell:
        tones = [row.tone or f"series-{row.series}"]
        return "" if scale is None else dots([row.figure], scale, tones, width=self.width, with_grid=with_grid)

    def _differences(self, block: Figures, rows: Sequence[ShownRow]) -> Markup:
        """Differences in standard errors, so that all metrics fit one scale; to the right, the second is better."""
        scaled = [_in_errors(row.figure) for row in rows]
        if not any(each is not None for each in scaled):
            return self.table(figure_table(block))
        scale = scale_of([each for each in scaled if each is not None], with_origin=True)
        cells = [
            ""
            if each is None
            else dots(
                [each],
                scale,
                [row.tone or "series-1"],
                with_origin=True,
                width=self.width,
                label=in_words(row.figure, sign="+"),
            )
            for row, each in zip(rows, scaled, strict=True)
        ]
        return self.table(figure_table(block, [*cells, sides("worse", "better", scale, self.width)]))

    def grid(self, block: Grid) -> Markup:
        """A heat map: the better a value is in its column, the stronger its colour. Cells may be links."""
        heads = Markup("").join(
            _head(text, is_left=place == 0) for place, text in enumerate([block.corner, *block.heads])
        )
        depth = max(map(len, block.below), default=0)
        under = [
            Row(["", *(each[place] if place < len(each) else "" for each in block.below)], is_quiet=True)
            for place in range(depth)
        ]
        quiet = Markup("").join(_row(row, 1) for row in under)
        shades = strengths(block)
        body = Markup("").join(
            Markup("<tr>{}{}</tr>").format(
                _filled(row.name, 0, True, Row([row.name])),
                Markup("").join(
                    _heat(cell, block, shade) for cell, shade in zip(row.cells, shades[place], strict=True)
                ),
            )
            for place, row in enumerate(block.rows)
        )
        title = Markup('<p style="margin:8px 0 2px"><strong>{}</strong></p>').format(shown(block.title))
        table = Markup(
            '{}<table style="border-collapse:collapse;border:0;margin:4px 0;width:auto;table-layout:auto">'
            "<thead><tr>{}</tr>{}</thead><tbody>{}</tbody></table>"
        ).format(title if block.title else "", heads, quiet, body)
        return table + self.text(Text(grid_caption(block), tone="quiet"))

    def chart(self, block: Chart) -> Markup:
        """A table with a drawing per row; of a curve, its drawing above the table."""
        drawn = chart(block)
        if block.kind == "curve":
            return Markup("").join(map(self.drawing, drawn)) + self.table(figure_table(as_figures(block)))
        return self.table(figure_table(as_figures(block), drawn))

    def finding(self, block: Finding) -> Markup:
        """The code and the sentence; why it matters and examples below."""
        code = Markup("<strong>{}</strong>: ").format(shown(block.code)) if block.code else Markup("")
        sign = sign_of("warning") if block.level == "warning" else Markup("")
        more = [*([] if block.figure is None else [in_words(block.figure)]), *block.details]
        below = Markup("").join(
            Markup('<div style="{}">{}</div>').format(_QUIET, shown(each, _LONGEST)) for each in more
        )
        return Markup('<div style="{}">{}{}{}{}</div>').format(
            _note_style(), sign, code, shown(block.sentence, _LONGEST), below
        )

    def verdict(self, block: Verdict) -> Markup:
        """The question in bold, the sentence, and the evidence."""
        return self.text(Text(block.sentence, block.question, block.tone)) + self.joined(block.evidence)

    def notes(self, block: Notes) -> Markup:
        """Each with an exclamation mark."""
        if not block.lines:
            return Markup("")
        lines = [Markup("<div>{}{}</div>").format(sign_of("warning"), shown(line, _LONGEST)) for line in block.lines]
        return Markup('<div style="{}">{}</div>').format(_note_style(), Markup("").join(lines))

    def folded(self, block: Folded) -> Markup:
        """A details element."""
        return Markup('<details style="margin:4px 0"><summary>{}</summary>{}</details>').format(
            shown(block.summary), self.joined(block.blocks)
        )

    def gallery(self, block: Gallery) -> Markup:
        """Cards side by side."""
        cards = Markup("").join(map(self._card, block.cards))
        return Markup('<div style="display:flex;flex-wrap:wrap;gap:12px;margin:6px 0">{}</div>').format(cards)

    def _card(self, card: Card) -> Markup:
        images = Markup("").join(image.markup for image in card.images)
        fields = [
            Markup('<div style="margin:3px 0;{}"><span style="opacity:0.7">{}</span><br>{}</div>').format(
                _WRAP, shown(name), shown(text)
            )
            for name, text in card.fields
        ]
        scores = [
            Markup("<div>{}: <strong>{}</strong></div>").format(shown(name), escape(value))
            for name, value in card.scores
        ]
        remarks = self.notes(Notes(card.remarks))
        style = f"width:230px;padding:8px;border:1px solid {LINE};border-radius:6px;background:{RAISED};font-size:90%"
        return Markup('<div style="{}"><strong style="{}">{}</strong>{}{}{}{}</div>').format(
            style, _WRAP, shown(card.title), images, Markup("").join(fields), Markup("").join(scores), remarks
        )

    def drawing(self, block: Drawing) -> Markup:
        """Its markup."""
        return block.markup


def _own_scale(row: ShownRow, rows: Sequence[ShownRow]) -> Scale | None:
    """The scale of a metric with another range, if several runs have it: beside one value, it says nothing."""
    same = [each.figure for each in rows if each.figure.name == row.figure.name and not each.is_quiet]
    if row.is_quiet or row.figure.name is None or len(same) < 2 or all(each.low is None for each in same):
        return None
    return nice_scale([end for each in same for end in (each.value, each.low, each.high)])


def _in_errors(figure: Figure) -> Figure | None:
    """A difference in its standard errors, positive if it is a gain; None if it has none."""
    if figure.value is None or figure.stderr is None or not isfinite(figure.stderr):
        return None
    if figure.stderr == 0:
        return Figure(0.0, None, None, None, figure.method) if figure.value == 0 else None
    sign = -1 if figure.direction == "lower" else 1
    value, low, high = (
        None if end is None else sign * end / figure.stderr for end in (figure.value, figure.low, figure.high)
    )
    return Figure(value, None, *((low, high) if sign > 0 else (high, low)), figure.method)


def _note_style() -> str:
    return f"margin:4px 0;padding:2px 10px;border-left:3px solid {colour('warning')};{_WRAP}"


def shown(text: str, longest: int = _LONGEST_CELL) -> Markup:
    """Escaped, isolated from the direction of the text around it, with codes for invisible characters."""
    return Markup("<bdi>{}</bdi>").format(visible(shortened(text, longest)))


def sign_of(tone: str, page: HtmlRenderer | None = None) -> Markup:
    """The sign of a tone; on a page, its class gives the colour."""
    if tone not in _SIGNS:
        return Markup("")
    if page is not None:
        return Markup('<span class="{}">{}</span> ').format(tone, _SIGNS[tone])
    return Markup('<span style="color:{};font-weight:bold">{}</span> ').format(colour(tone), _SIGNS[tone])


def _align(is_left: bool) -> str:
    return f"text-align:{'left' if is_left else 'right'}"


def _head(text: str, is_left: bool) -> Markup:
    return Markup('<th style="{};{}">{}</th>').format(_CELL, _align(is_left), shown(text) if text else "")


def _row(row: Row, left: int) -> Markup:
    cells = [_filled(cell, column, column < left, row) for column, cell in enumerate(row.cells)]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _filled(cell: Cell, column: int, is_left: bool, row: Row) -> Markup:
    is_drawn = isinstance(cell, Drawing)
    tag = Markup("th" if column == 0 and not row.is_axis else "td")
    weight = "font-weight:bold" if row.is_strong else "font-weight:normal"
    place = "text-align:left;padding-left:4px;padding-right:4px" if is_drawn else _align(is_left)
    wrap = f"{_WRAP};min-width:{_width(cell)}ch" if is_left else "white-space:nowrap"
    tone = f";color:{colour(row.tone)}" if row.tone and column == len(row.cells) - 1 else ""
    quiet = ";opacity:0.75" if row.is_quiet else ""
    style = f"{_CELL};{place};{weight};{wrap}{tone}{quiet}"
    return Markup('<{} style="{}">{}</{}>').format(tag, style, content_of(cell), tag)


def _heat(cell: GridCell, block: Grid, shade: float | None) -> Markup:
    """A cell of a grid."""
    first, *others = grid_lines(cell, block)
    value = Markup("<strong>{}</strong>").format(shown(first)) if cell.is_strong else shown(first)
    if cell.link:
        value = Markup('<a href="{}" style="color:inherit">{}</a>').format(cell.link, value)
    small = Markup("").join(Markup('<div style="{}">{}</div>').format(_QUIET, shown(line)) for line in others)
    tint = f";background:color-mix(in srgb, {colour('series-1')} {round(40 * shade)}%, transparent)" if shade else ""
    return Markup('<td style="{};text-align:right;white-space:nowrap{}">{}{}</td>').format(_CELL, tint, value, small)


def _width(cell: Cell) -> int:
    """The width below which a column does not shrink: the longest word, in which capitals are wider."""
    words = [word for line in _lines(cell) for word in line.split()]
    return min(max((len(word) + sum(map(str.isupper, word)) // 3 for word in words), default=0), _NARROWEST)


def _lines(cell: Cell) -> Sequence[str]:
    if isinstance(cell, Drawing):
        return []
    return cell.lines if isinstance(cell, Lines) else [cell if isinstance(cell, str) else cell.text]


def content_of(cell: Cell) -> Markup:
    """The content of a cell."""
    if isinstance(cell, Drawing):
        return cell.markup
    if isinstance(cell, Strong):
        return Markup("<strong>{}</strong>").format(shown(cell.text))
    if isinstance(cell, str):
        return shown(cell) if cell else Markup("")
    if cell.is_strong and cell.lines:
        first = Markup("<strong>{}</strong>").format(shown(cell.lines[0]))
        return Markup("<br>").join([first, *map(shown, cell.lines[1:])])
    tones = cell.tones or [""] * len(cell.lines)
    lines = [
        (Markup('<span style="color:{}">●</span> ').format(colour(tone)) if tone else Markup("")) + shown(line)
        for line, tone in zip(cell.lines, tones, strict=True)
    ]
    return Markup("<br>").join(lines)
