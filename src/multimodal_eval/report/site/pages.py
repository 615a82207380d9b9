"""The pages of a site as HTML. Each is one file with its own style and script, under the policy of the report."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
from multimodal_eval.core.display import p_comparison
from multimodal_eval.report.render import asset, icon
from multimodal_eval.report.site.content import SiteContent, Submission
from multimodal_eval.report.site.methods import methods_of
from multimodal_eval.report.site.places import Places, tied_places
from multimodal_eval.report.site.submission import submission_lines
from multimodal_eval.report.site.whiskers import WIDTH
from multimodal_eval.report.templating import templates

__all__ = ["Pages"]

_HERE = Path(__file__).parent
_SHOWN_TIES = 5  # names in the first sentence


class Pages:
    """Renders the pages of one site; `version` is the version of the program."""

    def __init__(self, site: SiteContent, version: str) -> None:
        self._site, self._places = site, Places(site)
        self._environment: Environment = templates(_HERE / "templates")
        self._environment.filters |= {
            "tied_places": tied_places,
            "shade": self._places.shade,
            "p_comparison": p_comparison,
            "failures": failures_in_words,
            "rule": rule_in_words,
        }
        self._environment.globals |= {
            "site": site,
            "version": version,
            "policy": _policy(),
            "style": Markup(_style()),
            "script": Markup(_script()),
            "icon": icon(),
            "width": WIDTH,
        }

    def index(self) -> str:
        """The ranking."""
        return self._page("index", "", shown=_SHOWN_TIES)

    def methods(self) -> str:
        """How the ranking was made."""
        return self._page("methods", "", **methods_of(self._site))

    def submission(self, submission: Submission) -> str:
        """One submission: its place, its differences, its scores."""
        lines = submission_lines(self._site, submission)
        return self._page("submission", "../../", submission=submission, places=self._places.of(submission), **lines)

    def _page(self, here: str, root: str, **values: Any) -> str:
        return self._environment.get_template(f"{here}.html.j2").render(here=here, root=root, **values)


@cache
def _site_asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return "\n".join((asset("tokens.css"), asset("style.css"), _site_asset("site.css")))


def _script() -> str:
    return "\n".join((asset("page.js"), _site_asset("site.js")))


def _policy() -> str:
    """Only our script and style may run, and nothing may be loaded but images in the page itself."""
    return (
        f"default-src 'none'; script-src {_hash_source(_script())}; style-src {_hash_source(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    """The source expression that allows exactly this script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
