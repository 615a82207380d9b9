"""Render the report as one HTML file that needs no network and no other file."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from multimodal_eval.core.judge_config import DECIDED
from multimodal_eval.report.content import Content
from multimodal_eval.report.templating import templates

__all__ = ["Theme", "asset", "icon", "policy", "render"]

_HERE = Path(__file__).parent
_SCRIPTS = ("page.js", "report.js")
_STYLES = ("tokens.css", "style.css", "report.css")
_PAPER = ("paper.css", "paper_tables.css")

Theme = Literal["screen", "paper"]


def render(content: Content, version: str, theme: Theme = "screen") -> str:
    """The page; `version` is the version of the program. The page for paper has no controls and no script."""
    environment = templates(_HERE / "templates")
    environment.filters["heat"] = _heat
    environment.globals["decided"] = DECIDED
    is_paper = theme == "paper"
    return environment.get_template("report.html.j2").render(
        content=content,
        version=version,
        paper=is_paper,
        policy=policy(theme),
        style=Markup(_style(theme)),
        icon=icon(),
        scripts=list(map(Markup, _scripts(theme))),
    )


@cache
def asset(name: str) -> str:
    """The text of a file in the assets folder."""
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def icon() -> str:
    """The logo as a `data:` address, for the tab of the browser."""
    return "data:image/svg+xml;base64," + b64encode(asset("logo.svg").encode()).decode()


def _style(theme: Theme) -> str:
    return "\n".join(map(asset, (*_STYLES, *_PAPER) if theme == "paper" else _STYLES))


def _scripts(theme: Theme) -> list[str]:
    return [] if theme == "paper" else ["\n".join(map(asset, _SCRIPTS))]


def policy(theme: Theme = "screen") -> str:
    """The content security policy: only our own scripts and styles may run, and nothing may be loaded."""
    hashes = " ".join(map(_hash, _scripts(theme))) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(_style(theme))}; img-src data:; media-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _heat(count: int, most: int) -> int:
    """The colour strength of a cell, from 0 to 5."""
    return 0 if not count else 1 + min(4, 4 * count // max(most, 1))
