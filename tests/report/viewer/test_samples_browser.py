"""The samples page in Chromium: gallery, value lists, brushes and chips by mouse, touch and keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.viewer.graded import COUNT, TOPICS, make_graded_run
from tests.report.visits import PHONE, expect, served, violations

PAGES = [
    "/samples/graded",
    "/samples/graded?view=gallery",
    "/samples/graded?meta.language=ru&meta.topic=topic-03&min.rouge_l=0.1&view=gallery&q=purple",
    "/samples/graded?meta.language=ru&meta.serial=s0001",
    "/sample/graded?row=3&at=3&view=gallery",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("seen") / "runs"
    make_graded_run(folder)
    with served(folder) as address:
        yield address


def matched(page: Any) -> int:
    """The number of samples in the status line."""
    return int(page.locator("#table [data-status]").inner_text().split()[0])


def right(least: int, most: int = 10) -> int:
    """How many samples have at least and at most so many right words, of those that are scored."""
    return sum(least <= number % 11 <= most for number in range(COUNT) if number != 50)


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible_in_both_themes_and_sizes(visit, server, path):
    seen = visit(server + path)
    page = seen.page
    page.wait_for_load_state("networkidle")
    for size in ({"width": 1400, "height": 900}, {"width": 390, "height": 800}, PHONE):
        page.set_viewport_size(size)
        violated, passed = violations(page, "light", "dark")
        assert violated == []
        assert passed > 15
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    assert seen.console == []


def test_the_gallery_is_opened_paged_and_read_by_keyboard(visit, server):
    seen = visit(server + "/samples/graded?sort=rouge_l")
    page = seen.page
    seen.press("g")
    page.locator(".gallery .card").first.wait_for()
    assert "view=gallery" in page.url
    # Not page.wait_for_function: it evaluates strings, which the page's Content-Security-Policy refuses.
    expect(page.locator(".card-image img").first).to_have_js_property("naturalWidth", 40)
    seen.press("j", "j", "k", "j")
    assert page.evaluate("document.activeElement.closest('.card') === document.querySelectorAll('.card')[1]")
    name = page.locator(".card").nth(1).locator(".card-head a").inner_text()
    seen.press("Enter")
    page.wait_for_url("**/sample/graded?**")
    assert page.locator("h1").inner_text() == name
    assert "2 of 120 samples" in page.locator("nav.pager").inner_text()
    seen.press("n")
    page.wait_for_url("**at=2**")
    seen.press("u")
    page.wait_for_url("**/samples/graded?**view=gallery**")
    seen.press("n")
    page.wait_for_url("**offset=50**")
    assert page.locator(".gallery .card").count() == 50
    page.locator("#view-table").click()
    page.locator("table.samples").wait_for()
    assert "view=" not in page.url
    assert "offset=50" in page.url
    page.go_back()
    page.locator(".gallery").wait_for()
    assert seen.console == []


def test_audio_in_the_gallery_loads_when_it_is_played(visit, server):
    seen = visit(server + "/samples/graded?view=gallery")
    seen.page.wait_for_load_state("networkidle")
    assert not [url for url in seen.requests if "kind=audio" in url]
    ended = (
        "new Promise(done => { const a = document.querySelector('audio'); a.onended = () => done('ended');"
        "a.onerror = () => done('error'); a.muted = true; a.play(); })"
    )
    assert seen.page.evaluate(ended) == "ended"


def brush_of(page: Any, metric: str = "rouge_l") -> Any:
    if page.locator("#ranges").get_attribute("open") is None:
        page.locator("#ranges > summary").click()
    return page.locator("[data-brush=ready]").filter(has=page.locator("legend", has_text=re.compile(f"^{metric}$")))


def drag(page: Any, brush: Any, start: float, end: float) -> None:
    box = brush.locator("svg.brush").bounding_box()
    y = box["y"] + box["height"] / 3
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()


def test_a_range_is_brushed_with_the_mouse(visit, server):
    seen = visit(server + "/samples/graded")
    page = seen.page
    brush = brush_of(page)
    drag(page, brush, 0.29, 0.61)
    page.wait_for_url("**min.rouge_l=**")
    # rouge_l is the share of right words: bins from 0.275 to 0.625 hold those with 3 to 6 words.
    assert brush.locator("input[type=number]").nth(0).input_value() == "0.275"
    assert brush.locator("input[type=number]").nth(1).input_value() == "0.625"
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(3, 6)} of {COUNT} samples match")
    assert page.url.endswith("?min.rouge_l=0.275&max.rouge_l=0.625")
    assert page.locator("#chart-0 path.matching").count() == 1  # the histograms follow
    drag(page, brush, 0.75, 1.2)  # past the end: no upper limit
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(8)} of {COUNT} samples match")
    assert brush.locator("input[type=number]").nth(1).input_value() == ""
    page.go_back()
    page.wait_for_url("**max.rouge_l=0.625")
    expect(page.locator("[name='max.rouge_l']")).to_have_value("0.625")
    expect(page.locator("#ranges svg.brush rect").first).to_have_attribute("x", "11")
    page.reload()
    assert matched(page) == right(3, 6)
    assert seen.console == []


def test_a_click_on_a_bar_selects_it_and_the_whole_histogram_is_no_filter(visit, server):
    seen = visit(server + "/samples/graded")
    page = seen.page
    brush = brush_of(page)
    drag(page, brush, 0.51, 0.51)
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(5, 5)} of {COUNT} samples match")
    drag(page, brush, 0.001, 0.999)
    expect(page.locator("#table [data-status]")).to_have_text(f"{COUNT} samples")
    assert "rouge_l" not in page.url


def test_a_range_is_brushed_with_a_finger(visit, server):
    seen = visit(server + "/samples/graded", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = seen.page
    brush = brush_of(page)
    overlay = brush.locator("svg.brush")
    overlay.scroll_into_view_if_needed()
    box = overlay.bounding_box()
    session = seen.context.new_cdp_session(page)
    y = box["y"] + 20
    points = [{"x": box["x"] + share * box["width"], "y": y} for share in (0.52, 0.6, 0.7, 0.98)]
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    for point in points[1:]:
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(5)} of {COUNT} samples match")
    assert "min.rouge_l=0.5" in page.url


def test_a_range_is_chosen_by_keyboard(visit, server):
    seen = visit(server + "/samples/graded")
    page = seen.page
    page.locator("#ranges > summary").press("Enter")
    brush = brush_of(page)
    low, high = brush.get_by_role("slider", name="lowest rouge_l"), brush.get_by_role("slider", name="highest rouge_l")
    low.focus()
    for _ in range(20):
        seen.press("ArrowRight")
    assert low.get_attribute("aria-valuetext") == "0.5"
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(5)} of {COUNT} samples match")
    assert page.evaluate("document.activeElement.className") == "handle"  # the update keeps the focus
    seen.press("Tab", "Home")
    assert high.get_attribute("aria-valuetext") == "0.525"  # it cannot pass the other handle
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(5, 5)} of {COUNT} samples match")
    field = page.locator("[name='max.rouge_l']")
    field.fill("0.75")
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(5, 7)} of {COUNT} samples match")
    assert high.get_attribute("aria-valuetext") == "0.75"
    assert seen.console == []


def test_values_are_chosen_from_lists_and_removed_by_chips(visit, server):
    seen = visit(server + "/samples/graded?view=gallery")
    page = seen.page
    page.locator("#values > summary").click()
    page.get_by_label("ru 30").check()
    expect(page.locator("#table [data-status]")).to_have_text(f"30 of {COUNT} samples match")
    find = page.get_by_label("Find a value of topic")
    find.fill("PIC-04")
    assert page.locator("li:visible input[name='meta.topic']").count() == 1
    find.press("Enter")  # it searches the list and does not send the form
    page.get_by_label("topic-04 6").press("Space")
    find.fill("")
    assert page.locator("li:visible input[name='meta.topic']").count() == TOPICS
    page.get_by_label("topic-08 6").check()
    expect(page.locator("#table [data-status]")).to_have_text(f"12 of {COUNT} samples match")
    assert page.url.endswith(
        "?view=gallery&meta.topic=topic-04&meta.topic=topic-08&meta.language=ru"
    ) or page.url.endswith("?view=gallery&meta.language=ru&meta.topic=topic-04&meta.topic=topic-08")
    page.get_by_label("value", exact=False).and_(page.locator("[name='meta.serial']")).fill("s0004")
    expect(page.locator("#table [data-status]")).to_have_text(f"1 of {COUNT} samples match")
    chips = page.locator(".chip")
    assert sorted(" ".join(text.split()) for text in chips.all_inner_texts()) == sorted(
        [
            "Remove the filter language is ru",
            "Remove the filter serial is s0004",
            "Remove the filter topic is topic-04 or topic-08",
        ]
    )
    page.locator(".chip", has_text="serial").press("Enter")
    expect(page.locator("#table [data-status]")).to_have_text(f"12 of {COUNT} samples match")
    assert page.locator("[name='meta.serial']").input_value() == ""
    assert page.locator("[name='meta.topic'][value=topic-04]").is_checked()
    assert page.evaluate("document.activeElement.id") == "content"
    page.locator(".chip", has_text="topic").click()
    expect(page.locator("#table [data-status]")).to_have_text(f"30 of {COUNT} samples match")
    brush = brush_of(page)  # brushes work after the form was replaced
    drag(page, brush, 0.51, 0.99)
    page.wait_for_url("**min.rouge_l=0.5**")
    page.get_by_role("link", name="Clear all").click()
    expect(page.locator("#table [data-status]")).to_have_text(f"{COUNT} samples")
    assert page.url.endswith("?view=gallery")
    assert seen.console == []


def test_a_part_gets_a_histogram_when_it_has_a_range(visit, server):
    seen = visit(server + "/samples/graded")
    page = seen.page
    page.locator("#ranges > summary").click()
    page.get_by_text("Other scores").click()
    page.locator("[name='min.bleu.bleu_1']").fill("0.5")
    page.wait_for_url("**min.bleu.bleu_1=0.5")
    assert page.locator("#chart-0 path.matching").count() == 1
    page.reload()
    assert page.locator("[data-brush=ready]").count() == 3
    assert seen.console == []


def test_a_dead_end_leads_to_samples(visit, server):
    page = visit(server + "/samples/graded?meta.language=ru&meta.serial=s0001").page
    page.get_by_role("link", name="Without serial is s0001").click()
    expect(page.locator("#table [data-status]")).to_have_text(f"30 of {COUNT} samples match")


def test_filters_work_without_scripts(visit, server):
    page = visit(server + "/samples/graded?view=gallery", java_script_enabled=False).page
    page.locator("#values > summary").click()
    page.get_by_label("ru 30").check()
    page.locator("#ranges > summary").click()
    page.locator("[name='min.rouge_l']").fill("0.5")
    page.get_by_role("button", name="Apply").click()
    both = sum(number % 4 == 0 and number % 11 >= 5 for number in range(COUNT))
    expect(page.locator("#table [data-status]")).to_have_text(f"{both} of {COUNT} samples match")
    expect(page.locator(".gallery")).to_have_count(1)
    page.locator(".chip", has_text="language").click()
    expect(page.locator("#table [data-status]")).to_have_text(f"{right(5)} of {COUNT} samples match")
    page.locator("#view-table").click()
    expect(page.locator("table.samples")).to_have_count(1)
