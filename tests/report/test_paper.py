"""The report for paper: no controls, numbered tables and figures, light, and a PDF whose pages nothing leaves."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from tests.report.visits import violations

A4 = {"width": 794, "height": 1123}  # pixels


@pytest.fixture(scope="module")
def page(runs):
    return page_of(runs, theme="paper")


@pytest.fixture(scope="module")
def file(page, tmp_path_factory):
    file = tmp_path_factory.mktemp("paper") / "report-paper.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_there_are_no_controls_and_no_scripts(page):
    tags = Tags(page).tags
    assert not {tag for tag, _ in tags} & {"script", "button", "select", "input", "nav", "form"}
    policy = next(attrs["content"] for _, attrs in tags if attrs.get("http-equiv"))
    assert "script-src 'none'" in policy
    assert "unsafe" not in policy
    assert not [attrs for tag, attrs in tags if tag == "details" and "open" not in attrs]
    assert "hidden" not in {name for _, attrs in tags for name in attrs}


def test_it_has_the_sections_of_an_appendix(page):
    heads = re.findall(r'<h2 id="(\w+)"', page)
    assert heads == [
        "verdict",
        "numbers",
        "comparison",
        "samples",
        "why",
        "warnings",
        "weights",
        "slices",
        "distributions",
        "provenance",
    ]
    assert page.count('<article class="sample">') <= 5 * 3  # three samples per group
    assert "rouge_l|v:" in page  # the signatures are printed


def test_tables_and_figures_are_numbered(visit, file):
    seen = visit(file, viewport=A4)
    assert (seen.console, seen.loaded) == ([], [])
    page = seen.page
    page.emulate_media(media="print")
    content = "element => getComputedStyle(element, '::before').content"
    captions = page.locator("table > caption:visible")
    assert captions.count() > 5
    assert '"Table " counter(table) ". "' in captions.first.evaluate(content)
    figures = page.locator("figure:not(.charts figure) > figcaption")
    assert figures.count() >= 1
    assert '"Figure " counter(figure) ". "' in figures.first.evaluate(content)
    assert page.locator(".charts figcaption").first.evaluate(content) == "none"  # parts of one figure


def test_it_is_black_on_white_whatever_the_system_prefers(visit, file):
    page = visit(file, color_scheme="dark").page
    for media in ("screen", "print"):
        page.emulate_media(media=media, color_scheme="dark")
        style = page.evaluate(
            "(style => [style.backgroundColor, style.color, style.fontFamily])(getComputedStyle(document.body))"
        )
        assert style[:2] == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
        assert "serif" in style[2]


def test_it_is_accessible(visit, file):
    violated, passed = violations(visit(file, viewport=A4).page, "light")
    assert [violation for violation in violated if violation[1] in ("serious", "critical")] == []
    assert passed > 15


def test_nothing_is_wider_than_the_page_in_print(visit, tmp_path):
    """Also with long names of runs and metrics, and many digits."""
    samples = [
        Sample(
            str(number),
            references=["a cat sat"],
            generated_answer="a cat sat" if number % 3 else "a dog",
            perplexity=1000.0 * number + 1,
        )
        for number in range(30)
    ]
    wrong = [msgspec.structs.replace(sample, generated_answer="a dog", perplexity=12345.0) for sample in samples]
    metrics = {"variants": {"a_long_name_of_a_metric": "rouge_l"}, "metrics": ["a_long_name_of_a_metric", "perplexity"]}
    scored = [
        evaluate(answered, output=tmp_path / name, progress=False, **metrics)
        for name, answered in {"model-a-instruct-7b": samples, "model-b-instruct-7b": wrong}.items()
    ]
    file = tmp_path / "paper.html"
    file.write_text(page_of(scored, theme="paper"), encoding="utf-8")
    page = visit(file.as_uri(), viewport={"width": 658, "height": 1000}).page  # A4 without its margins of 18 mm
    page.emulate_media(media="print")
    wide = page.locator("main *").evaluate_all(
        """elements => elements.filter((element) => element.getBoundingClientRect().right > innerWidth + 2
             && !element.closest("svg") && getComputedStyle(element).display !== "none")
             .map((element) => element.outerHTML.slice(0, 200))"""
    )
    assert wide == []


def test_a_pdf_can_be_made(visit, file, tmp_path):
    pdf = visit(file).page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
