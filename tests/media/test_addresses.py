"""Addresses that are never connected to, in any notation."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ImageError
from multimodal_eval.media.remote import fetch, is_public, literal_address
from tests.media.web import get

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
def test_addresses_that_are_not_public(address):
    assert not is_public(address)
    with pytest.raises(ImageError, match="which is not public"):
        get("http://images.example/x.png", resolver=lambda host, port: [address], is_allowed=is_public)


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
def test_a_host_written_as_a_private_address_is_refused(host):
    with pytest.raises(ImageError, match="which is not public"):
        fetch(f"http://{host}/x.png", max_bytes=10, max_seconds=600)


@pytest.mark.parametrize(
    "host", ["0x7f000001", "127.1", "0177.0.0.1", "017700000001", "2130706433", "0x7f.0.0.1", "127.0.0.1.", "1.2.3.4.5"]
)
def test_addresses_in_unusual_notation_are_not_names(host):
    with pytest.raises(ImageError, match="four decimal numbers"):
        get(f"http://{host}/x.png")


def test_localhost_is_resolved_and_refused():
    with pytest.raises(ImageError, match="which is not public"):
        fetch("http://localhost/x.png", max_bytes=10, max_seconds=600)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_the_same(address):
    packed = int(address)
    for disguise in (
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        f"2002:{packed >> 16:x}:{packed & 0xFFFF:x}::1",
    ):
        assert is_public(disguise) == is_public(str(address))


def test_names_that_start_like_numbers():
    assert literal_address("7.example") is None
    assert literal_address("0x7f.example") is None
    assert literal_address("8.8.8.8") == "8.8.8.8"
    assert literal_address("::1") == "::1"


# URLs


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://images.example/x.png", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("//images.example/x.png", "only http and https"),
        ("http:///x.png", "not a host name"),
        ("http://user:secret@images.example/", "user name or a password"),
        ("http://images.example@evil.example/", "user name or a password"),
        ("http://images.example\\@evil.example/", "backslash"),
        ("http://images.example/\r\nX: y", "control character"),
        ("http://images example/", "space"),
        ("http://images.example:99999/", "is not a URL"),
        ("http://[::1/", "is not a URL"),
        ("http://[fe80::1%25eth0]/", "refused"),
        ("http://images$.example/", "not a host name"),
        ("http://" + "ä" * 80 + ".example/", "refused"),
    ],
)
def test_urls_that_are_refused_before_they_are_resolved(url, reason):
    def never(host, port):
        raise AssertionError("a refused host was resolved")

    with pytest.raises(ImageError, match=reason) as refused:
        get(url, resolver=never)
    assert "secret" not in str(refused.value)


def test_an_unknown_host():
    def unknown(host, port):
        raise socket.gaierror("no such name")

    for resolver in (unknown, lambda host, port: []):
        with pytest.raises(ImageError, match="is not known"):
            get("http://images.example/", resolver=resolver)
