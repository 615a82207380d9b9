"""The list of runs, the page of a run and live progress in Chromium, by mouse and keyboard."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from time import time

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.progress import ProgressRecord, write_progress
from tests.report.viewer.viewed import make_runs
from tests.report.visits import PHONE, expect, served, violations
from tests.run_info import run_info

PAGES = [
    "/",
    "/?metric=cider_d&metric=chair_s&sort=score.cider_d&desc=1",
    "/run/alba",
    "/run/small",
    "/run/live",
    "/histograms/alba",
    "/slices/alba",
]


def live(folder: Path, done: int, **fields: object) -> None:
    """Record the progress of the run `live`."""
    now = time()
    record = {"stage": "generating", "done": done, "total": 40, "started": now - 10, "advanced": now}
    record |= {"notes": ["3 errors, last: HTTP 429"], "host": socket.gethostname(), "pid": os.getpid()}
    write_progress(RunFolder(folder / "live"), ProgressRecord(**record | fields))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("matrix") / "runs"
    make_runs(runs)
    samples = [Sample(str(n), references=["a cat"], generated_answer="a cat" if n else "a dog") for n in range(4)]
    evaluate(samples, metrics=["rouge_l", "chair_s"], output=runs / "small")
    RunFolder.create(runs / "live", run_info(state="generating", parts=[20, 20], metrics=["rouge_l"]))
    live(runs, 10)
    return runs


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible_and_fit_a_phone(visit, server, path):
    seen = visit(server + path)
    page = seen.page
    page.wait_for_timeout(500)  # the list polls, so the network is never idle
    assert violations(page, "light", "dark")[0] == []
    for width in (PHONE["width"], 390):
        page.set_viewport_size({**PHONE, "width": width})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.console == []
    assert seen.elsewhere == []


def test_metrics_are_chosen_by_mouse_and_by_keyboard(visit, server):
    seen = visit(server)
    page = seen.page
    headers = page.locator(".matrix thead th")
    expect(headers.get_by_text("CIDEr-D")).to_have_count(1)
    page.get_by_text("Metrics", exact=True).click()
    page.get_by_role("checkbox", name="CIDEr-D").uncheck()
    expect(headers.get_by_text("CIDEr-D")).to_have_count(0)
    assert "metric=bleu" in page.url
    assert "metric=cider_d" not in page.url
    page.reload()
    box = page.get_by_role("checkbox", name="CIDEr-D")
    assert not box.is_checked()
    box.focus()
    seen.press("Space")
    expect(headers.get_by_text("CIDEr-D")).to_have_count(1)
    assert page.evaluate("document.activeElement.value") == "cider_d"
    assert seen.console == []


def test_a_metric_sorts_the_list_in_both_directions_and_keeps_the_focus(visit, server):
    seen = visit(server + "/?q=a+bleu")
    page = seen.page
    link = page.locator("thead").get_by_role("link", name="ROUGE-L")
    values = page.locator("td[data-head=ROUGE-L] .figures > span:first-child")
    for direction, reverse in (("ascending", False), ("descending", True)):
        link.press("Enter")
        page.locator(f"th[aria-sort={direction}]").get_by_text("ROUGE-L").wait_for()
        numbers = [float(text) for text in values.all_inner_texts()]
        assert len(numbers) > 1
        assert numbers == sorted(numbers, reverse=reverse)
        assert "ROUGE-L" in page.evaluate("document.activeElement.textContent")
    page.locator("#order-sort").select_option("score.cider_d")
    page.locator("th[aria-sort=descending]").get_by_text("CIDEr-D").wait_for()
    assert seen.console == []


def test_spreads_appear_in_visible_rows(visit, server):
    seen = visit(server + "/?q=boreas")
    expect(seen.page.locator(".matrix .sparkline")).to_have_count(3)
    assert "Histogram of bleu" in seen.page.locator(".matrix .sparkline").first.get_attribute("aria-label")
    assert seen.console == []


def test_polling_keeps_the_focus_and_the_selection(visit, folder, server):
    live(folder, 10)
    seen = visit(server)
    page = seen.page
    page.locator("tr", has_text="10 of 40").wait_for()
    box = page.get_by_role("checkbox", name="Select boreas")
    box.check()
    page.get_by_role("link", name="alba", exact=True).focus()
    live(folder, 30)
    page.locator("tr", has_text="30 of 40").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "alba"
    assert box.is_checked()
    page.locator("tr", has_text="3 errors, last: HTTP 429").wait_for()
    assert seen.console == []


def test_the_page_of_a_run_in_progress_keeps_the_focus(visit, folder, tmp_path):
    shutil.copytree(folder / "alba", tmp_path / "runs" / "live")
    run = RunFolder(tmp_path / "runs" / "live")
    info = run.read_info()
    run.write_info(msgspec.structs.replace(info, state="scoring"))
    record = {"stage": "scoring", "total": 120}
    live(tmp_path / "runs", 120, **record)
    with served(tmp_path / "runs") as address:
        seen = visit(address + "/run/live")
        page = seen.page
        page.get_by_role("link", name="their samples").focus()
        live(tmp_path / "runs", 120, **record, notes=["a new note"])
        page.get_by_text("a new note").wait_for()
        assert page.evaluate("document.activeElement.id") == "scored-samples"
        live(tmp_path / "runs", 120, **record, ended="the disk is full")
        page.get_by_text("It stopped: the disk is full").wait_for()
        assert page.locator("#progress[hx-get]").count() == 0
        assert seen.console == []


def test_the_report_opens_in_an_origin_of_its_own(visit, server):
    seen = visit(server + "/run/alba")
    page = seen.page
    page.get_by_role("link", name="Report", exact=True).click()
    page.wait_for_url("**/report/alba")
    page.locator("#theme").click()  # its own script, which shows this button, runs
    assert page.locator("html").get_attribute("data-theme") in ("light", "dark")
    assert page.evaluate("origin") == "null"
    read = "fetch('/run/alba').then(() => 'read', () => 'refused')"
    assert page.evaluate(read) == "refused"
    assert page.evaluate("(() => { try { return document.cookie } catch { return 'refused' } })()") == "refused"
    assert [line for line in seen.console if "/run/alba" not in line and "ERR_" not in line] == []  # but the refusal
    page.go_back()
    page.get_by_role("heading", name="Scores").wait_for()


def test_slices_and_histograms_are_loaded_into_the_page(visit, server):
    seen = visit(server + "/run/boreas")
    seen.page.get_by_role("heading", name="By place").wait_for()
    expect(seen.page.locator(".histograms svg")).to_have_count(3)
    assert seen.page.locator("#slices").count() == 1
    assert seen.console == []


def test_the_list_works_without_scripts(visit, server):
    seen = visit(server, java_script_enabled=False)
    page = seen.page
    page.get_by_text("Metrics", exact=True).click()
    page.get_by_role("checkbox", name="BLEU-4").uncheck()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".matrix thead").get_by_text("BLEU-4")).to_have_count(0)
    page.locator(".matrix thead").get_by_role("link", name="CIDEr-D").click()
    page.wait_for_url("**sort=score.cider_d**")
    page.get_by_role("link", name="deeper/cirrus").click()  # no other test has requested its slices
    page.get_by_role("link", name="Slices by other columns").click()
    page.get_by_role("heading", name="By place").wait_for()
