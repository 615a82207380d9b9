"""The viewer in Chromium: what people do with it, by keyboard and on a phone, and that no text in it does anything."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from multimodal_eval.core.records import StoredSignature
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.viewer.app import create_app
from multimodal_eval.report.viewer.guard import own_names
from tests.report.hostile import KINDS, PAYLOADS, PER_RUN, hostile_run
from tests.report.viewed import client, compared, make_runs
from tests.run_info import run_info

AXE = Path(__file__).parent / "assets" / "axe.min.js"
PHONE = {"width": 360, "height": 740}
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


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server for the folder, in a thread of its own."""
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = create_app(folder, compare=compared, is_own=own_names("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("browsed") / "runs"
    make_runs(place)
    return place


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


class Visit:
    """A page that is open, and what happened there."""

    def __init__(self, browser, address: str, path: str, **options):
        self.address = address
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.context.on("request", lambda request: self._asked(request.url))
        self.go(path)

    def _dismiss(self, dialog: Any) -> None:
        self.asked.append(dialog.message)
        dialog.dismiss()

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address + "/", "data:")):
            self.elsewhere.append(url)

    def go(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.page.wait_for_load_state("networkidle")

    def lines(self) -> list[str]:
        """The names in the lines of the table."""
        return list(self.page.locator("tr[data-line] th").all_inner_texts())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


def expect(locator: Any) -> Any:
    """Playwright's assertions, which wait; it may be missing where these tests are skipped."""
    from playwright.sync_api import expect as assertions

    return assertions(locator)


@pytest.fixture
def visit(chromium) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def open_page(address: str, path: str = "/", **options) -> Visit:
        visits.append(Visit(chromium, address, path, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        assert (one.asked, one.elsewhere) == ([], [])
        one.context.close()


@pytest.mark.parametrize("path", PAGES)
def test_pages_open_silently_and_fit_a_phone(visit, server, path):
    seen = visit(server, path, viewport=PHONE)
    assert seen.said == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible(visit, server, path, scheme):
    page = visit(server, path, color_scheme=scheme, bypass_csp=True).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    assert [(one["id"], one["nodes"][0]["html"][:300]) for one in found["violations"]] == []
    assert len(found["passes"]) > 15


def test_runs_are_searched_sorted_and_compared_by_keyboard(visit, server):
    seen = visit(server)
    page = seen.page
    seen.press("/")
    page.keyboard.type("alb")
    expect(page.locator("tr[data-line]")).to_have_count(1)
    assert "q=alb" in page.url
    for _ in range(3):
        seen.press("Backspace")
    expect(page.locator("tr[data-line]")).to_have_count(3)
    page.locator("#sort-name").press("Enter")
    page.locator("th[aria-sort=descending]").wait_for()
    assert seen.lines() == ["deeper/cirrus", "boreas", "alba"]
    assert page.evaluate("document.activeElement.id") == "sort-name"
    assert page.locator("#order-desc").input_value() == "1"
    seen.press("j", "j", "x", "j", "x")
    page.locator("#compare-button").press("Enter")
    page.get_by_text("Paired differences").wait_for()
    assert page.locator("h1").inner_text() == "Comparison of 2 runs"
    seen.press("n")
    page.wait_for_url("**/pairs?**")
    first = seen.lines()[0]
    page.locator("#order-desc").select_option("1")
    expect(page.locator("tr[data-line] th").first).not_to_have_text(first)
    assert "desc=1" in page.url
    seen.press("Escape", "u")
    page.wait_for_url("**/compare?**")
    assert seen.said == []


def test_samples_are_found_and_read_by_keyboard(visit, server):
    seen = visit(server, "/run/alba")
    page = seen.page
    seen.press("n")
    page.wait_for_url("**/samples/alba")
    for direction in ("ascending", "descending"):
        page.get_by_role("link", name="rouge_l").press("Enter")
        page.locator(f"th[aria-sort={direction}]").get_by_text("rouge_l").wait_for()
    assert page.locator("#order-sort").input_value() == "rouge_l"
    seen.press("/")
    page.keyboard.type("BLUE")
    page.locator("#table").get_by_text("of 120 samples fit").wait_for()
    assert "sort=rouge_l" in page.url  # a search keeps the order
    assert page.evaluate("document.activeElement.name") == "q"
    seen.press("Escape", "j", "j")
    second = seen.lines()[1]
    seen.press("Enter")
    page.wait_for_url("**/sample/alba?**")
    assert page.locator("h1").inner_text() == second
    assert page.locator("mark.match-2").count() > 0
    assert page.locator("figure img").evaluate("image => image.naturalWidth") == 40
    seen.press("p")
    page.wait_for_url("**at=0**")
    assert page.locator("h1").inner_text() != second
    seen.press("u")
    page.wait_for_url("**/samples/alba?**")
    assert "q=BLUE" in page.url
    assert seen.said == []


def test_pages_are_turned_and_the_way_back_works(visit, server):
    seen = visit(server, "/samples/alba")
    page = seen.page
    assert seen.lines()[0] == "scene-000"
    seen.press("n")
    expect(page.locator("tr[data-line] th").first).to_have_text("scene-050")
    page.locator("#to-last").press("Enter")
    expect(page.locator("tr[data-line] th").first).to_have_text("scene-100")
    assert page.locator("#said").inner_text() == "120 samples"
    page.go_back()
    expect(page.locator("tr[data-line] th").first).to_have_text("scene-050")
    assert seen.said == []


def test_ranges_and_metadata_narrow_the_table(visit, server):
    seen = visit(server, "/samples/alba")
    page = seen.page
    page.get_by_label("Metadata").select_option("language")
    page.get_by_label("is", exact=True).fill("en")
    page.locator("#table").get_by_text("24 of 120 samples fit").wait_for()
    page.get_by_text("Ranges of numbers").click()
    page.locator("[name='min.rouge_l']").fill("0.99")
    page.get_by_text("No sample fits").wait_for()
    page.reload()
    assert page.locator("[name='min.rouge_l']").input_value() == "0.99"
    assert seen.said == []


def test_what_cannot_be_compared_is_told_in_its_place(visit, server, folder):
    info = RunFolder(folder / "boreas").read_info()
    changed = StoredSignature("bleu|v:0", {"metric": "bleu", "version": "0"})
    other = RunFolder(folder / "other")
    shutil.copytree(folder / "boreas", folder / "other")
    other.write_info(replace(info, signatures={**info.signatures, "bleu": changed}))
    try:
        page = visit(server, "/compare?run=alba&run=other").page
        page.locator("#table").get_by_text("bleu cannot be compared, its signatures differ").wait_for()
        assert page.locator("h1").count() == 1
    finally:
        shutil.rmtree(folder / "other")


def test_sounds_play(visit, server):
    page = visit(server, "/sample/alba?row=5").page
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


def test_a_run_that_goes_on_is_followed(visit, folder, tmp_path):
    done = RunFolder(folder / "alba")
    going = RunFolder.create(tmp_path / "going", run_info())
    parts = [(0, 50), (50, 100), (100, 120)]
    for number, (start, end) in enumerate(parts):
        going.write_part("samples", number, done.read_part("samples", 0).slice(start, end - start))
    info = replace(done.read_info(), parts=[end - start for start, end in parts])
    going.write_info(replace(info, state="scoring"))
    with served(tmp_path) as address:
        seen, listed = visit(address, "/run/going"), visit(address, "/")
        for number, (start, end) in enumerate(parts):
            going.write_part("scores", number, done.read_part("scores", 0).slice(start, end - start))
            seen.page.get_by_text(f"{end} of 120").wait_for()
            listed.page.get_by_text(f"{end} of 120").wait_for()
        going.write_results(done.read_results())
        going.write_info(replace(info, state="done"))
        seen.page.get_by_role("heading", name="Numbers").wait_for()
        listed.page.locator("td").get_by_text("done", exact=True).wait_for()
        assert (seen.said, listed.said) == ([], [])


def test_it_works_without_scripts(visit, server):
    seen = visit(server, "/samples/alba", java_script_enabled=False)
    page = seen.page
    page.locator("[name=q]").fill("blue")
    page.get_by_role("button", name="Apply").click()
    assert "of 120 samples fit" in page.locator("#table [data-said]").inner_text()
    page.locator("#sort-1").click()
    assert "sort=" in page.url


# hostile texts

TAGS = set(
    "html head meta title link script body a header div nav span button main h1 h2 p form label input select option "
    "datalist details summary fieldset legend table thead tbody tr th td caption img audio figure figcaption dl dt dd "
    "ul li mark bdi code strong svg line rect progress noscript dialog kbd wbr".split()
)


class Elements(HTMLParser):
    """The elements of a page, and attributes that could run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.bad: list[str] = []
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.scripts += tag == "script"
        for name, value in attributes:
            goes = (value or "").strip().lower()
            leads_out = name in ("href", "src", "action", "hx-get") and not goes.startswith(("/", "#"))
            if name.startswith(("on", "hx-on", "style", "srcdoc", "formaction")) or leads_out:
                self.bad.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile") / "runs"
    for number in range(len(PAYLOADS) // PER_RUN):
        hostile_run(place / f"h{number}", PAYLOADS[number * PER_RUN : (number + 1) * PER_RUN])
    evil = place / "<script>alert(1)<" / "script>\"'><img src=x onerror=alert(1)>"
    evil.parent.mkdir()
    hostile_run(evil, PAYLOADS[:PER_RUN])
    return place


def test_no_text_becomes_an_element(hostile):
    """Five hundred texts, in every field of a sample and of a run: the pages keep their own elements."""
    browser = client(hostile)
    names = [name for name in sorted(path.name for path in hostile.iterdir()) if name.startswith("h")]
    evil = quote("<script>alert(1)</script>\"'><img src=x onerror=alert(1)>", safe="/")
    assert browser.get(f"/run/{evil}").status_code == 200
    addresses = ["/", f"/run/{evil}", f"/samples/{evil}", f"/sample/{evil}?row=1"]
    for name in names:
        addresses += [
            f"/run/{name}",
            f"/samples/{name}?offset=0",
            f"/samples/{name}?offset=50",
            f"/samples/{name}?status=error",
        ]
        addresses += [f"/sample/{name}?row={row}&at={row}" for row in range(PER_RUN)]
    addresses += ["/pairs?run=h0&run=" + evil]
    addresses += [
        f"/samples/h0?q={quote(kind[:400])}&meta={quote(kind[:400])}&value=x" for kind in KINDS if "\0" not in kind
    ]
    addresses += [f"/run/{quote(kind[:400], safe='')}" for kind in KINDS] + [
        f"/?q={quote(kind[:400])}" for kind in KINDS
    ]
    for address in addresses:
        answer = browser.get(address)
        assert answer.status_code < 500, address
        found = Elements(answer.text)
        assert found.tags <= TAGS, (address, found.tags - TAGS)
        assert (found.bad, found.scripts) == ([], 2), address


def test_no_text_runs_in_a_browser(visit, hostile):
    with served(hostile) as address:
        seen = visit(address)
        page = seen.page
        paths = [
            "/",
            "/run/h0",
            "/samples/h0",
            "/samples/h0?offset=50",
            "/pairs?run=h0&run=h1",
            "/compare?run=h0&run=h1",
        ]
        paths += [f"/run/h{number}" for number in range(1, 5)] + [
            f"/samples/h{number}?sort=meteor" for number in range(1, 5)
        ]
        paths += [f"/sample/h0?row={row}&at={row}" for row in range(len(KINDS))]
        for path in paths:
            seen.go(path)
            assert page.evaluate("window.__pwned") is None, path
        # Missing pictures and sounds, and a comparison that is refused; nothing else.
        assert {line for line in seen.said if "Failed to load resource" not in line} == set()


def test_directions_and_invisible_characters_are_shown_by_their_codes(hostile):
    row = next(number for number, kind in enumerate(KINDS) if "\u202e" in kind)
    text = client(hostile).get(f"/sample/h0?row={row}").text
    assert "\u202e" not in text
    assert '<span class="code-point">U+202E</span>' in text
