"""Reports in Chromium: charts, accessibility, every control by mouse and keyboard, phone, print."""

from __future__ import annotations

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.sample import Sample
from tests.report.visits import DESKTOP, PHONE, violations


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page_of(runs), encoding="utf-8")
    return file.as_uri()


def test_a_report_opens_without_errors_and_draws_every_chart(visit, file):
    seen = visit(file)
    assert (seen.console, seen.dialogs, seen.loaded) == ([], [], [])
    page = seen.page
    for section in ("numbers", "comparison", "slices"):
        assert page.locator(f"section:has(#{section}) svg.drawing circle").count() > 2
    drawn = page.locator("svg.drawing:visible").evaluate_all("charts => charts.map((chart) => chart.clientWidth)")
    assert min(drawn) > 100
    assert page.locator(".spread:visible").count() == 3


def test_every_metric_has_a_row_in_the_comparison(visit, file):
    page = visit(file).page
    rows = page.locator("section:has(#comparison) .scroll").first.locator("tbody tr:not(.axis) th").all_inner_texts()
    assert rows == ["ROUGE-L", "exact_match", "composite_score ★"]


def test_the_dots_are_at_their_values(visit, file):
    """The scale of the scores goes from 0 to 1, so that a dot is as far to the right as its value says."""
    page = visit(file).page
    table = page.locator("section:has(#numbers) .scroll").first
    places = table.locator("tbody tr:not(.axis)").evaluate_all(
        """rows => rows.filter((row) => row.querySelectorAll("svg line").length > 3).map((row) => {
             const area = row.querySelector("svg").getBoundingClientRect();
             const dot = row.querySelector("circle").getBoundingClientRect();
             return [(dot.left + dot.right) / 2 - area.left - 14, row.querySelector("td.number:not(.drawn)").innerText];
           })"""
    )
    assert len(places) >= 4  # metrics of two runs from 0 to 1
    for place, text in places:  # 240 pixels wide, with a margin of 14
        assert place / 212 == pytest.approx(float(text.split()[0]), abs=0.01)  # of the text, rounded


def test_a_report_is_accessible_and_fits_a_phone(visit, file):
    page = visit(file).page
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.reload()  # recomputes which regions scroll
        violated, passed = violations(page, "light", "dark")
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
    page.get_by_role("button", name="Use dark colours").click()
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
    assert {"BUTTON.theme", "SELECT.spread-kind", "BUTTON.group-worst-tab"} <= reached
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
    tabs.nth(1).click()
    assert tabs.nth(1).get_attribute("aria-selected") == "true"


def test_details_open_by_keyboard(visit, file):
    page = visit(file).page
    card = page.locator("details.box").first
    card.locator("summary").press("Enter")
    assert card.get_attribute("open") is not None
    assert card.get_by_role("heading").first.is_visible()


def test_another_chart_can_be_chosen(visit, file):
    seen = visit(file)
    page = seen.page
    assert page.locator("[data-spread=ecdf]:visible").count() == 0
    page.get_by_role("combobox", name="Show").select_option("ecdf")
    assert page.locator("[data-spread=ecdf]:visible").count() == 3
    assert page.locator("[data-spread=histogram]:visible").count() == 0
    assert seen.console == []


def test_charts_are_chosen_by_keyboard(visit, file):
    page = visit(file).page
    page.get_by_role("combobox", name="Show").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("[data-spread=ecdf]:visible").count() == 3


def test_every_link_of_the_bar_leads_to_its_section(visit, file):
    page = visit(file).page
    links = page.locator(".bar nav a")
    for index in range(links.count()):
        name = links.nth(index).get_attribute("href")
        if index % 2:
            links.nth(index).click()
        else:
            links.nth(index).press("Enter")
        assert page.evaluate("location.hash") == name
        assert page.locator(f"h2{name}").is_visible()
        assert page.locator(f"h2{name}").evaluate("head => head.getBoundingClientRect().top < innerHeight")


def test_the_skip_link_is_the_first_stop_and_leads_to_the_results(visit, file):
    page = visit(file).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"


def test_every_fold_opens_by_mouse_and_keyboard(visit, file):
    page = visit(file).page
    folds = page.locator("details:has(> summary:visible)")
    assert folds.count() > 8
    for index in range(folds.count()):
        fold = folds.nth(index)
        summary = fold.locator("> summary")
        if index % 2:
            summary.click()
        else:
            summary.press("Enter")
        assert fold.get_attribute("open") is not None


def test_signatures_are_folded(visit, file):
    page = visit(file).page
    assert page.locator(".signature").count() > 5
    assert page.locator(".signature:visible").count() == 0
    page.locator("details.signatures > summary").first.click()
    assert page.locator(".signature:visible").count() >= 1


def test_without_scripts_all_samples_are_visible(visit, file):
    page = visit(file, java_script_enabled=False).page
    assert page.locator("article.sample:visible").count() == page.locator("article.sample").count() > 5
    assert page.locator("svg.drawing:visible circle").count() > 5  # charts need no script


def test_intervals_beyond_the_range_of_a_metric_end_at_the_chart(visit, tmp_path):
    """An interval that reaches beyond 0 and 1 must not be drawn outside the chart."""
    samples = [
        Sample(str(number), expected_answer="a", generated_answer="a" if number else "b", annotations={"x": "a"})
        for number in range(6)
    ]
    run = evaluate(samples, metrics=["soft_score"], output=tmp_path / "run")
    wide = msgspec.structs.replace(run.outcome.metrics["soft_score"], low=-0.2, high=1.3)
    run.outcome = msgspec.structs.replace(run.outcome, metrics={"soft_score": wide})
    file = tmp_path / "page.html"
    file.write_text(page_of([run]), encoding="utf-8")
    page = visit(file.as_uri()).page
    ends = page.evaluate(
        """() => [...document.querySelectorAll('svg.drawing line[stroke-width]')].flatMap(
             (line) => [line.getAttribute('x1'), line.getAttribute('x2')].map(Number))"""
    )
    assert min(ends) >= 14
    assert max(ends) <= 240 - 14
