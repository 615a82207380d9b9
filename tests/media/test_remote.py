"""Images from the network: which requests are never sent, and what a hostile server cannot do.

The servers here are real servers on this machine, which the real predicate refuses. Tests that need an answer pass
another predicate and resolver.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
import time

import pytest

from multimodal_eval.core.errors import ImageError
from multimodal_eval.media.remote import MAX_REDIRECTS, is_public
from tests.media.web import BODY, get, plain, saying, serving

# requests


def test_the_content_and_the_request():
    with serving(plain) as server:
        assert get(server.url("/a b?q=ü".replace(" ", "%20"))) == BODY
        (head,) = server.heads
    lines = head.split("\r\n")
    assert lines[0] == "GET /a%20b?q=%C3%BC HTTP/1.1"
    assert f"Host: images.example:{server.port}" in lines
    assert "Accept-Encoding: identity" in lines


def test_bodies_in_chunks_and_without_a_length():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n6\r\n image\r\n0\r\n\r\n"
    for answer in (chunked, b"HTTP/1.0 200 OK\r\n\r\n" + BODY):
        with serving(saying(answer)) as server:
            assert get(server.url()) == BODY


def test_the_host_is_resolved_once_and_the_checked_address_is_used():
    """DNS rebinding: a second lookup would return another address, but there is only one lookup."""
    lookups = []

    def rebinding(host, port):
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["192.0.2.1"]

    with serving(plain) as server:
        assert get(server.url(), resolver=rebinding, is_allowed=lambda address: address == "127.0.0.1") == BODY
    assert lookups == ["images.example"]


def test_one_private_address_among_public_ones_is_refused():
    with serving(plain) as server, pytest.raises(ImageError, match=r"10\.0\.0\.1, which is not public"):
        get(
            server.url(),
            resolver=lambda host, port: ["127.0.0.1", "10.0.0.1"],
            is_allowed=lambda address: address == "127.0.0.1",
        )
    assert server.heads == []


def test_the_next_address_is_tried_if_one_does_not_answer():
    with serving(plain) as server:
        # Nobody listens at 127.0.0.2 on that port: the server is bound to 127.0.0.1.
        assert get(server.url(), resolver=lambda host, port: ["127.0.0.2", "127.0.0.1"]) == BODY
        with pytest.raises(ImageError, match="cannot be reached"):
            get(server.url(), resolver=lambda host, port: ["127.0.0.2"])


@pytest.mark.parametrize("status", [b"404 Not Found", b"500 Oops", b"204 No Content", b"206 Partial Content"])
def test_other_status_codes_are_failures(status):
    with (
        serving(saying(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")) as server,
        pytest.raises(ImageError, match=status[:3].decode()),
    ):
        get(server.url())


@pytest.mark.parametrize(
    "answer",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"HTTP/1.1 200 " + b"x" * 99999],
)
def test_answers_that_are_not_http(answer):
    with serving(saying(answer)) as server, pytest.raises(ImageError, match="cannot be fetched"):
        get(server.url())


# redirects


def redirecting(location, status=b"302 Found"):
    return saying(b"HTTP/1.1 " + status + b"\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(status):
    def answer(head, stream):
        (plain if "GET /there" in head else redirecting(b"/there", b"%d Moved" % status))(head, stream)

    with serving(answer) as server:
        assert get(server.url()) == BODY
        assert len(server.heads) == 2


@pytest.mark.parametrize(
    "location",
    [
        b"http://127.0.0.1/",
        b"http://169.254.169.254/latest/meta-data/",
        b"http://[::ffff:10.0.0.1]/",
        b"//192.168.0.1/",
        b"http://inner.example/",
    ],
)
def test_a_redirect_to_a_private_address_is_refused(location):
    def resolver(host, port):
        return ["127.0.0.1"] if host == "images.example" else ["10.0.0.8"]

    first = iter([True])
    with serving(redirecting(location)) as server, pytest.raises(ImageError, match="which is not public"):
        # The first address is the test's server. The real predicate judges every later one.
        get(server.url(), resolver=resolver, is_allowed=lambda address: next(first, False) or is_public(address))


@pytest.mark.parametrize("location", [b"file:///etc/passwd", b"ftp://images.example/", b"gopher://x/"])
def test_a_redirect_to_another_scheme_is_refused(location):
    with serving(redirecting(location)) as server, pytest.raises(ImageError, match="only http and https"):
        get(server.url())


def test_the_number_of_redirects_is_limited():
    with serving(redirecting(b"/again")) as server, pytest.raises(ImageError, match="redirects more than 5 times"):
        get(server.url())
    assert len(server.heads) == MAX_REDIRECTS + 1


def test_a_redirect_without_a_location():
    answer = saying(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")
    with serving(answer) as server, pytest.raises(ImageError, match="redirects without a location"):
        get(server.url())


# size


def test_a_length_over_the_limit_is_refused_before_reading():
    answer = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
    with serving(answer) as server, pytest.raises(ImageError, match="1,001 bytes, over the limit of 1,000"):
        get(server.url())


def endless(head, stream):
    stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        stream.sendall(bytes(10_000))


def endless_chunks(head, stream):
    stream.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        stream.sendall(b"3e8\r\n" + bytes(1000) + b"\r\n")


@pytest.mark.parametrize("answer", [endless, endless_chunks])
def test_an_endless_body_is_abandoned(answer):
    with serving(answer) as server, pytest.raises(ImageError, match="more than 1,000 bytes"):
        get(server.url())


def test_a_stated_length_that_is_too_large():
    answer = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nshort")
    with serving(answer) as server, pytest.raises(ImageError, match=r"5 of 900 bytes|IncompleteRead"):
        get(server.url())


def test_a_stated_length_that_is_too_small():
    with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + BODY)) as server:
        assert get(server.url()) == b"some"


def test_a_compressed_body_is_refused():
    answer = saying(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc")
    with serving(answer) as server, pytest.raises(ImageError, match="Content-Encoding that was not requested"):
        get(server.url())


# time


def test_a_slow_body_times_out():
    slow = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", *[b"x"] * 100, pause=0.05)
    with serving(slow) as server, pytest.raises(ImageError, match=r"took longer than 0\.4 s"):
        get(server.url(), max_seconds=0.4)


def test_slow_headers_time_out():
    slow = saying(*[b"HTTP/1.1 200 OK\r\nX: y"[i : i + 1] for i in range(21)], *[b"z"] * 100, pause=0.05)
    with serving(slow) as server, pytest.raises(ImageError, match="took longer than"):
        get(server.url(), max_seconds=0.4)


def test_a_resolver_that_does_not_answer_times_out():
    is_over = threading.Event()

    def silent(host, port):
        is_over.wait(600)
        return []

    with pytest.raises(ImageError, match="took longer than"):
        get("http://images.example/", max_seconds=0.2, resolver=silent)
    is_over.set()


def test_redirects_share_one_time_limit():
    def slow(head, stream):
        time.sleep(0.25)
        redirecting(b"/again")(head, stream)

    with serving(slow) as server, pytest.raises(ImageError, match="took longer than"):
        get(server.url(), max_seconds=0.6)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a certificate for images.example and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to create a certificate")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout - -out -"
    names = ["-subj", "/CN=images.example", "-addext", "subjectAltName=DNS:images.example"]
    file.write_bytes(subprocess.run([*command.split(), *names], capture_output=True, check=True).stdout)
    return file


def test_tls_is_checked_against_the_name_and_not_the_address(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    names = []
    context.sni_callback = lambda connection, name, _: names.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with serving(plain, context) as server:
        assert get(server.url(scheme="https"), tls=trusting) == BODY
        with pytest.raises(ImageError, match="CERTIFICATE_VERIFY_FAILED"):
            get(server.url(scheme="https", host="other.example"), tls=trusting)
        with pytest.raises(ImageError, match="CERTIFICATE_VERIFY_FAILED"):
            get(server.url(scheme="https"))  # the default context does not trust this certificate
    assert names[:2] == ["images.example", "other.example"]
