"""Reports in Chromium: charts, accessibility, keyboard, phone, print."""

from __future__ import annotations

import pytest

from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.run.evaluate import evaluate
from tests.report.visits import DESKTOP, PHONE, violations


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page_of(runs), encoding="utf-8")
    return file.as_uri()


def test_a_report_opens_without_errors_and_draws_every_chart(visit, file):
    seen = visit(file)
    assert (seen.console, seen.dialogs, seen.loaded) == ([], [], [])
    assert seen.page.locator("[data-chart]").count() == seen.page.locator("[data-chart] svg").count() > 5


def test_a_report_is_accessible_and_fits_a_phone(visit, file):
    page = visit(file).page
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.reload()  # recomputes which regions scroll
        for scheme in ("light", "dark"):
            violated, passed = violations(page, scheme)
            assert [violation for violation in violated if violation[1] in ("serious", "critical")] == []
            assert passed > 20
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_system_theme_applies_until_another_is_chosen(visit, file):
    page = visit(file, color_scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Use light colours").press("Enter")
    light = page.evaluate(background)
    assert (dark, light) == ("rgb(18, 22, 28)", "rgb(255, 255, 255)")
    page.get_by_role("button", name="Use dark colours").press("Enter")
    assert page.evaluate(background) == dark


def test_print_is_white(visit, file):
    page = visit(file, color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("[role=tabpanel]").evaluate_all("panels => panels.every(panel => panel.offsetHeight > 0)")


def test_every_control_is_reachable_by_keyboard(visit, file):
    page = visit(file).page
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName + '.' + (document.activeElement.id || '')"))
        if page.evaluate("document.activeElement === document.body"):
            break
    assert {"BUTTON.theme", "SELECT.spread-kind", "SELECT.slice-metric", "BUTTON.group-worst-tab"} <= reached
    assert "SUMMARY." in reached


def test_arrows_move_between_tabs(visit, file):
    page = visit(file).page
    tabs = page.get_by_role("tab")
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    assert page.locator("[role=tabpanel]:visible").count() == 1
    page.keyboard.press("End")
    assert tabs.last.evaluate("tab => tab === document.activeElement")
    page.keyboard.press("ArrowRight")
    assert tabs.first.get_attribute("aria-selected") == "true"


def test_details_open_by_keyboard(visit, file):
    page = visit(file).page
    card = page.locator("details.box").first
    card.locator("summary").press("Enter")
    assert card.get_attribute("open") is not None
    assert card.get_by_role("heading").first.is_visible()


def test_another_metric_and_another_chart_can_be_chosen(visit, file):
    seen = visit(file)
    page = seen.page
    before = page.locator("[data-chart=spread-0]").inner_html(), page.locator("[data-chart=slices-0]").inner_html()
    page.get_by_role("combobox", name="Show").select_option("ecdf")
    page.get_by_role("combobox", name="Metric").select_option("0")
    after = page.locator("[data-chart=spread-0]").inner_html(), page.locator("[data-chart=slices-0]").inner_html()
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert seen.console == []


def test_without_scripts_all_samples_are_visible(visit, file):
    page = visit(file, java_script_enabled=False).page
    assert page.locator("article.sample:visible").count() == page.locator("article.sample").count() > 5


def test_intervals_beyond_the_range_of_a_metric_end_at_the_chart(visit, tmp_path):
    """An interval that reaches beyond 0 and 1 must not be drawn outside the chart."""
    samples = [
        Sample(str(number), expected_answer="a", generated_answer="a" if number else "b", annotations={"x": "a"})
        for number in range(6)
    ]
    run = evaluate(samples, metrics=["soft_score"], output=tmp_path / "run")
    entry = run.results["metrics"]["soft_score"]
    entry["low"], entry["high"] = -0.2, 1.3
    file = tmp_path / "page.html"
    file.write_text(page_of([run]), encoding="utf-8")
    page = visit(file.as_uri()).page
    ends = page.evaluate(
        """() => [...document.querySelectorAll('[data-chart=overview] svg line')].flatMap(
             (line) => [Number(line.getAttribute('x1')), Number(line.getAttribute('x2'))])"""
    )
    width = page.evaluate("Number(document.querySelector('[data-chart=overview] svg').getAttribute('width'))")
    assert ends
    assert min(ends) > 40
    assert max(ends) < width


def test_a_matrix_does_not_break_words_in_its_headings(visit, tmp_path):
    labels = ["Clarification", "Deflection", "Explicit", "Declining to answer"] * 3
    labels = [f"{label} {number}" for number, label in enumerate(labels)]
    samples = [
        Sample(str(number), expected_answer=label, generated_answer=label) for number, label in enumerate(labels)
    ]
    file = tmp_path / "page.html"
    file.write_text(page_of([evaluate(samples, metrics=["f1_strict"], output=tmp_path / "run")]), encoding="utf-8")
    page = visit(file.as_uri(), viewport=PHONE).page
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
