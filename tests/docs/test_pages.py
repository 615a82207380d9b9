"""Every block of the guides is executed or says why not, and every output on them is current.

`python -m tools.site update PAGE` writes the outputs. The build of the site uses what these tests executed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.site.blocks import parse
from tools.site.execute import execute
from tools.site.pages import DOCS, all_pages, name_of
from tools.site.records import keep
from tools.site.sections import unlisted

# AGENTS.md is not part of the site.
GUIDES = [DOCS.with_name("AGENTS.md"), *(page for page in all_pages() if page.parent != DOCS / "metrics")]


def needs_weights(page: Path) -> bool:
    text = page.read_text(encoding="utf-8")
    return "needs:" in text and "weights" in parse(text).needs  # parsing all pages takes a second of each collection


def assert_current(page: Path, home: Path | None = None) -> None:
    text = page.read_text(encoding="utf-8")
    outcome = execute(text, name_of(page), home)
    assert outcome.problems == []
    assert outcome.stale == [], f"run: python -m tools.site update {name_of(page)}"
    assert outcome.text == text
    keep(outcome, text)


@pytest.mark.parametrize("page", [page for page in GUIDES if not needs_weights(page)], ids=name_of)
def test_a_guide_is_executed(page):
    assert_current(page)


@pytest.mark.parametrize("page", [page for page in all_pages() if needs_weights(page)], ids=name_of)
def test_a_page_that_needs_models_is_executed(page, weights):
    assert_current(page, weights)


def test_the_page_for_assistants_is_short():
    assert len(GUIDES[0].read_text(encoding="utf-8").splitlines()) <= 80


def test_every_page_is_in_a_section():
    assert unlisted(all_pages()) == []
