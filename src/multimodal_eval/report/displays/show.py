"""The display of a result, found by its class, as HTML and as plain text. `core.displayed` calls this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from markupsafe import Markup, escape

from multimodal_eval.core.visible import visible as printable
from multimodal_eval.report.displays.blocks import (
    Block,
    Card,
    Cell,
    Drawing,
    Folded,
    Gallery,
    Lines,
    Notes,
    Row,
    Table,
    Text,
)
from multimodal_eval.report.displays.drawings import LINE, RAISED, colour
from multimodal_eval.report.plain_text import shortened, visible

__all__ = ["DISPLAYS", "as_html", "as_text", "blocks_of", "html_of", "text_of"]


# Blocks as HTML for notebooks: inline styles, no script, no class, no address of another server.


_LONGEST_CELL = 400  # characters
_LONGEST = 2_000
_CELL = f"padding:3px 6px;border:0;border-bottom:1px solid {LINE};vertical-align:middle;white-space:normal"
_NARROWEST = 24  # characters of a column of names
_WRAP = "overflow-wrap:anywhere"
_SIGNS = {"good": "▲", "bad": "▼", "warning": "!"}


def as_html(blocks: Sequence[Block]) -> str:
    """One element with all blocks."""
    return str(Markup('<div style="max-width:100%;overflow-x:auto;line-height:1.4">{}</div>').format(_all(blocks)))


def _all(blocks: Sequence[Block]) -> Markup:
    return Markup("").join(map(_block, blocks))


def _block(block: Block) -> Markup:
    if isinstance(block, Drawing):
        return block.markup
    if isinstance(block, Text):
        return _text(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Notes):
        return _notes(block)
    if isinstance(block, Gallery):
        return Markup('<div style="display:flex;flex-wrap:wrap;gap:12px;margin:6px 0">{}</div>').format(
            Markup("").join(map(_card, block.cards))
        )
    return _folded(block)


def _shown(text: str, longest: int = _LONGEST_CELL) -> Markup:
    """Escaped, isolated from the direction of the text around it, with codes for invisible characters."""
    return Markup("<bdi>{}</bdi>").format(visible(shortened(text, longest)))


def _text(block: Text) -> Markup:
    lead = Markup("<strong>{}</strong> ").format(_shown(block.lead)) if block.lead else Markup("")
    body = _shown(block.text, _LONGEST)
    if block.tone == "strong":
        body = Markup("<strong>{}</strong>").format(body)
    style = "margin:4px 0;" + _WRAP + (";opacity:0.75;font-size:90%" if block.tone == "quiet" else "")
    return Markup('<p style="{}">{}{}{}</p>').format(style, _sign(block.tone), lead, body)


def _sign(tone: str) -> Markup:
    if tone not in _SIGNS:
        return Markup("")
    return Markup('<span style="color:{};font-weight:bold">{}</span> ').format(colour(tone), _SIGNS[tone])


def _table(table: Table) -> Markup:
    heads = Markup("").join(_head(text, column < table.left) for column, text in enumerate(table.heads))
    body = Markup("").join(_row(row, table.left) for row in table.rows)
    title = Markup('<p style="margin:8px 0 2px"><strong>{}</strong></p>').format(_shown(table.title))
    return Markup(
        '{}<table style="border-collapse:collapse;border:0;margin:4px 0;width:auto;table-layout:auto">'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
    ).format(title if table.title else "", heads, body)


def _align(is_left: bool) -> str:
    return f"text-align:{'left' if is_left else 'right'}"


def _head(text: str, is_left: bool) -> Markup:
    return Markup('<th style="{};{}">{}</th>').format(_CELL, _align(is_left), _shown(text) if text else "")


def _row(row: Row, left: int) -> Markup:
    cells = [_filled(cell, column, column < left, row) for column, cell in enumerate(row.cells)]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _filled(cell: Cell, column: int, is_left: bool, row: Row) -> Markup:
    is_drawn = isinstance(cell, Drawing)
    tag = Markup("th" if column == 0 and not row.is_axis else "td")
    weight = "font-weight:bold" if row.is_strong else "font-weight:normal"
    place = "text-align:left;padding-left:4px;padding-right:4px" if is_drawn else _align(is_left)
    wrap = f"{_WRAP};min-width:{_width(cell)}ch" if is_left else "white-space:nowrap"
    style = f"{_CELL};{place};{weight};{wrap}"
    return Markup('<{} style="{}">{}</{}>').format(tag, style, _content(cell), tag)


def _width(cell: Cell) -> int:
    """The width below which a column does not shrink: the longest word, in which capitals are wider."""
    words = [word for line in _lines(cell) for word in line.split()]
    return min(max((len(word) + sum(map(str.isupper, word)) // 3 for word in words), default=0), _NARROWEST)


def _lines(cell: Cell) -> Sequence[str]:
    return [] if isinstance(cell, Drawing) else [cell] if isinstance(cell, str) else cell.lines


def _content(cell: Cell) -> Markup:
    if isinstance(cell, Drawing):
        return cell.markup
    if isinstance(cell, str):
        return _shown(cell) if cell else Markup("")
    tones = cell.tones or [""] * len(cell.lines)
    lines = [
        (Markup('<span style="color:{}">●</span> ').format(colour(tone)) if tone else Markup("")) + _shown(line)
        for line, tone in zip(cell.lines, tones, strict=True)
    ]
    return Markup("<br>").join(lines)


def _notes(block: Notes) -> Markup:
    if not block.lines:
        return Markup("")
    style = f"margin:4px 0;padding:2px 10px;border-left:3px solid {colour('warning')};{_WRAP}"
    lines = [Markup("<div>{}{}</div>").format(_sign("warning"), _shown(line, _LONGEST)) for line in block.lines]
    return Markup('<div style="{}">{}</div>').format(style, Markup("").join(lines))


def _folded(block: Folded) -> Markup:
    return Markup('<details style="margin:4px 0"><summary>{}</summary>{}</details>').format(
        _shown(block.summary), _all(block.blocks)
    )


def _card(card: Card) -> Markup:
    images = Markup("").join(image.markup for image in card.images)
    fields = [
        Markup('<div style="margin:3px 0;{}"><span style="opacity:0.7">{}</span><br>{}</div>').format(
            _WRAP, _shown(name), _shown(text)
        )
        for name, text in card.fields
    ]
    scores = [Markup("<div>{}: <strong>{}</strong></div>").format(_shown(n), escape(value)) for n, value in card.scores]
    remarks = _notes(Notes(card.remarks))
    style = f"width:230px;padding:8px;border:1px solid {LINE};border-radius:6px;background:{RAISED};font-size:90%"
    return Markup('<div style="{}"><strong style="{}">{}</strong>{}{}{}{}</div>').format(
        style, _WRAP, _shown(card.title), images, Markup("").join(fields), Markup("").join(scores), remarks
    )


# Blocks as plain text, for terminals.


_LONGEST_FIELD = 200  # characters of a cell or a field


def as_text(blocks: Sequence[Block]) -> str:
    """The blocks, without drawings and folded parts. Control characters are escaped."""
    return "\n".join(line.rstrip() for block in blocks for line in _text_lines(block))


def _text_lines(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        yield _plain(f"{block.lead} {block.text}" if block.lead else block.text)
    elif isinstance(block, Table):
        yield from _text_table(block)
    elif isinstance(block, Notes):
        yield from (f"! {_plain(line)}" for line in block.lines)
    elif isinstance(block, Gallery):
        for card in block.cards:
            yield from _text_card(card)


def _plain(text: str) -> str:
    return printable(" ".join(shortened(text, _LONGEST_FIELD * 5).split()))


def _text_cell(cell: Cell) -> str:
    if isinstance(cell, Drawing):
        return ""
    text = ", ".join(cell.lines) if isinstance(cell, Lines) else cell
    return printable(" ".join(shortened(text, _LONGEST_FIELD).split()))


def _text_table(table: Table) -> Iterator[str]:
    rows = [row for row in table.rows if not row.is_axis]
    drawn = {column for row in rows for column, cell in enumerate(row.cells) if isinstance(cell, Drawing)}
    kept = [column for column in range(len(table.heads)) if column not in drawn]
    if table.title:
        yield _plain(table.title)
    cells = [[_plain(table.heads[column]) for column in kept], *(_kept(row, kept) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(kept))]
    sides = [str.ljust if column < table.left else str.rjust for column in kept]
    for row in cells:
        yield "  ".join(side(text, width) for text, width, side in zip(row, widths, sides, strict=True))


def _kept(row: Row, columns: Sequence[int]) -> list[str]:
    return [_text_cell(row.cells[column]) for column in columns]


def _text_card(card: Card) -> Iterator[str]:
    scores = "  ".join(f"{_plain(name)} {_plain(value)}" for name, value in card.scores)
    yield f"{_plain(card.title)}  {scores}"
    for name, text in card.fields:
        yield f"    {_plain(name)}: {_text_cell(text)}"
    yield from (f"    ! {_plain(remark)}" for remark in card.remarks)


# The function of each class, of one argument, below this package.
DISPLAYS = {
    "AnswerScores": "scores.list_scores_blocks",
    "CalibratedRun": "judges.calibrated_run_blocks",
    "Calibration": "judges.calibration_blocks",
    "CaptionScores": "scores.list_scores_blocks",
    "Crosswalk": "comparisons.crosswalk_blocks",
    "GeneratedRun": "runs.generated_run_blocks",
    "JudgeFindings": "judges.judge_findings_blocks",
    "JudgesReport": "judges.judges_report_blocks",
    "LabelPlan": "judges.label_plan_blocks",
    "LabelScores": "scores.label_scores_blocks",
    "Leaderboard": "comparisons.leaderboard_blocks",
    "LintReport": "runs.lint_report_blocks",
    "MetaEvaluation": "judges.meta_evaluation_blocks",
    "MetricComparison": "comparisons.metric_comparison_blocks",
    "Preference": "comparisons.preference_blocks",
    "RatingTable": "comparisons.rating_table_blocks",
    "Run": "runs.run_blocks",
    "RunComparison": "comparisons.run_comparison_blocks",
    "Sample": "runs.sample_blocks",
    "SampleRow": "runs.sample_row_blocks",
    "SampleRows": "runs.sample_rows_blocks",
    "Score": "scores.score_blocks",
    "ScoreValue": "scores.score_value_blocks",
    "Sensitivity": "comparisons.sensitivity_blocks",
}


def blocks_of(result: object) -> Sequence[Block]:
    """The blocks of a result of this package, or of a class derived from one."""
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in DISPLAYS)
    module, _, function = DISPLAYS[name].partition(".")
    blocks: Callable[[object], Sequence[Block]] = getattr(import_module(f"{__package__}.{module}"), function)
    return blocks(result)


def html_of(result: object) -> str:
    """For a notebook."""
    return as_html(blocks_of(result))


def text_of(result: object) -> str:
    """For a terminal."""
    return as_text(blocks_of(result))
