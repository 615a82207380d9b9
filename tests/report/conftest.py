"""Chromium, where it is; and small runs to report on."""

from __future__ import annotations

import os
import shutil

import pytest

from multimodal_eval.core.sample import Sample
from multimodal_eval.run.evaluate import evaluate


@pytest.fixture(scope="session")
def chromium():
    """A browser; the test is skipped where there is none, unless MMEVAL_REQUIRE_BROWSER is set."""
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if os.environ.get("MMEVAL_REQUIRE_BROWSER"):
            pytest.fail("chromium or playwright is missing, and MMEVAL_REQUIRE_BROWSER is set")
        pytest.skip("needs chromium and playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield browser
        browser.close()


class Visit:
    """A page that is open, and what happened there."""

    def __init__(self, browser, file, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.said, self.asked, self.requests = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.asked.append(dialog.message), dialog.dismiss()))
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_load_state("load")

    @property
    def loaded(self):
        """Requests for anything but the file and what stands in it."""
        return [url for url in self.requests[1:] if not url.startswith("data:")]


@pytest.fixture
def visit(chromium):
    visits = []

    def open_file(file, **options):
        visits.append(Visit(chromium, file, **options))
        return visits[-1]

    yield open_file
    for one in visits:
        one.context.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two systems describe thirty things of three kinds; the second is worse, and fails once."""
    folder = tmp_path_factory.mktemp("runs")
    config = {
        "task": "mine",
        "tasks": {"mine": {"metrics": ["rouge_l", "exact_match"], "weights": {"rouge_l": 0.75, "exact_match": 0.25}}},
    }
    found = []
    for system in ("good", "bad"):
        samples = []
        for number in range(30):
            kind = ("dog", "cat", "cow")[number % 3]
            right = f"a red {kind} number {number} runs"
            wrong = number % (4 if system == "good" else 2) == 1
            answer = f"the {kind} sleeps" if wrong else right
            error = "timed out" if system == "bad" and number == 6 else None
            metadata = {"kind": kind, "number": number}
            samples.append(
                Sample(id=f"s{number}", references=[right], generated_answer=answer, error=error, metadata=metadata)
            )
        found.append(evaluate(samples, config=config, output=folder / system))
    return found
