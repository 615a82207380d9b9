"""Labelling in Chromium: by mouse, by keyboard, on a phone, without scripts; and forms of other sites."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from tests.report.viewer.labelling.annotators import make_labelled_runs, records
from tests.report.viewer.viewed import make_runs
from tests.report.visits import PHONE, Visit, expect, served, violations

SCALES = {
    "pairwise": {"pairwise": True, "runs": ("alba", "boreas")},
    "choices": {"scale": "1-5", "question": "How well does the answer describe the image?"},
    "classes": {"scale": "poor,fair,good,very good indeed", "annotator": "A very long name of an annotator, PhD"},
    "number": {"scale": "0-100"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browsed") / "runs"
    make_runs(folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def start(seen: Visit, name: str = "ann") -> None:
    """Give a name and wait for the first item."""
    seen.page.get_by_label("Your name").fill(name)
    seen.press("Enter")
    wait_for(seen, 1)


def item(seen: Visit) -> int:
    """The number of the open item."""
    return int(seen.page.locator("h1").inner_text().split()[1])


def wait_for(seen: Visit, number: int) -> None:
    """Wait for an item and for the script that reads the keys."""
    expect(seen.page.locator("h1")).to_contain_text(f" {number} of")
    seen.page.wait_for_load_state()


@pytest.mark.parametrize("name", SCALES)
def test_pages_are_accessible_and_fit_a_phone(visit, folder, file, name):
    with served(folder, LabelOptions(file=file, labels=4, **SCALES[name])) as address:
        seen = visit(address + "/label")
        if "annotator" not in SCALES[name]:
            start(seen)
        else:
            seen.page.get_by_text("Start as").click()
        page = seen.page
        if name == "number":
            page.keyboard.type("55")
            seen.press("Enter")
        else:
            page.locator(".label-choices button").first.click()
        wait_for(seen, 2)
        for path in (page.url, f"{address}/label", f"{address}/label/mine", f"{address}/notes/alba"):
            seen.go(path, until="networkidle")
            violated, passed = violations(page, "light", "dark")
            assert violated == [], path
            assert passed > 15
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], path
            page.set_viewport_size({"width": 1200, "height": 900})
        assert seen.console == []
        assert page.locator("img").first.evaluate("image => image.naturalWidth") > 0


def test_comparisons_by_keyboard(visit, folder, file):
    with served(folder, LabelOptions(file=file, labels=5, pairwise=True, runs=("alba", "boreas"))) as address:
        seen = visit(address + "/label")
        start(seen)
        sides = []
        for number, key in enumerate(("ArrowLeft", "ArrowRight", "ArrowDown", "s"), 1):
            wait_for(seen, number)
            sides.append(seen.page.locator(".label-text").first.inner_text())
            seen.press(key)
        wait_for(seen, 5)
        seen.press("u")
        wait_for(seen, 4)
        seen.press("u")
        wait_for(seen, 3)
        seen.press("ArrowLeft")
        wait_for(seen, 4)
        seen.press("c")
        seen.page.keyboard.type("s, u and 1 are letters here")
        seen.press("ArrowLeft", "ArrowDown")  # in the field, arrows move the cursor
        assert item(seen) == 4
        seen.press("Escape", "ArrowRight")
        wait_for(seen, 5)
        assert seen.console == []
    labels = records(file)
    assert [each.get("action") for each in labels] == [None, None, None, "skip", "undo", "undo", None, None]
    given = {"left": "win", "right": "loss"}
    for each, side in zip(labels, ("left", "right"), strict=False):
        first_is_left = each["left"] == "alba"
        assert each["label"] == (given[side] if first_is_left else {"win": "loss", "loss": "win"}[given[side]])
    assert labels[2]["label"] == "tie"
    assert labels[-1]["comment"] == "s, u and 1 are letters here"
    assert len(set(sides)) == 4


def test_a_scale_by_keyboard_and_mouse(visit, folder, file):
    with served(folder, LabelOptions(file=file, labels=4, scale="1-5")) as address:
        seen = visit(address + "/label")
        start(seen, "Zoë <b>")
        seen.press("7")  # not on the scale
        seen.page.wait_for_timeout(200)
        assert item(seen) == 1
        seen.press("4")
        wait_for(seen, 2)
        seen.page.get_by_role("button", name="2", exact=True).click()
        wait_for(seen, 3)
        seen.page.get_by_role("link", name="My labels").click()
        seen.page.locator("tr[data-line] a").first.click()
        wait_for(seen, 2)
        expect(seen.page.locator("[aria-current=true]")).to_have_text("2")
        seen.press("5")
        wait_for(seen, 3)
        seen.press("?")
        assert seen.page.locator("#keys").get_by_text("skip").is_visible()
        seen.press("1")  # the list of keys is open
        assert item(seen) == 3
        assert seen.console == []
    assert [(each["label"], each["annotator"]) for each in records(file)] == [
        (4, "Zoë <b>"),
        (2, "Zoë <b>"),
        (5, "Zoë <b>"),
    ]


def test_yes_and_no_by_keyboard(visit, folder, file):
    with served(folder, LabelOptions(file=file, labels=3, metric="rouge_l")) as address:
        seen = visit(address + "/label")
        start(seen)
        seen.press("y")
        wait_for(seen, 2)
        seen.press("n")
        wait_for(seen, 3)
        assert seen.console == []
    assert [each["label"] for each in records(file)] == ["yes", "no"]


def test_a_key_that_is_held_down_gives_one_label(visit, folder, file):
    with served(folder, LabelOptions(file=file, labels=4, scale="1-5")) as address:
        seen = visit(address + "/label")
        start(seen)
        for _ in range(30):  # without a key-up in between, these are repeats
            seen.page.keyboard.down("3")
            seen.page.wait_for_timeout(20)
        wait_for(seen, 2)
        seen.page.keyboard.up("3")
        seen.press("2")
        wait_for(seen, 3)
    assert [each["label"] for each in records(file)] == [3, 2]


def test_everything_works_without_scripts(visit, folder, file):
    with served(folder, LabelOptions(file=file, labels=2, pairwise=True, runs=("alba", "boreas"))) as address:
        seen = visit(address + "/label", java_script_enabled=False, viewport=PHONE)
        page = seen.page
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("button", name="Start").click()
        page.locator("summary").click()
        page.locator("#comment").fill("no scripts")
        page.get_by_role("button", name="Tie").click()
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("button", name="Left is better").click()
        page.get_by_role("button", name="Skip").click()
        expect(page.locator("main")).to_contain_text("All 2 done")
        seen.go(address + "/run/alba")
        page.get_by_role("link", name="Add tags or a note").click()
        page.get_by_label("Tags").fill("x, y")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".run-tag")).to_have_text(["x", "y"])
        page.locator(".run-tag").first.click()
        expect(page.locator("tr[data-line]")).to_have_count(1)
    assert records(file)[0]["label"] == "tie"
    assert len(records(file)) == 4
    (folder / ".mmeval-notes.jsonl").unlink()


def test_notes_are_edited_in_their_place(visit, tmp_path):
    folder = tmp_path / "runs"
    make_labelled_runs(folder, 3)
    with served(folder, LabelOptions(file=tmp_path / "labels.jsonl", scale="1-5")) as address:
        seen = visit(address + "/run/parrot")
        page = seen.page
        page.locator("#edit-notes").press("Enter")
        page.get_by_label("Tags").fill("good")
        page.get_by_label("Note", exact=True).fill("because")
        page.get_by_role("button", name="Save").click()
        page.locator(".run-note").get_by_text("because").wait_for()
        assert page.url == f"{address}/run/parrot"
        seen.go(address + "/")
        page.locator("select[name=tag]").select_option("good")
        expect(page.locator("tr[data-line]")).to_have_count(1)
        page.get_by_role("link", name="edit").click()
        page.get_by_label("Tags").fill("good, better")
        seen.press("Enter")
        page.locator(".run-tag").get_by_text("better").wait_for()
        for path in ("/", "/run/parrot"):
            seen.go(address + path, until="networkidle")
            assert violations(page, "light", "dark")[0] == []
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert seen.console == []


# other sites

PAGE = """<form id="plain" method="post" action="{target}"><input name="label" value="5"></form>
<form id="text" method="post" enctype="text/plain" action="{target}"><input name="label" value="5"></form>
<form id="parts" method="post" enctype="multipart/form-data" action="{target}"><input name="label" value="5"></form>
"""

SENDING = """async ([target, mode]) => {
    const body = new URLSearchParams({label: 5});
    try {
        return (await fetch(target, {method: "POST", mode, credentials: "include", body})).type;
    } catch {
        return "refused";
    }
}"""


@pytest.fixture
def other_site() -> Iterator[tuple[int, list[str]]]:
    """A server of somebody else; the list has the address that its forms lead to."""
    target = [""]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.format(target=target[0]).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port, target
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])  # the same site with another port, and another site
def test_forms_of_other_sites_write_nothing(chromium, folder, file, other_site, host):
    port, target = other_site
    with served(folder, LabelOptions(file=file, labels=4, scale="1-5")) as address:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(address + "/label")
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/item/**")
        item = page.url
        for place in (item, f"{address}/label/undo", f"{address}/notes/alba", f"{address}/label/annotator"):
            target[0] = place
            for form in ("plain", "text", "parts"):
                other = context.new_page()
                other.goto(f"http://{host}:{port}/")
                with other.expect_navigation() as navigation:
                    other.evaluate(f"document.getElementById('{form}').submit()")
                assert navigation.value.status == 403, (place, form)
                other.close()
            other = context.new_page()
            other.goto(f"http://{host}:{port}/")
            for mode in ("no-cors", "cors"):
                assert other.evaluate(SENDING, [place, mode]) in ("refused", "opaque")
            other.evaluate("target => navigator.sendBeacon(target, new URLSearchParams({label: 5}))", place)
            other.close()
        assert records(file) == []
        page.bring_to_front()
        page.keyboard.press("5")  # the own page still works
        page.wait_for_selector(".last")
        context.close()
    assert [each["label"] for each in records(file)] == [5]
