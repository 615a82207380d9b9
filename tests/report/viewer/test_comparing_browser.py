"""Comparing in Chromium: the choice of runs, samples of two runs, and the brush by mouse, finger and keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from tests.report.viewer.mixed import mixed_runs
from tests.report.visits import DESKTOP, PHONE, expect, served, violations

BOTH = "run=alba&run=boreas"
SIZES = [DESKTOP, {"width": 390, "height": 844}, PHONE]
PAGES = [
    "/compare",
    "/compare?run=alba",
    f"/compare?{BOTH}",
    "/compare?run=alba&run=other",
    "/pairs",
    f"/pairs?{BOTH}&number=rouge_l",
    f"/pairs?{BOTH}&number=rouge_l&outcome=first&min.a.bleu=0&q=star&meta.language=ru",
    f"/pairs?{BOTH}&q=nowhere",
    "/scatter/alba",
    "/scatter/alba?x=rouge_l&y=cider_d&x0=0.2&y1=2",
    f"/scatter?{BOTH}&x=rouge_l&y=rouge_l&x0=0.2&x1=0.6",
    "/scatter?run=alba&run=other",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("comparing") / "runs"
    mixed_runs(folder)
    texts = [Sample(str(number), references=["a cat"], generated_answer="a cat") for number in range(5)]
    evaluate(texts, metrics=["rouge_l"], output=folder / "other")
    with served(folder) as address:
        yield address


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible_in_both_themes_and_fit_all_sizes(visit, server, path):
    seen = visit(server + path)
    page = seen.page
    page.wait_for_load_state("networkidle")
    assert [line for line in seen.console if "409" not in line] == []
    for size in SIZES:
        page.set_viewport_size(size)
        violated, passed = violations(page, "light", "dark")
        assert violated == [], size
        assert passed > 10
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"], size


def test_runs_are_chosen_and_compared_by_keyboard(visit, server):
    seen = visit(server + "/compare")
    page = seen.page
    for _ in range(2):
        seen.press("j", "x")
    assert page.locator("input[name=run]:checked").count() == 2
    seen.press("n")
    page.wait_for_url("**/compare?run=alba&run=boreas")
    page.get_by_role("heading", name="Verdict").wait_for()
    assert page.locator(".forest-mark").count() == 3
    seen.press("n")
    page.wait_for_url("**/pairs?**")
    seen.press("u")
    page.wait_for_url("**/compare?**")
    assert seen.console == []


def test_runs_that_cannot_be_compared_are_chosen_anew_by_mouse(visit, server):
    page = visit(server + "/compare?run=alba&run=other").page
    assert "cannot be shown side by side" in page.locator(".notice").inner_text()
    page.locator("input[value=other]").uncheck()
    page.locator("input[value=boreas]").check()
    page.get_by_role("button", name="Compare the selected runs").click()
    page.get_by_role("heading", name="Verdict").wait_for()
    assert page.url.endswith("/compare?run=alba&run=boreas")


def names(page: Any) -> list[str]:
    return list(page.locator(".pair-id").all_inner_texts())


def test_pairs_are_filtered_and_sorted_in_place(visit, server):
    seen = visit(f"{server}/pairs?{BOTH}&number=rouge_l")
    page = seen.page
    seen.press("/")
    page.keyboard.type("star")
    page.wait_for_url("**q=star**")
    page.locator("#table").get_by_text("samples match").wait_for()
    count = int(page.locator("#outcome-first .figures").inner_text())
    page.locator("#outcome-first").press("Enter")
    expect(page.locator("[data-status]")).to_contain_text(f"{count} samples match")
    assert "outcome=first" in page.url
    assert page.evaluate("document.activeElement.id") == "outcome-first"
    page.locator("#outcome-first").click()  # the same again removes the filter
    expect(page.locator("#outcome-first")).not_to_have_attribute("aria-current", "true")
    before = names(page)
    page.locator("#order-sort").select_option("a")
    page.locator("#order-desc").select_option("1")
    expect(page.locator("[data-status]")).to_contain_text("by score of A in rouge_l, highest first")
    assert names(page) != before
    scores = [float(text) for text in page.locator(".side-1 .score").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    page.get_by_text("Score ranges").click()
    page.locator("[name='min.a.rouge_l']").fill("0.5")
    expect(page.locator(".side-1 .score").last).to_have_text(re.compile(r"^(0\.[5-9]|1)"))
    page.reload()
    assert page.locator("[name='min.a.rouge_l']").input_value() == "0.5"
    assert page.locator("[name=q]").input_value() == "star"
    assert seen.console == []


def test_cards_are_read_by_keyboard(visit, server):
    seen = visit(f"{server}/pairs?{BOTH}")
    page = seen.page
    seen.press("j", "j")
    second = names(page)[1]
    assert page.evaluate("document.activeElement.textContent") == second
    seen.press("Enter")
    page.wait_for_url("**/sample/alba?**")
    assert page.locator("h1").inner_text() == second


@pytest.mark.parametrize("width", [390, 360])
def test_both_runs_are_visible_on_a_phone(visit, server, width):
    page = visit(f"{server}/pairs?{BOTH}", viewport={"width": width, "height": 800}).page
    card = page.locator(".pair").first
    boxes = [card.locator(f".side-{number}").bounding_box() for number in (1, 2)]
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]  # one below the other
    for number, (letter, run) in enumerate((("A", "alba"), ("B", "boreas")), 1):
        side = card.locator(f".side-{number}")
        assert side.locator(".letter").inner_text() == letter
        assert run in side.inner_text()
        assert boxes[number - 1]["x"] >= 0
        assert boxes[number - 1]["x"] + boxes[number - 1]["width"] <= width
    colours = [card.locator(f".side-{n}").evaluate("e => getComputedStyle(e).borderLeftColor") for n in (1, 2)]
    assert colours[0] != colours[1]
    page.goto(f"{server}/compare?{BOTH}")
    for run in ("alba", "boreas"):  # in the table of scores, both values of a metric
        box = page.locator("#numbers ~ .scroll tr", has_text=run).first.locator("td.number").first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def limits(page: Any) -> list[float | None]:
    return [
        float(value) if (value := page.locator(f"[name={name}]").input_value()) else None
        for name in ("x0", "x1", "y0", "y1")
    ]


def box_of(page: Any) -> Any:
    plot = page.locator("[data-brush2d]")
    plot.scroll_into_view_if_needed()
    return plot.bounding_box()


def expected_limits(page: Any, shares: tuple[float, float, float, float]) -> list[float]:
    """The values at shares of the plot: left, right, top, bottom, as x0, x1, y0, y1."""
    plot = page.locator("[data-brush2d]")
    ends = {name: float(plot.get_attribute(f"data-{name}")) for name in ("x-low", "x-high", "y-low", "y-high")}
    left, right, top, bottom = shares
    return [
        *(ends["x-low"] + share * (ends["x-high"] - ends["x-low"]) for share in (left, right)),
        *(ends["y-high"] - share * (ends["y-high"] - ends["y-low"]) for share in (bottom, top)),
    ]


def test_a_rectangle_drawn_with_the_mouse_selects_samples(visit, server):
    seen = visit(f"{server}/scatter/alba?x=rouge_l&y=cider_d")
    page = seen.page
    box = box_of(page)
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.95 * box["height"])  # from the lower right
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"])
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])
    assert page.locator(".brush").evaluate("e => getComputedStyle(e).visibility") == "visible"
    page.mouse.up()
    page.locator("#inside").get_by_text("in the rectangle").wait_for()
    tolerance = 0.02
    assert limits(page) == pytest.approx(expected_limits(page, (0.3, 0.8, 0.5, 0.95)), abs=tolerance)
    total = page.locator("#inside [data-status]").inner_text()
    assert int(total.split()[0]) > 0
    assert "x0=" in page.url
    page.reload()  # the address contains the rectangle
    assert page.locator("#inside [data-status]").inner_text() == total
    page.get_by_role("link", name="Open them in the table of samples").click()
    page.wait_for_url("**/samples/alba?**")
    assert page.locator("[data-status]").inner_text().split()[0] == total.split()[0]
    assert seen.console == []


def test_a_click_clears_the_rectangle(visit, server):
    page = visit(f"{server}/scatter/alba?x=rouge_l&y=cider_d&x0=0.2&x1=0.6").page
    box = box_of(page)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("#inside").get_by_text("No samples are selected").wait_for()
    assert limits(page) == [None] * 4
    assert page.locator(".brush").evaluate("e => getComputedStyle(e).visibility") == "hidden"


def test_a_rectangle_drawn_with_a_finger_selects_pairs(visit, server):
    """The pointer events of a touch screen, sent by the protocol of the browser."""
    size = {"width": 390, "height": 844}
    seen = visit(f"{server}/scatter?{BOTH}&x=rouge_l&y=rouge_l", viewport=size, has_touch=True, is_mobile=True)
    page = seen.page
    box = box_of(page)
    session = seen.context.new_cdp_session(page)
    at = [(0.1, 0.9), (0.4, 0.5), (0.6, 0.2)]
    points = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]} for x, y in at]
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    for point in points[1:]:
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.locator("#inside").get_by_text("in the rectangle").wait_for()
    assert limits(page) == pytest.approx(expected_limits(page, (0.1, 0.6, 0.2, 0.9)), abs=0.03)
    expect(page.locator("#inside .pair").first).to_be_visible()
    assert seen.console == []


def test_the_fields_move_the_rectangle_by_keyboard(visit, server):
    seen = visit(f"{server}/scatter?{BOTH}&x=rouge_l&y=rouge_l")
    page = seen.page
    page.locator("[name=x0]").focus()
    page.keyboard.type("0.5")
    page.locator("#inside").get_by_text("in the rectangle").wait_for()
    plot, brush = box_of(page), page.locator(".brush").bounding_box()
    low, high = (float(page.locator("[data-brush2d]").get_attribute(f"data-x-{end}")) for end in ("low", "high"))
    share = (brush["x"] - plot["x"]) / plot["width"]
    assert share == pytest.approx((0.5 - low) / (high - low), abs=0.01)
    assert page.evaluate("document.activeElement.name") == "x0"
    seen.press("Tab", "Tab", "Tab", "Tab", "Tab")
    assert page.evaluate("document.activeElement.id") == "brush-clear"
    seen.press("Enter")
    page.locator("#inside").get_by_text("No samples are selected").wait_for()
    assert seen.console == []


def test_another_metric_is_drawn_in_place(visit, server):
    seen = visit(f"{server}/scatter/alba?x=bleu&y=cider_d&x0=0.1")
    page = seen.page
    page.get_by_label("Horizontal").select_option("rouge_l")
    page.locator(".x-name").get_by_text("rouge_l").wait_for()
    assert limits(page) == [None] * 4
    box = box_of(page)
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 10, box["y"] + box["height"] - 10)
    page.mouse.up()
    page.locator("#inside").get_by_text("in the rectangle").wait_for()
    assert "x=rouge_l" in page.url
    assert seen.console == []


def test_plots_and_pairs_work_without_scripts(visit, server):
    page = visit(f"{server}/scatter/alba?x=rouge_l&y=cider_d", java_script_enabled=False).page
    page.locator("[name=x0]").fill("0.4")
    page.get_by_role("button", name="Show the samples").click()
    expect(page.locator("#inside [data-status]")).to_contain_text("in the rectangle")
    assert page.locator(".brush").is_visible()
    page.goto(f"{server}/pairs?{BOTH}&number=rouge_l")
    page.get_by_label("Result").select_option("second")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**outcome=second**")
    assert set(page.locator(".pair-outcome > span:first-child").all_inner_texts()) == {"B better"}
    page.goto(f"{server}/compare?{BOTH}")
    assert page.locator(".forest-mark").count() == 3
