"""Open pages in Chromium and record what happens on them."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from multimodal_eval.report.viewer.app import create_app
from multimodal_eval.report.viewer.guard import host_check
from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from tests.report.viewer.viewed import compared

AXE = Path(__file__).parent / "assets" / "axe.min.js"
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1200, "height": 900}
TIMEOUT = 120_000  # milliseconds: long enough for a slow machine
# Without swaps: axe would meet elements that a page with polls has just replaced.
EXAMINE = """async (options) => {
    const refuse = (event) => event.preventDefault();
    document.addEventListener("htmx:before:swap", refuse);
    const result = await axe.run(document, options);
    document.removeEventListener("htmx:before:swap", refuse);
    return result;
}"""
COLOURS = ["color-contrast", "link-in-text-block"]
IS_SLOW = bool(os.environ.get("MMEVAL_SLOW_BROWSER"))  # set by `.ci/long browser`


@contextmanager
def launched_chromium() -> Iterator[Any]:
    """A browser. None without one, or an error if MMEVAL_REQUIRE_BROWSER is set."""
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if os.environ.get("MMEVAL_REQUIRE_BROWSER"):
            raise RuntimeError("chromium or playwright is missing, and MMEVAL_REQUIRE_BROWSER is set")
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield browser
        browser.close()


def slow_down(page: Any, latency: int = 400) -> None:
    """Delay every answer of the server by some milliseconds, so that a test that does not wait for a change fails."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    unlimited = {"downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", {"offline": False, "latency": latency, **unlimited})


class Visit:
    """An open page with its console output, dialogs and requests."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.host = urlsplit(address)[:2]
        self._has_scripts = options.get("java_script_enabled", True)
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(TIMEOUT)
        self.page = self.context.new_page()
        if IS_SLOW:
            slow_down(self.page)
        self.console: list[str] = []
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._read)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.go(address)

    def _read(self, message: Any) -> None:
        # htmx reports it as an error when a newer request of the same form replaces one that is still under way.
        if "AbortError: signal is aborted" not in message.text:
            self.console.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def go(self, address: str, until: str = "load") -> None:
        """Open an address and wait until it is loaded."""
        self.page.goto(address, wait_until=until)
        if until == "load":
            self._wait_for_htmx()

    def _wait_for_htmx(self) -> None:
        """htmx starts a moment after the page is loaded; before that, what is typed or pressed does not reach it."""
        if self._has_scripts:
            expect(self.page.locator("[hx-get]:not([data-htmx-powered])")).to_have_count(0)

    @property
    def elsewhere(self) -> list[str]:
        """Requests to other servers than that of the first address."""
        return [url for url in self.requests if urlsplit(url).scheme != "data" and urlsplit(url)[:2] != self.host]

    @property
    def loaded(self) -> list[str]:
        """Requests other than for the page and its data URIs."""
        return [url for url in self.requests[1:] if not url.startswith("data:")]

    def lines(self) -> list[str]:
        """The names in the rows of the viewer's table."""
        return list(self.page.locator("tr[data-line] th").all_inner_texts())

    def press(self, *keys: str) -> None:
        self.page.wait_for_load_state()  # before that, the page may not listen to keys yet
        self._wait_for_htmx()
        for key in keys:
            self.page.keyboard.press(key)


def violations(page: Any, *schemes: str) -> tuple[list[tuple[str, str, str]], int]:
    """The rules of axe that a page violates, with all details open, and how many it passes: in the first colour scheme.

    In the others, only the rules about colours: styles of a scheme change nothing else.
    """
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    results: list[dict[str, list[Any]]] = []
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        results.append(page.evaluate(EXAMINE, {"runOnly": COLOURS} if results else {}))
    rules = [rule for result in results for rule in result["violations"]]
    violated = [(rule["id"], rule["impact"], rule["nodes"][0]["html"][:300]) for rule in rules]
    return violated, len(results[0]["passes"])


def expect(locator: Any) -> Any:
    """Playwright's waiting assertions. Imported here because Playwright may be missing if tests are skipped."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=TIMEOUT)
    return assertions(locator)


@contextmanager
def served(
    folder: Path, label: LabelOptions | None = None, media_roots: Sequence[Path] = (), **limits: Any
) -> Iterator[str]:
    """Serve the folder in another thread; gives the address. `limits` are those of `viewer_server`."""
    from multimodal_eval.report.viewer.guard import viewer_server

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # from now on a connection waits for the server and is not refused
    port = listening.getsockname()[1]
    accepts_host = host_check("127.0.0.1", port)
    app = create_app(folder, compare=compared, accepts_host=accepts_host, label=label, media_roots=media_roots)
    server = viewer_server(app, **limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
