"""The report as a file: its policy and its content."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.build import Inline, asset, blocks
from multimodal_eval.report.templating import number


class Elements(HTMLParser):
    """The tags of a page with their attributes, and the content of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.open = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = tag if tag in ("script", "style") else None

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open, data))
            self.open = None


@pytest.fixture(scope="module")
def page(runs):
    return page_of(runs)


def test_only_our_own_scripts_and_style_may_run(page):
    elements = Elements(page)
    policy = next(attrs["content"] for tag, attrs in elements.tags if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    for rule in ("img-src data:", "media-src data:", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    code = [text for _, text in elements.texts]
    assert len(code) == 2
    for text in code:
        assert f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy


def test_nothing_is_loaded_and_no_attribute_contains_code(page):
    for tag, attrs in Elements(page).tags:
        assert tag != "link" or attrs["rel"] == "icon"
        assert tag not in ("iframe", "object", "embed", "form", "base")
        assert not any(name.startswith("on") or name == "style" for name in attrs)
        for name in ("src", "href"):
            assert attrs.get(name, "#").startswith(("#", "data:image/", "data:audio/"))


def test_assets_can_be_inlined():
    styles = ("tokens.css", "style.css", "report.css", "paper.css", "paper_tables.css")
    for name in ("page.js", "report.js", *styles):
        assert "</s" not in asset(name).lower()
        assert "\r" not in asset(name)
    assert not any("url(" in asset(name) or "@import" in asset(name) for name in styles)


def test_the_page_shows_the_scores(page, runs):
    for run in runs:
        for entry in run.entries.values():
            assert f"{entry.value:.4f}" in page
            assert f"{entry.low:.4f} … {entry.high:.4f}" in page
    assert "timed out" in page
    assert runs[0].info.versions["numpy"] in page


def test_what_the_site_executes_of_a_card_is_left_out():
    left_out = (
        "<!-- setup: demo -->",
        "    mmeval score a.jsonl  # once",
        "For example:\n\n```python\nf()\n```\n\n```text\n1\n```",
    )
    card = blocks("\n\n".join(["# Title", "Before.", *left_out, "    Kept.", "```bibtex\n@a{b}\n```"]) + "\n")
    assert [block.text or "".join(inline.text for inline in block.inlines) for block in card] == [
        *("Title", "Before.", "Kept.", "@a{b}"),
    ]


def test_a_card_becomes_blocks():
    text = "# Title\n\nSome *plain*\nwords, `code` and **strong**.\n\n- one\n  - two\n\n"
    card = blocks(text + "| a | b |\n|---|---|\n| c | d |\n\n$$\nx\n$$\n")
    assert [(block.kind, block.level) for block in card] == [
        ("heading", 1),
        ("paragraph", 0),
        ("item", 0),
        ("item", 1),
        ("table", 0),
        ("preformatted", 0),
    ]
    assert card[1].inlines == [
        Inline("text", "Some *plain* words, "),
        Inline("code", "code"),
        Inline("text", " and "),
        Inline("strong", "strong"),
        Inline("text", "."),
    ]
    assert card[4].rows == [
        [[Inline("text", "a")], [Inline("text", "b")]],
        [[Inline("text", "c")], [Inline("text", "d")]],
    ]
    assert card[5].text == "x"


def test_the_provenance_shows_a_seed_of_zero(tmp_path):
    page = _page(tmp_path)
    assert re.search(r"Seed</th><td><bdi>0</bdi></td>", page)


def test_a_value_that_rounds_to_zero_has_no_sign():
    assert number(-0.00001) == number(0.0) == "0.0000"
    assert number(-0.00006) == "-0.0001"
    assert number(None) == "–"


def test_a_run_without_values_has_no_empty_charts(tmp_path):
    page = _page(tmp_path, error="out of memory")
    assert "spread-kind" in _page(tmp_path / "scored")
    assert "spread-kind" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def _page(folder, error=None):
    samples = [
        Sample(str(number), references=["a cat"], generated_answer="a cat sat", error=error) for number in range(3)
    ]
    return page_of([evaluate(samples, metrics=["rouge_l"], output=folder / "run", allow_empty=error is not None)])


def test_a_comparison_states_its_number_of_samples(tmp_path):
    """Of ten samples the second run failed on one, so 9 are compared and the differences may not match the scores."""

    def scored(name, failed):
        samples = [
            Sample(
                str(number),
                references=["a cat sat"],
                generated_answer=f"a cat {number}",
                error="boom" if number in failed else None,
            )
            for number in range(10)
        ]
        return evaluate(samples, metrics=["rouge_l"], output=tmp_path / name)

    page = page_of([scored("alba", ()), scored("boreas", (3,))])
    assert page.count("9 / 10 scored in both") == 1
    assert "10 / 10 scored in both" in page_of([scored("cirrus", ()), scored("dune", ())])
