"""The tutorials and explanations: their indexes name every page, and their blocks are executed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.data.logs.recognised import LOG_FORMATS
from tools.site.blocks import RUN, parse

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = ("tutorials", "explanation")
PAGES = [page for section in SECTIONS for page in sorted((DOCS / section).glob("*.md")) if page.name != "index.md"]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_index_has_one_line_per_page_with_its_purpose(section):
    index = (DOCS / section / "index.md").read_text(encoding="utf-8")
    lines = re.findall(r"^- \[.+?\]\((.+?)\): .+$", index, re.MULTILINE)
    assert sorted(lines) == sorted(page.name for page in PAGES if page.parent.name == section)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_every_page_runs_something(page):
    blocks = parse(page.read_text(encoding="utf-8")).blocks
    assert any(block.kind in RUN and block.marks.not_run is None for block in blocks)


def test_every_log_format_has_the_command_that_imports_it():
    guide = (DOCS / "harnesses.md").read_text(encoding="utf-8")
    imports = " ".join(re.findall(r"^ +mmeval import (.+)$", guide, re.MULTILINE))
    missing = [name for name in LOG_FORMATS if name != "openai-batch" and f"logs/{name}" not in imports]
    assert missing == []
