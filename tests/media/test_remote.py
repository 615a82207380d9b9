"""Pictures from the network: what is never asked, and what a hostile server cannot do.

The servers here are real ones on this machine, which the real predicate refuses; tests that need an answer name their
own predicate and resolver.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ImageError
from multimodal_eval.media.addresses import is_public, literal_address
from multimodal_eval.media.remote import MAX_REDIRECTS, fetch

BODY = b"some picture"


def to_loopback(host, port):
    return ["127.0.0.1"]


def anything(address):
    return True


def get(url, *, max_bytes=1000, max_seconds=5.0, resolver=to_loopback, is_allowed=anything, tls=None):
    return fetch(url, max_bytes=max_bytes, max_seconds=max_seconds, resolver=resolver, is_allowed=is_allowed, tls=tls)


class Server:
    """Answers each connection by a function of the request's head and the socket; keeps the heads."""

    def __init__(self, answer, context=None):
        self.answer, self.context, self.heads = answer, context, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        try:
            with self.context.wrap_socket(connection, server_side=True) if self.context else connection as stream:
                head = b""
                while b"\r\n\r\n" not in head and (piece := stream.recv(4096)):
                    head += piece
                self.heads.append(head.decode())
                self.answer(head.decode(), stream)
        except OSError:
            connection.close()  # the client has had enough

    def url(self, path="/x.png", host="pictures.example", scheme="http"):
        return f"{scheme}://{host}:{self.port}{path}"


@contextmanager
def serving(answer, context=None):
    server = Server(answer, context)
    try:
        yield server
    finally:
        server.socket.close()


def plain(head, stream):
    stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))


def saying(*pieces, pause=0.0):
    def answer(head, stream):
        for piece in pieces:
            stream.sendall(piece)
            time.sleep(pause)

    return answer


# addresses

NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.0.9",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b::192.168.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",  # Teredo
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "2002:c0a8:101::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2606:4700::1%eth0",
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "8.8.8.010",
    "name",
    "",
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.0", "2606:4700::1111"]
PUBLIC += ["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_asked(address):
    assert not is_public(address)
    with pytest.raises(ImageError, match="which is not public"):
        get("http://pictures.example/x.png", resolver=lambda host, port: [address], is_allowed=is_public)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.０.０.１",  # fullwidth digits
        "127。0。0。1",  # ideographic full stops
        "①②⑦.0.0.1",
    ],
)
def test_a_host_written_as_an_address_is_judged_by_it(host):
    with pytest.raises(ImageError, match="which is not public"):
        fetch(f"http://{host}/x.png", max_bytes=10, max_seconds=5)


@pytest.mark.parametrize(
    "host", ["0x7f000001", "127.1", "0177.0.0.1", "017700000001", "2130706433", "0x7f.0.0.1", "127.0.0.1.", "1.2.3.4.5"]
)
def test_addresses_in_odd_writing_are_no_names(host):
    with pytest.raises(ImageError, match="four decimal numbers"):
        get(f"http://{host}/x.png")


def test_localhost_is_asked_of_the_system_and_refused():
    with pytest.raises(ImageError, match="which is not public"):
        fetch("http://localhost/x.png", max_bytes=10, max_seconds=5)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_alike(address):
    packed = int(address)
    for disguise in (
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        f"2002:{packed >> 16:x}:{packed & 0xFFFF:x}::1",
    ):
        assert is_public(disguise) == is_public(str(address))


def test_names_that_look_like_numbers_at_first():
    assert literal_address("7.example") is None
    assert literal_address("0x7f.example") is None
    assert literal_address("8.8.8.8") == "8.8.8.8"
    assert literal_address("::1") == "::1"


# the address line


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://pictures.example/x.png", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("//pictures.example/x.png", "only http and https"),
        ("http:///x.png", "no host name"),
        ("http://user:secret@pictures.example/", "user name or a password"),
        ("http://pictures.example@evil.example/", "user name or a password"),
        ("http://pictures.example\\@evil.example/", "backslash"),
        ("http://pictures.example/\r\nX: y", "control character"),
        ("http://pictures example/", "space"),
        ("http://pictures.example:99999/", "is no address"),
        ("http://[::1/", "is no address"),
        ("http://[fe80::1%25eth0]/", "refused"),
        ("http://pictures$.example/", "no host name"),
        ("http://" + "ä" * 80 + ".example/", "refused"),
    ],
)
def test_addresses_that_are_refused_as_they_are_written(url, reason):
    def never(host, port):
        raise AssertionError("a refused address was resolved")

    with pytest.raises(ImageError, match=reason) as refused:
        get(url, resolver=never)
    assert "secret" not in str(refused.value)


def test_an_unknown_host():
    def unknown(host, port):
        raise socket.gaierror("no such name")

    for resolver in (unknown, lambda host, port: []):
        with pytest.raises(ImageError, match="is not known"):
            get("http://pictures.example/", resolver=resolver)


# asking


def test_the_content_and_the_request():
    with serving(plain) as server:
        assert get(server.url("/a b?q=ü".replace(" ", "%20"))) == BODY
        (head,) = server.heads
    lines = head.split("\r\n")
    assert lines[0] == "GET /a%20b?q=%C3%BC HTTP/1.1"
    assert f"Host: pictures.example:{server.port}" in lines
    assert "Accept-Encoding: identity" in lines


def test_chunks_and_an_end_without_length():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n8\r\n picture\r\n0\r\n\r\n"
    for answer in (chunked, b"HTTP/1.0 200 OK\r\n\r\n" + BODY):
        with serving(saying(answer)) as server:
            assert get(server.url()) == BODY


def test_the_host_is_resolved_once_and_the_checked_address_asked():
    """DNS rebinding: the second answer would be another address, and nobody asks for it."""
    asked = []

    def rebinding(host, port):
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["192.0.2.1"]

    with serving(plain) as server:
        assert get(server.url(), resolver=rebinding, is_allowed=lambda address: address == "127.0.0.1") == BODY
    assert asked == ["pictures.example"]


def test_one_bad_address_among_good_ones_is_enough():
    with serving(plain) as server, pytest.raises(ImageError, match=r"10\.0\.0\.1, which is not public"):
        get(
            server.url(),
            resolver=lambda host, port: ["127.0.0.1", "10.0.0.1"],
            is_allowed=lambda address: address == "127.0.0.1",
        )
    assert server.heads == []


def test_the_next_address_is_tried_where_one_does_not_answer():
    with serving(plain) as server:
        # Nobody listens at 127.0.0.2 on that port: the server is bound to 127.0.0.1.
        assert get(server.url(), resolver=lambda host, port: ["127.0.0.2", "127.0.0.1"]) == BODY
        with pytest.raises(ImageError, match="cannot be reached"):
            get(server.url(), resolver=lambda host, port: ["127.0.0.2"])


@pytest.mark.parametrize("status", [b"404 Not Found", b"500 Oops", b"204 No Content", b"206 Partial Content"])
def test_other_answers_are_failures(status):
    with (
        serving(saying(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")) as server,
        pytest.raises(ImageError, match=status[:3].decode()),
    ):
        get(server.url())


@pytest.mark.parametrize(
    "answer",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"HTTP/1.1 200 " + b"x" * 99999],
)
def test_answers_that_are_no_http(answer):
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
        return ["127.0.0.1"] if host == "pictures.example" else ["10.0.0.8"]

    first = iter([True])
    with serving(redirecting(location)) as server, pytest.raises(ImageError, match="which is not public"):
        # The first address is the test's own server; every later one meets the real predicate.
        get(server.url(), resolver=resolver, is_allowed=lambda address: next(first, False) or is_public(address))


@pytest.mark.parametrize("location", [b"file:///etc/passwd", b"ftp://pictures.example/", b"gopher://x/"])
def test_a_redirect_to_another_kind_of_address_is_refused(location):
    with serving(redirecting(location)) as server, pytest.raises(ImageError, match="only http and https"):
        get(server.url())


def test_redirects_end():
    with serving(redirecting(b"/again")) as server, pytest.raises(ImageError, match="redirects more than 5 times"):
        get(server.url())
    assert len(server.heads) == MAX_REDIRECTS + 1


def test_a_redirect_to_nowhere():
    answer = saying(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")
    with serving(answer) as server, pytest.raises(ImageError, match="redirects to nowhere"):
        get(server.url())


# size


def test_a_length_over_the_limit_is_refused_unread():
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
def test_an_endless_body_is_left(answer):
    with serving(answer) as server, pytest.raises(ImageError, match="more than 1,000 bytes"):
        get(server.url())


def test_a_length_that_promises_too_much():
    answer = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nshort")
    with serving(answer) as server, pytest.raises(ImageError, match=r"5 of 900 bytes|IncompleteRead"):
        get(server.url())


def test_a_length_that_promises_too_little():
    with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + BODY)) as server:
        assert get(server.url()) == b"some"


def test_a_body_compressed_once_more_is_refused():
    answer = saying(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc")
    with serving(answer) as server, pytest.raises(ImageError, match="compressed once more"):
        get(server.url())


# time


def test_a_dripping_body_is_left_in_time():
    drip = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", *[b"x"] * 100, pause=0.05)
    began = time.perf_counter()
    with serving(drip) as server, pytest.raises(ImageError, match=r"took longer than 0\.4 s"):
        get(server.url(), max_seconds=0.4)
    assert time.perf_counter() - began < 2


def test_a_dripping_head_is_left_in_time():
    drip = saying(*[b"HTTP/1.1 200 OK\r\nX: y"[i : i + 1] for i in range(21)], *[b"z"] * 100, pause=0.05)
    began = time.perf_counter()
    with serving(drip) as server, pytest.raises(ImageError, match="took longer than"):
        get(server.url(), max_seconds=0.4)
    assert time.perf_counter() - began < 2


def test_a_resolver_that_never_answers_is_left_in_time():
    began = time.perf_counter()
    with pytest.raises(ImageError, match="took longer than"):
        get("http://pictures.example/", max_seconds=0.2, resolver=lambda host, port: time.sleep(3) or [])
    assert time.perf_counter() - began < 2


def test_redirects_share_one_limit():
    def slow(head, stream):
        time.sleep(0.25)
        redirecting(b"/again")(head, stream)

    with serving(slow) as server, pytest.raises(ImageError, match="took longer than"):
        get(server.url(), max_seconds=0.6)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for pictures.example, and the file that holds it with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate with")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout - -out -"
    names = ["-subj", "/CN=pictures.example", "-addext", "subjectAltName=DNS:pictures.example"]
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
            get(server.url(scheme="https"))  # as everyone runs it: this certificate is nobody's
    assert names[:2] == ["pictures.example", "other.example"]
