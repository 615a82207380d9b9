"""A page of another site, in a real browser: its links lead to the first page of the viewer and to nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from multimodal_eval import evaluate
from tests.report.visits import served
from tests.run.caption_samples import samples

PAGE = """<a id="first" href="{viewer}/">first</a>
<a id="numbers" href="{viewer}/compare/numbers?run=a&run=b">numbers</a>
<a id="run" href="{viewer}/run/a">run</a><img id="media" src="{viewer}/media/a?row=0">"""


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[str]:
    for name in ("a", "b"):
        evaluate(samples(6), metrics=["rouge_l"], output=tmp_path / "runs" / name)
    with served(tmp_path / "runs") as address:
        yield address


@pytest.fixture
def other_site(viewer: str) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.format(viewer=viewer).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])  # the same site with another port, and another site
def test_only_the_first_page_can_be_linked_to(chromium, viewer, other_site, host):
    for link, status in (("first", 200), ("numbers", 403), ("run", 403)):
        page = chromium.new_page()
        page.goto(f"http://{host}:{other_site}/")
        with page.expect_navigation() as navigation:
            page.click(f"#{link}")
        assert navigation.value.status == status, link
        page.close()


def test_links_of_the_viewer_work(chromium, viewer):
    page = chromium.new_page()
    page.goto(f"{viewer}/")
    page.click("a[href='/run/a']")
    page.wait_for_url("**/run/a")
    page.wait_for_selector("text=signatures")
    page.close()
