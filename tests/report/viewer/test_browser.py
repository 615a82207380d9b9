"""The viewer in Chromium: search, sort, compare and read samples, by keyboard and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from multimodal_eval import evaluate
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.report.viewer.viewed import make_runs, samples
from tests.report.visits import PHONE, expect, served, slow_down, violations
from tests.run_info import run_info

PAGES = [
    "/",
    "/?q=nothing",
    "/run/alba",
    "/samples/alba?sort=rouge_l",
    "/samples/alba?q=nowhere&min.bleu=0.5",
    "/sample/alba?row=5&at=5",
    "/sample/alba?row=9",
    "/compare?run=alba&run=boreas",
    "/compare?run=alba&run=boreas&run=deeper/cirrus",
    "/pairs?run=alba&run=boreas",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browsed") / "runs"
    make_runs(folder)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.mark.parametrize("path", PAGES)
def test_pages_open_without_errors_are_accessible_and_fit_a_phone(visit, server, path):
    seen = visit(server + path)
    page = seen.page
    page.wait_for_load_state("networkidle")  # some parts of a page are requested after it is loaded
    assert seen.console == []
    violated, passed = violations(page, "light", "dark")
    assert violated == []
    assert passed > 15
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_a_search_replaces_an_earlier_one_that_is_not_answered_yet(visit, server):
    seen = visit(server)
    page = seen.page
    slow_down(page, latency=1500)
    seen.press("/")
    with page.expect_request("**q=a&**"):
        page.keyboard.type("a")
    page.keyboard.type("lb")
    page.wait_for_url("**q=alb**")
    expect(page.locator("tr[data-line]")).to_have_count(1)


def test_a_click_replaces_a_search_that_is_not_answered_yet(visit, server):
    """Otherwise the late answer would undo it."""
    seen = visit(server)
    page = seen.page
    page.route("**q=a&**", lambda route: None)  # without an answer
    seen.press("/")
    with page.expect_request("**q=a&**"):
        page.keyboard.type("a")
    with page.expect_event("requestfailed", lambda request: "q=a&" in request.url):
        page.locator("#sort-name").press("Enter")
    page.locator("th[aria-sort=ascending]").wait_for()
    expect(page.locator("tr[data-line]")).to_have_count(3)
    assert seen.console == []


def test_links_change_together_with_their_list(visit, server):
    """Also while the page's timers are late: htmx can be told to keep the old links until one is due."""
    page = visit(server).page
    page.evaluate("const set = setTimeout; setTimeout = (work, delay = 0, ...rest) => set(work, delay + 900, ...rest)")
    before = page.locator("#sort-name").get_attribute("href")
    page.locator("#sort-name").press("Enter")
    page.locator("th[aria-sort=ascending]").wait_for()
    assert page.locator("#sort-name").get_attribute("href") != before


def test_runs_are_searched_sorted_and_compared_by_keyboard(visit, server):
    seen = visit(server)
    page = seen.page
    seen.press("/")
    page.keyboard.type("alb")
    page.wait_for_url("**q=alb**")
    expect(page.locator("tr[data-line]")).to_have_count(1)
    for _ in range(3):
        seen.press("Backspace")
    expect(page.locator("tr[data-line]")).to_have_count(3)
    page.locator("#sort-name").press("Enter")  # until then, the newest run is first
    page.locator("th[aria-sort=ascending]").wait_for()
    page.locator("#sort-name").press("Enter")
    page.locator("th[aria-sort=descending]").wait_for()
    assert seen.lines() == ["deeper/cirrus", "boreas", "alba"]
    assert page.evaluate("document.activeElement.id") == "sort-name"
    assert page.locator("#order-desc").input_value() == "1"
    seen.press("j", "j", "x", "j", "x")
    page.locator("#compare-button").press("Enter")
    page.get_by_role("heading", name="Verdict").wait_for()
    assert page.locator("h1").inner_text() == "Comparison of 2 runs"
    seen.press("n")
    page.wait_for_url("**/pairs?**")
    first = page.locator(".pair-id").first.inner_text()
    page.locator("#order-desc").select_option("1")
    expect(page.locator(".pair-id").first).not_to_have_text(first)
    assert "desc=1" in page.url
    seen.press("Escape", "u")
    page.wait_for_url("**/compare?**")
    assert seen.console == []


def test_samples_are_searched_and_read_by_keyboard(visit, server):
    seen = visit(server + "/run/alba")
    page = seen.page
    seen.press("n")
    page.wait_for_url("**/samples/alba")
    for direction in ("ascending", "descending"):
        page.get_by_role("link", name="ROUGE-L").press("Enter")
        page.locator(f"th[aria-sort={direction}]").get_by_text("ROUGE-L").wait_for()
    assert page.locator("#order-sort").input_value() == "rouge_l"
    seen.press("/")
    page.keyboard.type("BLUE")
    page.locator("#table").get_by_text("of 120 samples match").wait_for()
    assert "sort=rouge_l" in page.url  # a search keeps the order
    assert page.evaluate("document.activeElement.name") == "q"
    seen.press("Escape", "j", "j")
    second = seen.lines()[1]
    seen.press("Enter")
    page.wait_for_url("**/sample/alba?**")
    assert page.locator("h1").inner_text() == second
    assert page.locator("mark.shared").count() > 0
    assert page.locator("figure img").evaluate("image => image.naturalWidth") == 40
    seen.press("p")
    page.wait_for_url("**at=0**")
    assert page.locator("h1").inner_text() != second
    seen.press("u")
    page.wait_for_url("**/samples/alba?**")
    assert "q=BLUE" in page.url
    assert seen.console == []


def test_paging_and_the_back_button_work(visit, server):
    seen = visit(server + "/samples/alba")
    page = seen.page
    assert seen.lines()[0] == "scene-000"
    seen.press("n")
    expect(page.locator("tr[data-line] th").first).to_have_text("scene-050")
    page.locator("#to-last").press("Enter")
    expect(page.locator("tr[data-line] th").first).to_have_text("scene-100")
    assert page.locator("#status").inner_text() == "120 samples"
    page.go_back()
    expect(page.locator("tr[data-line] th").first).to_have_text("scene-050")
    assert seen.console == []


def test_ranges_and_metadata_filter_the_table(visit, server):
    seen = visit(server + "/samples/alba")
    page = seen.page
    page.locator("#values > summary").click()
    page.get_by_label("en 24").check()
    page.locator("#table").get_by_text("24 of 120 samples match").wait_for()
    page.get_by_text("Score ranges").click()
    page.locator("[name='min.rouge_l']").fill("0.99")
    page.get_by_text("No sample matches all 2 filters").wait_for()
    page.reload()
    assert page.locator("[name='min.rouge_l']").input_value() == "0.99"
    assert seen.console == []


def test_a_refused_comparison_shows_its_reason(visit, server, folder):
    other = folder / "other"
    texts = samples(1, folder.parent / "media")
    evaluate(texts, output=other, metrics=["bleu"], options={"bleu": {"tokenizer": "unicode"}})
    try:
        page = visit(server + "/compare?run=alba&run=other").page
        page.locator("#table").get_by_text("bleu cannot be compared, its signatures differ").wait_for()
        assert page.locator("h1").count() == 1
    finally:
        shutil.rmtree(other)


def test_audio_plays(visit, server):
    page = visit(server + "/sample/alba?row=5").page
    assert page.evaluate(
        "new Promise(done => { const a = document.querySelector('audio'); a.onended = () => done(true);"
        "a.onerror = () => done(a.error.message); a.muted = true; a.play(); })"
    )


def test_the_list_of_keys_opens_and_closes(visit, server):
    page = visit(server).page
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def test_pages_follow_a_run_in_progress(visit, folder, tmp_path):
    done = RunFolder(folder / "alba")
    running = RunFolder.create(tmp_path / "running", run_info())
    parts = [(0, 50), (50, 100), (100, 120)]
    for number, (start, end) in enumerate(parts):
        running.write_part("samples", number, done.read_part("samples", 0).slice(start, end - start))
    info = replace(done.read_info(), parts=[end - start for start, end in parts])
    running.write_info(replace(info, state="scoring"))
    with served(tmp_path) as address:
        seen, listed = visit(address + "/run/running"), visit(address + "/")
        for number, (start, end) in enumerate(parts):
            running.write_part("scores", number, done.read_part("scores", 0).slice(start, end - start))
            seen.page.get_by_text(f"{end} of 120").wait_for()
            listed.page.get_by_text(f"{end} of 120").wait_for()
        running.write_results(done.read_results())
        running.write_info(replace(info, state="done"))
        seen.page.get_by_role("heading", name="Scores").wait_for()
        listed.page.locator("td").get_by_text("done", exact=True).wait_for()
        assert (seen.console, listed.console) == ([], [])


def test_the_viewer_works_without_scripts(visit, server):
    seen = visit(server + "/samples/alba", java_script_enabled=False)
    page = seen.page
    page.locator("[name=q]").fill("blue")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#table [data-status]")).to_contain_text("of 120 samples match")
    page.locator("#sort-1").click()
    page.wait_for_url("**sort=**")
