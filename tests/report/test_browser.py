"""Reports in Chromium: what they do, whether they can be used, and that no text in them does anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.build import report_html
from multimodal_eval.report.plain_text import LONGEST, visible
from multimodal_eval.run.evaluate import evaluate
from tests.report.hostile import PAYLOADS, PER_RUN, hostile_comparison, hostile_run, hostile_sensitivity

AXE = Path(__file__).parent / "assets" / "axe.min.js"
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page_of(runs), encoding="utf-8")
    return file


def test_it_opens_silently_and_draws_every_chart(visit, file):
    seen = visit(file)
    assert (seen.said, seen.asked, seen.loaded) == ([], [], [])
    assert seen.page.locator("[data-chart]").count() == seen.page.locator("[data-chart] svg").count() > 5


def test_it_opens_within_a_second(visit, file):
    """The best of three: other programs on the machine may delay one of them."""
    ready = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    assert min(visit(file).page.evaluate(ready) for _ in range(3)) < 1_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1200, "height": 900}, PHONE])
def test_it_is_accessible(visit, file, scheme, size):
    page = visit(file, color_scheme=scheme, viewport=size, bypass_csp=True).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    grave = [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert grave == []
    assert len(found["passes"]) > 20


def test_it_fits_a_phone(visit, file):
    page = visit(file, viewport=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_the_theme_is_the_systems_until_it_is_chosen(visit, file):
    page = visit(file, color_scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Use light colours").press("Enter")
    light = page.evaluate(background)
    assert (dark, light) == ("rgb(18, 22, 28)", "rgb(255, 255, 255)")
    page.get_by_role("button", name="Use dark colours").press("Enter")
    assert page.evaluate(background) == dark


def test_paper_is_white(visit, file):
    page = visit(file, color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("[role=tabpanel]").evaluate_all("all => all.every(one => one.offsetHeight > 0)")


def test_everything_is_reached_by_keyboard(visit, file):
    page = visit(file).page
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName + '.' + (document.activeElement.id || '')"))
        if page.evaluate("document.activeElement === document.body"):
            break
    assert {"BUTTON.theme", "SELECT.spread-kind", "SELECT.slice-number", "BUTTON.group-worst-tab"} <= reached
    assert "SUMMARY." in reached


def test_arrows_move_between_tabs(visit, file):
    page = visit(file).page
    tabs = page.get_by_role("tab")
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    assert page.locator("[role=tabpanel]:visible").count() == 1
    page.keyboard.press("End")
    assert tabs.last.evaluate("one => one === document.activeElement")
    page.keyboard.press("ArrowRight")
    assert tabs.first.get_attribute("aria-selected") == "true"


def test_details_open_by_keyboard(visit, file):
    page = visit(file).page
    card = page.locator("details.box").first
    card.locator("summary").press("Enter")
    assert card.get_attribute("open") is not None
    assert card.get_by_role("heading").first.is_visible()


def test_another_number_and_another_chart_can_be_chosen(visit, file):
    seen = visit(file)
    page = seen.page
    before = page.locator("[data-chart=spread-0]").inner_html(), page.locator("[data-chart=slices-0]").inner_html()
    page.get_by_role("combobox", name="Show").select_option("ecdf")
    page.get_by_role("combobox", name="Number").select_option("0")
    after = page.locator("[data-chart=spread-0]").inner_html(), page.locator("[data-chart=slices-0]").inner_html()
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert seen.said == []


def test_without_script_everything_is_said(visit, file):
    page = visit(file, java_script_enabled=False).page
    assert page.locator("article.sample:visible").count() == page.locator("article.sample").count() > 5


HARMLESS = """() => ({
    pwned: window.__pwned,
    scripts: document.scripts.length,
    styles: document.querySelectorAll("style").length,
    foreign: document.querySelectorAll(
        "iframe, object, embed, form, math, link, base, plaintext, svg:not(.mm-chart):not(.mm-chart *), b"
    ).length,
    handlers: [...document.querySelectorAll("*")].filter(
        one => [...one.attributes].some(own => own.name.startsWith("on") || /^\\s*javascript:/i.test(own.value))
    ).length,
})"""


@pytest.mark.parametrize("part", range(len(PAYLOADS) // PER_RUN))
@pytest.mark.parametrize("policy", [True, False], ids=["with the policy", "by escaping alone"])
def test_no_text_does_anything(visit, tmp_path, part, policy):
    texts = PAYLOADS[part * PER_RUN : (part + 1) * PER_RUN]
    name = texts[50].replace("/", "")[:60]
    run = hostile_run(tmp_path / name, texts)
    sensitivity = hostile_sensitivity(texts)
    page = report_html(
        [run],
        [texts[51]],
        version="1",
        sensitivity=sensitivity,
        per_group=50,
        comparison=hostile_comparison(texts),
    )
    assert page.count('<article class="sample">') == PER_RUN
    if not policy:
        page = page.replace("Content-Security-Policy", "x-no-policy")
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    seen = visit(file, viewport=PHONE if part % 2 else {"width": 1200, "height": 900})
    for panel in seen.page.get_by_role("tab").all():
        panel.click()
    seen.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    found = seen.page.evaluate(HARMLESS)
    charts = seen.page.locator("svg.mm-chart").count()
    assert charts > 5
    assert found == {"pwned": None, "scripts": 4, "styles": 1 + charts, "foreign": 0, "handlers": 0}
    assert (seen.said, seen.asked, seen.loaded) == ([], [], [])
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = set(seen.page.locator("dd").evaluate_all("all => all.map(one => one.textContent.trim())"))
    said = {_said(text) for text in texts}
    assert len(said - shown) == 0


def _said(text: str) -> str:
    """The text as the page has it: its invisible characters by their codes."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} characters more)"
    return "".join(visible(c)[1:-1] if visible(c) != c else c for c in cut).strip()


def test_intervals_beyond_a_numbers_range_end_at_the_chart(visit, tmp_path):
    """Nine hits and a miss: the interval of the mean reaches beyond 1, and must not be drawn out of the chart."""
    samples = [
        Sample(str(place), expected_answer="a", generated_answer="a" if place else "b", annotations={"x": "a"})
        for place in range(6)
    ]
    run = evaluate(samples, metrics=["soft_score"], output=tmp_path / "run")
    entry = run.results["metrics"]["soft_score"]
    entry["low"], entry["high"] = -0.2, 1.3
    file = tmp_path / "page.html"
    file.write_text(page_of([run]), encoding="utf-8")
    page = visit(file).page
    ends = page.evaluate(
        """() => [...document.querySelectorAll('[data-chart=overview] svg line')].flatMap(
             (line) => [Number(line.getAttribute('x1')), Number(line.getAttribute('x2'))])"""
    )
    width = page.evaluate("Number(document.querySelector('[data-chart=overview] svg').getAttribute('width'))")
    assert ends
    assert min(ends) > 40
    assert max(ends) < width


def test_a_matrix_breaks_no_word_of_its_heads(visit, tmp_path):
    labels = ["Clarification", "Deflection", "Explicit", "Declining to answer"] * 3
    named = [f"{label} {place}" for place, label in enumerate(labels)]
    samples = [Sample(str(place), expected_answer=own, generated_answer=own) for place, own in enumerate(named)]
    file = tmp_path / "page.html"
    file.write_text(page_of([evaluate(samples, metrics=["f1_strict"], output=tmp_path / "run")]), encoding="utf-8")
    page = visit(file, viewport=PHONE).page
    broken = page.evaluate(
        """() => [...document.querySelectorAll('thead.wrapped th')].filter((head) => {
             const text = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
             for (let node = text.nextNode(); node; node = text.nextNode())
               for (const word of node.data.matchAll(/\\S+/g)) {
                 const range = document.createRange();
                 range.setStart(node, word.index);
                 range.setEnd(node, word.index + word[0].length);
                 if (range.getClientRects().length > 1) return true;
               }
             return false;
           }).map((head) => head.textContent)"""
    )
    assert page.locator("thead.wrapped th").count() == 13
    assert broken == []
