"""The site in Chromium, from a disk and from a plain file host: no errors, accessible, sortable, on every screen."""

from __future__ import annotations

import pytest

from multimodal_eval.display.drawings import COLOURS
from multimodal_eval.report.site.build import write_site
from tests.report.site.boards import ranked
from tests.report.visits import DESKTOP, PHONE, expect, violations

PAGES = ("index.html", "methods.html", "submissions/cirrus/index.html", "submissions/cirrus/report.html")


def names(page):
    return [name.strip() for name in page.locator("#ranking-table tbody th:visible").all_inner_texts()]


def test_pages_open_without_errors(visit, address):
    for path in PAGES:
        seen = visit(f"{address}/{path}")
        assert (seen.console, seen.dialogs, seen.loaded) == ([], [], []), path


def test_a_report_leads_back_to_its_submission(visit, address):
    page = visit(f"{address}/submissions/cirrus/report.html").page
    assert page.locator("main svg").count() > 2  # charts
    page.get_by_role("link", name="← Submission").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("cirrus")


def test_links_are_followed(visit, address):
    seen = visit(f"{address}/index.html")
    seen.page.get_by_role("link", name="cirrus", exact=True).click()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("cirrus")
    seen.page.get_by_role("link", name="Open the full report").click()
    expect(seen.page.get_by_role("heading", level=1)).to_contain_text("cirrus")
    seen.page.go_back()
    seen.page.get_by_role("link", name="Methods").click()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("Methods")
    seen.page.get_by_role("link", name="Leaderboard", exact=True).click()
    expect(seen.page.get_by_role("heading", level=2).first).to_have_text("Ranking")
    assert seen.console == []


def test_pages_are_accessible_and_fit(visit, site):
    for path in PAGES[:3]:  # the report has its own test
        page = visit((site / path).as_uri()).page
        for size in (DESKTOP, PHONE, {"width": 800, "height": 900}):
            page.set_viewport_size(size)
            page.reload()
            violated, passed = violations(page, "light", "dark")
            assert [rule for rule in violated if rule[1] in ("serious", "critical")] == [], (path, size)
            assert passed > 15
            assert page.evaluate("document.documentElement.scrollWidth") == size["width"], (path, size)


def test_columns_are_sorted_by_mouse(visit, site, board_runs):
    page = visit((site / "index.html").as_uri()).page
    places = [row.name for row in board_runs[1].standings]
    assert names(page) == places
    head = page.get_by_role("columnheader", name="exact_match")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"  # best first
    values = page.locator("#ranking-table td[data-label=exact_match]").evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.value))"
    )
    assert values == sorted(values, reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    wer = page.get_by_role("columnheader", name="WER")
    wer.get_by_role("button").click()
    assert wer.get_attribute("aria-sort") == "ascending"  # lower is better
    assert head.get_attribute("aria-sort") is None
    expect(page.locator("#status")).to_contain_text("Sorted by WER")


def test_columns_are_sorted_by_keyboard(visit, site):
    page = visit((site / "index.html").as_uri()).page
    button = page.get_by_role("columnheader", name="Submission").get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    assert names(page) == ["alba", "Boreas", "cirrus"]
    page.keyboard.press("Space")
    assert names(page) == ["cirrus", "Boreas", "alba"]
    assert button.evaluate("button => button === document.activeElement")


def test_missing_values_are_last_in_both_directions(visit, site):
    page = visit((site / "index.html").as_uri()).page
    button = page.get_by_role("columnheader", name="Behind").get_by_role("button")
    for _ in range(2):
        button.click()
        assert names(page)[-1] == "alba"  # the first is behind nothing


def test_the_table_is_filtered_by_name(visit, site):
    page = visit((site / "index.html").as_uri()).page
    page.get_by_role("searchbox").fill("BOR")
    assert names(page) == ["Boreas"]
    expect(page.locator("#status")).to_have_text("1 of 3 submissions")
    page.get_by_role("columnheader", name="Place").get_by_role("button").click()
    assert names(page) == ["Boreas"]
    page.get_by_role("searchbox").fill("")
    assert len(names(page)) == 3


def test_a_phone_shows_cards_with_labels_and_sorts_by_a_list(visit, site):
    page = visit((site / "index.html").as_uri(), viewport=PHONE).page
    cell = page.locator("td[data-label=WER]").first
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"WER"'
    assert cell.evaluate("cell => cell.getBoundingClientRect().right") <= PHONE["width"]
    page.get_by_role("combobox", name="Sort by").select_option(label="Submission")
    assert names(page) == ["alba", "Boreas", "cirrus"]
    assert page.get_by_role("table").count() == 1  # still a table for a screen reader


def test_without_scripts_the_order_is_that_of_places(visit, site, board_runs):
    page = visit((site / "index.html").as_uri(), java_script_enabled=False).page
    assert names(page) == [row.name for row in board_runs[1].standings]
    assert page.locator("#tools").is_hidden()
    assert page.get_by_role("button").count() == 0


def test_the_theme_can_be_chosen(visit, site):
    page = visit((site / "index.html").as_uri(), color_scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Use light colours").press("Enter")
    assert page.evaluate(background) != dark


def test_print_has_no_controls(visit, site):
    page = visit((site / "index.html").as_uri()).page
    page.emulate_media(media="print")
    assert page.locator("#tools").is_hidden()


def test_whiskers_are_on_one_scale(visit, site, board_runs):
    """Dots are in the order of the scores, each within its interval."""
    page = visit((site / "index.html").as_uri(), viewport=DESKTOP).page
    dots = page.locator("td.whiskers circle").evaluate_all("dots => dots.map(dot => dot.getBoundingClientRect().x)")
    assert dots == sorted(dots, reverse=True)
    lines = page.locator("td.whiskers line[stroke-width]").evaluate_all(
        "lines => lines.map(line => [line.getBoundingClientRect().left, line.getBoundingClientRect().right])"
    )
    assert all(left <= dot + 5 <= right for dot, (left, right) in zip(dots, lines, strict=True))
    assert page.locator(f'td.whiskers circle[fill="{COLOURS["series-1"]}"]').count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_many_submissions_with_long_names_fit_a_phone(visit, tmp_path, scheme):
    systems = {"W" * 120: 8, "a b" * 30: 7, "привет " * 12: 5, "x": 2}
    board = ranked(tmp_path / "runs", systems)
    write_site(tmp_path / "site", tmp_path / "runs", board, title="T" * 180)
    for path in (tmp_path / "site").rglob("index.html"):
        page = visit(path.as_uri(), viewport=PHONE, color_scheme=scheme).page
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], path
