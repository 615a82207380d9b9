"""Pictures of samples: what is decoded is what the key was made of."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from multimodal_eval.core.errors import ImageError
from multimodal_eval.evaluation.pictures import Spool, pictures_of
from multimodal_eval.media import remote
from multimodal_eval.media.policy import MediaPolicy, using
from tests.media.pictures import encoded


def plain(colour):
    return Image.new("RGB", (4, 4), colour)


@contextmanager
def changing_server():
    """Every answer is another picture."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = encoded(plain((len(asked), 0, 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield asked, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_address_is_asked_once(monkeypatch):
    monkeypatch.setattr(remote, "fetch", partial(remote.fetch, is_allowed=lambda address: True))
    with changing_server() as (asked, address), using(MediaPolicy(allow_urls=True)):
        sources = [f"{address}/{number}.png" for number in (1, 2, 1)]
        with pictures_of(sources) as found:
            colours = [picture.open().getpixel((0, 0)) for picture in found]
    assert sorted(asked) == ["/1.png", "/2.png"]
    assert colours[0] == colours[2] != colours[1]
    assert found[0].key == found[2].key != found[1].key


def test_addresses_are_asked_together(monkeypatch):
    barrier = threading.Barrier(8, timeout=10)

    def fetch(url, **_):
        barrier.wait()
        return encoded(plain("red"))

    monkeypatch.setattr(remote, "fetch", fetch)
    with using(MediaPolicy(allow_urls=True)), pictures_of([f"https://h/{n}.png" for n in range(8)]) as found:
        assert [picture.fault for picture in found] == [None] * 8


def test_a_file_that_changes_is_refused(tmp_path):
    path = tmp_path / "one.png"
    path.write_bytes(encoded(plain("red")))
    with pictures_of([str(path), path]) as found:
        assert found[0].open().getpixel((0, 0)) == (255, 0, 0)
        path.write_bytes(encoded(plain("blue")))
        for picture in found:
            with pytest.raises(ImageError, match="changed while it was being read"):
                picture.open()


def test_what_cannot_be_read_says_why(tmp_path):
    sources = ["nowhere.png", 3, encoded(plain("red"))]
    with using(MediaPolicy(root=tmp_path)), pictures_of(sources) as found:
        assert "nowhere.png" in found[0].fault
        assert "must be a path" in found[1].fault
        assert found[2].fault is None
        assert found[2].open().getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("in_memory", [1, 1 << 20])
def test_a_spool_gives_back_what_it_was_given(in_memory):
    with Spool(in_memory) as spool:
        contents = [bytes([number]) * number for number in range(50)]
        again = [spool.keep(content) for content in contents]
        assert [one() for one in reversed(again)] == contents[::-1]
