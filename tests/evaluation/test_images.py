"""Images of samples: the decoded image has the content of its key."""

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from multimodal_eval.core.errors import ImageError
from multimodal_eval.evaluation.image_reader import Spool, images_of
from multimodal_eval.media import remote
from multimodal_eval.media.policy import MediaPolicy, using
from tests.media.image_files import encoded


def plain(colour):
    return Image.new("RGB", (4, 4), colour)


@contextmanager
def changing_server():
    """Serves a different image for every request."""
    requested, numbers = [], itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            body = encoded(plain((next(numbers), 0, 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield requested, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_url_is_requested_once(monkeypatch):
    monkeypatch.setattr(remote, "fetch", partial(remote.fetch, is_allowed=lambda address: True))
    with changing_server() as (requested, address), using(MediaPolicy(allow_urls=True)):
        sources = [f"{address}/{number}.png" for number in (1, 2, 1)]
        with images_of(sources) as images:
            colours = [image.open().getpixel((0, 0)) for image in images]
    assert sorted(requested) == ["/1.png", "/2.png"]
    assert colours[0] == colours[2] != colours[1]
    assert images[0].key == images[2].key != images[1].key


def test_urls_are_requested_in_parallel(monkeypatch):
    barrier = threading.Barrier(8, timeout=600)

    def fetch(url, **_):
        barrier.wait()
        return encoded(plain("red"))

    monkeypatch.setattr(remote, "fetch", fetch)
    with using(MediaPolicy(allow_urls=True)), images_of([f"https://h/{n}.png" for n in range(8)]) as images:
        assert [image.fault for image in images] == [None] * 8


def test_a_file_that_changes_is_refused(tmp_path):
    path = tmp_path / "one.png"
    path.write_bytes(encoded(plain("red")))
    with images_of([str(path), path]) as images:
        assert images[0].open().getpixel((0, 0)) == (255, 0, 0)
        path.write_bytes(encoded(plain("blue")))
        for image in images:
            with pytest.raises(ImageError, match="changed while it was being read"):
                image.open()


def test_an_unreadable_image_has_a_reason(tmp_path):
    sources = ["nowhere.png", 3, encoded(plain("red"))]
    with using(MediaPolicy(root=tmp_path)), images_of(sources) as images:
        assert "nowhere.png" in images[0].fault
        assert "must be a path" in images[1].fault
        assert images[2].fault is None
        assert images[2].open().getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("in_memory", [1, 1 << 20])
def test_a_spool_returns_the_stored_content(in_memory):
    with Spool(in_memory) as spool:
        contents = [bytes([number]) * number for number in range(50)]
        readers = [spool.keep(content) for content in contents]
        assert [read() for read in reversed(readers)] == contents[::-1]
