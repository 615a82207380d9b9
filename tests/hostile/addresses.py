"""Image URLs of a data file that try to reach this machine or its network: no connection may go there.

Names, notations of addresses, answers of the name server and redirects are all chosen by the attacker.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from random import Random
from unittest.mock import patch

from multimodal_eval.media.remote import fetch
from tests.hostile.campaign import FaultError, campaign, tried

INSIDE = (
    "127.0.0.1",
    "127.8.9.1",
    "10.1.2.3",
    "172.16.5.4",
    "192.168.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "100.64.1.1",
    "0.0.0.0",
    "192.0.0.192",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fd00:ec2::254",
    "fc00::5",
    "64:ff9b:1::7f00:1",
)
OUTSIDE = ("8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700::1111")
NAMES = ("localhost", "images.example", "metadata.google.internal", "rebind.example", "127.0.0.1.nip.io", "a.b")
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"


@campaign("addresses", cases=6_000)
def attack(random: Random, folder: Path) -> str | None:
    url = hostile_url(random)
    (folder / "url.txt").write_text(url, encoding="utf-8", errors="surrogatepass")
    reached: list[str] = []
    servers: list[socket.socket] = []

    def connect(address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        reached.append(address[0])
        if is_inside(address[0]):
            raise FaultError(f"{url!r} leads to {address[0]} (after {reached})")
        ours, theirs = socket.socketpair()
        servers.append(theirs)
        theirs.sendall(_answer(random))
        theirs.shutdown(socket.SHUT_WR)
        return ours

    resolver = _resolver(random)
    with patch("multimodal_eval.media.remote.socket.create_connection", connect):
        verdict = tried(lambda: fetch(url, max_bytes=1_000, max_seconds=30, resolver=resolver))
    for server in servers:
        server.close()
    return f"{verdict} after {len(reached)} connections"


def is_inside(address: str) -> bool:
    """Whether a connection to the address stays on this machine or its network: Python's opinion, not ours."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo and parsed.teredo[1])
        if not inner and parsed in _NAT64:
            inner = IPv4Address(int(parsed) & 0xFFFF_FFFF)
        if inner:
            return not inner.is_global
    return not parsed.is_global or parsed.is_multicast or address == "168.63.129.16"


_NAT64 = IPv6Network("64:ff9b::/96")


def hostile_url(random: Random) -> str:
    scheme = _mostly(random, ("http",), ("https", "HTTP", "ftp", "file", "gopher", "//", "http:/", "http:\\\\"))
    user = _mostly(random, ("",), ("user:pw@", "8.8.8.8@", "8.8.8.8%40", "8.8.8.8#@", "8.8.8.8\\@"))
    port = _mostly(random, ("", ":80"), (":22", ":0", ":99999", ":", ":80:80", ":\u0661"))
    path = _mostly(random, ("/x.png", ""), ("/../..", "?x=1", "#f", "/\r\nHost: a", "/%0d%0aX: y", "/\u202e", "\\x"))
    separator = "" if scheme.endswith(("/", "\\")) else "://"
    return f"{scheme}{separator}{user}{_host(random)}{port}{path}"


def _mostly(random: Random, plain: Sequence[str], odd: Sequence[str]) -> str:
    return random.choice(plain if random.random() < 0.85 else odd)


def _host(random: Random) -> str:
    if random.random() < 0.5:
        return _mostly(random, NAMES, (*(name + "." for name in NAMES), "", ".", "a" * 300, "\u2460.example", "xn--a"))
    return _notation(random, random.choice((*INSIDE, *OUTSIDE)))


def _notation(random: Random, address: str) -> str:
    """The address in one of the ways that some program accepts."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        return random.choice(
            (f"[{parsed}]", f"[{parsed.exploded}]", str(parsed), f"[{parsed}%25eth0]", f"[{parsed}%lo]")
        )
    number, parts = int(parsed), address.split(".")
    octets = list(map(int, parts))
    forms = (
        address,
        str(number),
        hex(number),
        oct(number).replace("o", ""),
        ".".join(map(hex, octets)),
        ".".join(f"0{octet:o}" for octet in octets),
        ".".join(f"{octet:03d}" for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
        address + ".",
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]",
        f"[2001:0:1::{~number >> 16 & 0xFFFF:x}:{~number & 0xFFFF:x}]",
        "".join(chr(ord("\uff10") + int(digit)) if digit.isdigit() else "\u3002" for digit in address),
        "".join(chr(ord("\u2460") + int(digit) - 1) if digit in "123456789" else digit for digit in address),
        address.replace(".", "%2e"),
        "\t".join(parts),
        f"{address}\\@8.8.8.8",
        f"8.8.8.8\u2044@{address}",
    )
    return random.choice(forms)


def _resolver(random: Random) -> Callable[[str, int], list[str]]:
    """A name server that answers something else each time, like one that rebinds names."""

    def resolve(host: str, port: int) -> list[str]:
        pool = random.choice((OUTSIDE, OUTSIDE, INSIDE, (*OUTSIDE, *INSIDE)))
        addresses = [random.choice(pool) for _ in range(random.randint(1, 3))]
        return [f"::ffff:{a}" if "." in a and random.random() < 0.2 else a for a in addresses]

    return resolve


def _answer(random: Random) -> bytes:
    if random.random() < 0.2:
        return BODY
    status = random.choice((301, 302, 303, 307, 308))
    location = hostile_url(random).encode("utf-8", "surrogatepass").replace(b"\r\n", b"")
    return b"HTTP/1.1 %d Found\r\nLocation: %s\r\n\r\n" % (status, location)
