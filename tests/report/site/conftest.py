"""A site of three submissions, built once, and a plain file server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from multimodal_eval.report.site.build import write_site
from tests.report.site.boards import ranked

TITLE = "Captions of streets"


@pytest.fixture(scope="session")
def board_runs(tmp_path_factory):
    """A folder of runs and its leaderboard."""
    folder = tmp_path_factory.mktemp("board") / "runs"
    return folder, ranked(folder)


@pytest.fixture(scope="session")
def site(board_runs, tmp_path_factory) -> Path:
    """The folder of the site."""
    runs, board = board_runs
    folder: Path = tmp_path_factory.mktemp("site") / "site"
    write_site(folder, runs, board, title=TITLE)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """The handler of `python -m http.server`, without its log."""

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """Serve a folder as `python -m http.server` does; gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=["file", "http"])
def address(request, site) -> Iterator[str]:
    """The address of the site, on a disk and on a plain file host."""
    if request.param == "file":
        yield site.as_uri()
        return
    with file_server(site) as host:
        yield host
