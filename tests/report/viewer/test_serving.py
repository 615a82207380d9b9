"""Half-open requests are closed after a time, and do not keep the viewer from serving others."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from multimodal_eval.report.viewer.guard import viewer_server
from multimodal_eval.report.viewer.labelling.queue import LabelOptions
from tests.report.visits import served

PATIENCE = 600.0  # seconds until a test gives up
QUICK = 0.2  # the limit of time where the limit is what is tested


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    host, port = urlsplit(address).hostname, urlsplit(address).port
    with socket.create_connection((host, port), timeout=PATIENCE) as connection:
        yield connection


def all_received(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    content = b""
    try:
        while piece := connection.recv(65536):
            content += piece
    except ConnectionError:  # also a way to close
        pass
    return content


def get(address: str, *headers: str) -> bytes:
    return "\r\n".join(["GET / HTTP/1.1", f"Host: {urlsplit(address).netloc}", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    "half",
    [b"", b"GE", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "],
    ids=["nothing", "half a method", "a request line", "half a header"],
)
def test_half_a_request_is_closed(tmp_path: Path, half: bytes):
    with served(tmp_path, request_seconds=QUICK) as address, connected(address) as connection:
        connection.sendall(half)
        assert all_received(connection) == b""


@pytest.mark.parametrize("headers", [(), ("Content-Length: 1000000", "")], ids=["a header", "a body"])
def test_the_time_does_not_start_again_with_every_byte(tmp_path: Path, headers: tuple[str, ...]):
    with served(tmp_path, request_seconds=QUICK) as address, connected(address) as connection:
        connection.sendall(get(address, *headers).removesuffix(b"\r\n\r\n"))
        connection.settimeout(QUICK / 10)
        start = time.monotonic()
        while time.monotonic() < start + PATIENCE:
            try:
                connection.sendall(b"a")
                if connection.recv(65536) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("the connection stayed open")


def test_a_form_that_does_not_end_is_closed_and_nothing_is_saved(tmp_path: Path):
    file = tmp_path / "labels.jsonl"
    with served(tmp_path, LabelOptions(file=file), request_seconds=QUICK) as address, connected(address) as connection:
        headers = (f"Origin: {address}", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 1000")
        request = get(address, *headers).replace(b"GET / ", b"POST /label/annotator ")
        connection.sendall(request + b"annotator=ann&tok")
        assert all_received(connection) == b""
    assert not file.exists() or not file.read_bytes()


def test_too_many_half_open_connections_do_not_lock_others_out(tmp_path: Path):
    with served(tmp_path, request_seconds=PATIENCE, most_connections=3) as address, ExitStack() as stack:
        half_open = [stack.enter_context(connected(address)) for _ in range(3)]
        for connection in half_open:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        with urlopen(address, timeout=PATIENCE) as answer:
            assert answer.status == 200
        closed, _, _ = select.select(half_open, [], [], PATIENCE)
        assert len(closed) == 1
        assert all_received(closed[0]) == b""


def test_an_answer_may_take_longer_than_a_request():
    async def slow(scope, receive, send):
        await asyncio.sleep(3 * QUICK)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    server = viewer_server(slow, request_seconds=QUICK)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with connected(address) as connection:
            connection.sendall(get(address, "Connection: close"))  # before the server starts: it is there at once
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            thread.start()
            answer = all_received(connection)
        server.should_exit = True
        thread.join()
    assert answer.endswith(b"\r\n\r\ndone")
