"""The Jinja environment of report and viewer: everything is escaped, and all pages format numbers the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import to_builtins

from multimodal_eval import __version__
from multimodal_eval.core.display import DASH, p_value
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.visible import shortened
from multimodal_eval.display.plain_text import as_html, codes_marked, visible
from multimodal_eval.display.wording import counted
from multimodal_eval.report.compiled_templates import SETTINGS, CompiledTemplates
from multimodal_eval.report.highlight import Span, both_ends

_SHARED = Path(__file__).parent / "templates"


def templates(folder: Path) -> Environment:
    """The templates of a folder and of the report. An undefined variable is an error."""
    environment = Environment(
        loader=FileSystemLoader([folder, _SHARED]),
        bytecode_cache=CompiledTemplates((__version__, package_version("jinja2"))),
        undefined=StrictUndefined,
        **SETTINGS,
    )
    environment.filters |= {
        "text": as_html,
        "plain": lambda value: visible(shortened(str(value), 200)),
        "number": number,
        "signed": lambda value: DASH if value is None else f"{value:+.4f}",
        "interval": interval,
        "fields": to_builtins,  # of a record, without default values
        "percent": lambda value: DASH if value is None else f"{100 * value:.1f}%",
        "count": lambda value: DASH if value is None else f"{value:,}",
        "spans": spans,
        "counted": counted,
        "p": p_value,
    }
    return environment


def number(value: float | None) -> str:
    """Four decimals. A value that rounds to zero has no sign."""
    return DASH if value is None else f"{round(value, 4) + 0.0:,.4f}"


def interval(entry: Any) -> str:
    """low … high, from a record or a JSON object."""
    low, high = (entry["low"], entry["high"]) if isinstance(entry, dict) else (entry.low, entry.high)
    return DASH if low is None else f"{number(low)} … {number(high)}"


def spans(pieces: list[Span], longest: int | None = None) -> Markup:
    """Marked text, or its ends with `longest` characters: words that texts share, and words that only this text has."""
    shown = [
        f'<mark class="{escape(span.mark)}">{codes_marked(span.text)}</mark>' if span.mark else codes_marked(span.text)
        for span in (pieces if longest is None else both_ends(pieces, longest))
    ]
    return Markup(f"<bdi>{''.join(shown)}</bdi>")  # `codes_marked` escapes
