"""Render the report as one HTML file that needs no network and no other file."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from multimodal_eval.report.content import Content
from multimodal_eval.report.templating import templates

_HERE = Path(__file__).parent
_SCRIPTS = ("d3.min.js", "plot.umd.min.js", "report.js")
_STYLES = ("tokens.css", "style.css")
# Observable Plot adds this style sheet to every chart; report.js sets the class.
_PLOT_STYLE = """:where(.mm-chart) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.mm-chart text),
:where(.mm-chart tspan) {
  white-space: pre;
}"""
_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def render(content: Content, version: str) -> str:
    """The page; `version` is the version of the program."""
    environment = templates(_HERE / "templates")
    environment.filters["heat"] = _heat
    page = environment.get_template("report.html.j2")
    return page.render(
        content=content,
        version=version,
        policy=_policy(),
        style=Markup(_style()),
        icon=icon(),
        scripts=[Markup(asset(name)) for name in _SCRIPTS],
        data=json_for_script({"charts": content.charts}),
    )


@cache
def asset(name: str) -> str:
    """The text of a file in the assets folder."""
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def icon() -> str:
    """The logo as a `data:` address, for the tab of the browser."""
    return "data:image/svg+xml;base64," + b64encode(asset("logo.svg").encode()).decode()


def _style() -> str:
    return "\n".join(asset(name) for name in _STYLES)


def json_for_script(content: Any) -> Markup:
    """JSON for a `<script type="application/json">`, escaped so that no text in it can close the element."""
    text = json.dumps(msgspec.to_builtins(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPED))


def _policy() -> str:
    """The content security policy: only our own scripts and styles may run, and nothing may be loaded."""
    scripts = " ".join(_hash(asset(name)) for name in _SCRIPTS)
    styles = f"{_hash(_style())} {_hash(_PLOT_STYLE)}"
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; media-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _heat(count: int, most: int) -> int:
    """The colour strength of a cell, from 0 to 5."""
    return 0 if not count else 1 + min(4, 4 * count // max(most, 1))
