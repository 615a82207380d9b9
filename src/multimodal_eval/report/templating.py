"""Templates of pages over runs: everything is escaped, and numbers and texts look the same in all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from multimodal_eval.report.highlight import Span
from multimodal_eval.report.plain_text import as_html, codes_marked, shortened, visible

DASH = "–"


def templates(folder: Path) -> Environment:
    """The templates of a folder; what one of them is not given is an error, not nothing."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "text": as_html,
        "plain": lambda value: visible(shortened(str(value), 200)),
        "number": number,
        "signed": lambda value: DASH if value is None else f"{value:+.4f}",
        "interval": interval,
        "ends": lambda figure: interval({"low": figure.low, "high": figure.high}),
        "percent": lambda value: DASH if value is None else f"{100 * value:.1f} %",
        "count": lambda value: DASH if value is None else f"{value:,}",
        "spans": spans,
    }
    return environment


def number(value: float | None) -> str:
    """Four decimals; only displays round. What rounds to zero has no sign."""
    return DASH if value is None else f"{round(value, 4) + 0.0:,.4f}"


def interval(entry: dict[str, Any]) -> str:
    """low … high."""
    return DASH if entry["low"] is None else f"{number(entry['low'])} … {number(entry['high'])}"


def spans(found: list[Span]) -> Markup:
    """Marked words: those of one in pale, those of a sequence in strong colour."""
    mark = Markup('<mark class="match-{}">{}</mark>')
    shown = [
        mark.format(min(span.matched, 2), codes_marked(span.text)) if span.matched else codes_marked(span.text)
        for span in found
    ]
    return Markup("<bdi>{}</bdi>").format(Markup("").join(shown))
