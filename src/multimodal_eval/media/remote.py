"""Fetch an image over http or https, protected against server-side request forgery.

The URLs come from a data file, and its author must not be able to read what only this machine can reach. So a host is
resolved once, all its addresses must be public, the connection goes to a checked address, and a redirect goes
through the same checks.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from multimodal_eval.core.errors import ImageError, shorten

# Which network addresses an image may be fetched from: public ones only, in every notation.
#
# Reference:
#     IANA. IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890). The list is copied here because Python's
#     `is_global` differs between releases.

_NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the host of an Azure virtual machine
        "169.254.0.0/16",  # link-local; cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")  # everything assigned for global use so far
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # Teredo, benchmarks, ORCHID and other protocols
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an address is public. An IPv6 address that contains an IPv4 address is judged by the IPv4 address."""
    try:
        parsed = ip_address(address)
    except ValueError:  # also an IPv4 address with leading zeros
        return False
    if isinstance(parsed, IPv4Address):
        return _is_public_v4(parsed)
    if parsed.scope_id is not None:
        return False
    inner = _inner_v4(parsed)
    if inner is not None:
        return _is_public_v4(inner)
    return parsed in _PUBLIC_V6 and not any(parsed in network for network in _NOT_PUBLIC_V6)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_V4)


def _inner_v4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv4-mapped, NAT64 or 6to4 address."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def literal_address(host: str) -> str | None:
    """The IP address if the host is written as one, None for a name.

    Systems read `0x7f000001`, `127.1`, `0177.0.0.1` and `2130706433` as IPv4 addresses too. A host that ends in a
    number must therefore be four decimal numbers; otherwise this raises ValueError.
    """
    if ":" in host:
        return str(IPv6Address(host))
    last = host.rstrip(".").rpartition(".")[2].lower()
    if last.isdecimal() or (last.startswith("0x") and all(digit in "0123456789abcdef" for digit in last[2:])):
        try:
            return str(IPv4Address(host))
        except AddressValueError:
            raise ValueError("an IPv4 address must be written as four decimal numbers") from None
    return None


MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}
_PIECE = 1 << 16
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")  # parsers disagree about whether these end a host
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")

Resolver = Callable[[str, int], Sequence[str]]
Predicate = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Target:
    scheme: str
    host: str
    port: int
    path: str
    literal: str | None  # the IP address, if the host is written as one

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"


class _Deadline:
    """The time by which a fetch must be complete."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left. Raises TimeoutError if there are none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, from the system's resolver."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def fetch(
    url: str,
    *,
    max_bytes: int,
    max_seconds: float,
    resolver: Resolver = resolve,
    is_allowed: Predicate = is_public,
    tls: ssl.SSLContext | None = None,
) -> bytes:
    """The content of an http or https URL. Raises `ImageError` with the reason if it is refused or fails.

    `resolver`, `is_allowed` and `tls` exist for tests, which have no public network.
    """
    deadline = _Deadline(max_seconds)
    current = url
    try:
        for _ in range(MAX_REDIRECTS + 1):
            target = _parsed(current)
            content, location = _requested(target, max_bytes, deadline, resolver, is_allowed, tls)
            if location is None:
                return content
            current = urljoin(current, location)
    except TimeoutError:
        raise ImageError(f"{shorten(url)} took longer than {max_seconds:g} s") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(f"{shorten(current)} cannot be fetched: {type(error).__name__}: {error}") from None
    raise ImageError(f"{shorten(url)} redirects more than {MAX_REDIRECTS} times")


def _parsed(url: str) -> _Target:
    if _UNSAFE.search(url):
        raise ImageError(f"{shorten(url)} contains a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError as error:
        raise ImageError(f"{shorten(url)} is not a URL: {error}") from None
    if scheme not in _PORTS:
        raise ImageError(f"{shorten(url)}: only http and https are fetched")
    if "@" in parts.netloc:
        raise ImageError("a URL with a user name or a password is not fetched")
    try:
        host = _ascii(host)
        literal = literal_address(host)
    except ValueError as error:
        raise ImageError(f"{shorten(url)}: the host {host!r} is refused: {error}") from None
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
    return _Target(scheme, host, _PORTS[scheme] if port is None else port, path + query, literal)


def _ascii(host: str) -> str:
    """The host as the network knows it: fullwidth digits and similar become ASCII (nameprep, NFKC)."""
    name = host.lower() if host.isascii() else host.encode("idna").decode("ascii")
    if not _HOST.fullmatch(name):
        raise ValueError("it is not a host name")
    return name


def _requested(
    target: _Target,
    max_bytes: int,
    deadline: _Deadline,
    resolver: Resolver,
    is_allowed: Predicate,
    tls: ssl.SSLContext | None,
) -> tuple[bytes, str | None]:
    """The content, or the URL of a redirect."""
    addresses = [target.literal] if target.literal else _resolved(target, resolver, deadline)
    for address in addresses:
        if not is_allowed(address):
            raise ImageError(f"the host {target.host!r} has the address {address}, which is not public")
    with _connected(target, addresses, deadline, tls) as connection:
        connection.settimeout(deadline.left())
        connection.sendall(_request(target))
        response = http.client.HTTPResponse(_TimedSocket(connection, deadline), method="GET")  # type: ignore[arg-type]
        try:
            response.begin()
            if response.status in _REDIRECTS:
                location = response.getheader("Location")
                if not location:
                    raise ImageError(f"the host {target.host!r} redirects without a location")
                return b"", location
            return _content(target, response, max_bytes), None
        finally:
            response.close()


def _resolved(target: _Target, resolver: Resolver, deadline: _Deadline) -> list[str]:
    """The addresses of the host. The system's resolver has no time limit, so it runs in a thread."""
    answer: list[Any] = []

    def ask() -> None:
        try:
            answer.append(list(resolver(target.host, target.port)))
        except (OSError, UnicodeError) as error:
            answer.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not answer:
        raise TimeoutError
    if isinstance(answer[0], Exception) or not answer[0]:
        raise ImageError(f"the host {target.host!r} is not known")
    return list(answer[0])


def _connected(
    target: _Target, addresses: Sequence[str], deadline: _Deadline, tls: ssl.SSLContext | None
) -> socket.socket:
    """A connection to the first checked address that answers. TLS is checked against the host's name."""
    failure: OSError | None = None
    for address in addresses:
        try:
            plain = socket.create_connection((address, target.port), timeout=deadline.left())
        except OSError as error:
            failure = error
            continue
        if target.scheme == "http":
            return plain
        try:
            plain.settimeout(deadline.left())
            return (tls or ssl.create_default_context()).wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            plain.close()
            raise
    deadline.left()
    raise ImageError(f"the host {target.host!r} cannot be reached: {failure}")


def _request(target: _Target) -> bytes:
    lines = (
        f"GET {target.path} HTTP/1.1",
        f"Host: {target.host_header}",
        "User-Agent: multimodal-eval",
        "Accept: image/*",
        "Accept-Encoding: identity",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode("ascii")


def _content(target: _Target, response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    if response.status != 200:
        raise ImageError(f"the host {target.host!r} answers {response.status} {response.reason}")
    if response.getheader("Content-Encoding", "identity").lower() != "identity":
        raise ImageError(f"the host {target.host!r} sends a Content-Encoding that was not requested")
    promised = response.length  # None: chunked, or until the end of the connection
    if promised is not None and promised > max_bytes:
        raise ImageError(f"the host {target.host!r} sends {promised:,} bytes, over the limit of {max_bytes:,}")
    pieces, size = [], 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise ImageError(f"the host {target.host!r} sends more than {max_bytes:,} bytes")
    if promised is not None and size < promised:
        raise ImageError(f"the host {target.host!r} sends {size:,} of {promised:,} bytes")
    return b"".join(pieces)


class _TimedSocket:
    """The part of a socket that `HTTPResponse` needs: a file to read from. It checks the deadline at every read."""

    def __init__(self, connection: socket.socket, deadline: _Deadline) -> None:
        self.connection, self.deadline = connection, deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        """A buffered stream of the incoming bytes."""
        return io.BufferedReader(_TimedStream(self.connection, self.deadline))


class _TimedStream(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: _Deadline) -> None:
        self.connection, self.deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(self.deadline.left())
        return self.connection.recv_into(buffer)
