"""Check requests and add security headers to responses.

The server has no password. These checks keep out other pages in the same browser: the Host header must be one of the
server's own names (a foreign name that points to this machine is refused), other sites and other ports of this machine
may link to the first page and to nothing else, only reading is allowed (forms only at the addresses that the server was
started with, and only from its own pages), and the policy only allows scripts of this package.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ipaddress import ip_address

import h11
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
# With `no-referrer`, browsers do not say which page sends a form. This policy tells other sites nothing, either.
FORM_HEADERS = tuple((name, b"same-origin" if name == b"referrer-policy" else value) for name, value in HEADERS)
_WILDCARDS = ("0.0.0.0", "::")


class Guard:
    """Refuses requests that are not meant for this server, and adds the security headers."""

    def __init__(self, app: ASGIApp, *, accepts_host: Callable[[str], bool], writable: tuple[str, ...] = ()) -> None:
        self.app, self.accepts_host = app, accepts_host
        self.writable = writable  # starts of the addresses that accept forms
        self.headers = FORM_HEADERS if writable else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it to the application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        respond = self.app if refusal is None else PlainTextResponse(refusal[1] + "\n", refusal[0])

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}  # a report has a stricter policy of its own
                message["headers"] = [*message["headers"], *(each for each in self.headers if each[0] not in given)]
            await send(message)

        await respond(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value.decode("latin-1"))
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not self.accepts_host(hosts[0]):
            return 421, "this server does not answer to that host name; see --host in mmeval view --help"
        if not _is_from_here(headers, hosts[0]) and not _opens_first_page(scope, headers):
            address = f"http://{hosts[0]}/"
            return 403, f"other sites may not load anything from here, nor link to it. Open {address} and start there"
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST" or not scope["path"].startswith(self.writable or ("\0",)):
            return (
                405,
                "this server is read-only" if not self.writable else "only labels, tags and notes can be written",
            )
        if not _is_own_form(headers, hosts[0]):
            return 403, "only a form on a page of this server can write. Nothing was saved"
        return None


def _is_from_here(headers: dict[bytes, list[str]], host: str) -> bool:
    """Whether no other page made the request: it is from a page of this server, or the user typed the address.

    Programs and old browsers send none of these headers.
    """
    sites, origins = headers.get(b"sec-fetch-site", []), headers.get(b"origin", [])
    return all(site in ("same-origin", "none") for site in sites) and all(
        origin == f"http://{host}" for origin in origins
    )


def _is_own_form(headers: dict[bytes, list[str]], host: str) -> bool:
    """Whether a page of this server sends the request. Unlike for reading, it must say so."""
    sites, origins = headers.get(b"sec-fetch-site", []), headers.get(b"origin", [])
    return origins == [f"http://{host}"] and all(site == "same-origin" for site in sites)


def _opens_first_page(scope: Scope, headers: dict[bytes, list[str]]) -> bool:
    """Whether the user follows a link to the first page. The linking page cannot read the response."""
    is_navigation = headers.get(b"sec-fetch-mode") == ["navigate"] and headers.get(b"sec-fetch-dest") == ["document"]
    is_first = scope["path"] == "/" and not scope.get("query_string")
    return is_navigation and is_first and scope["method"] in ("GET", "HEAD") and b"origin" not in headers


def host_check(host: str, port: int) -> Callable[[str], bool]:
    """A check whether a Host header names this server, by a local name or the host that it listens on.

    A server that listens on all addresses accepts any IP address but no other name: a name can point anywhere.
    """
    names = {"127.0.0.1", "localhost", "[::1]", _bracketed(host).lower()}
    endings = (f":{port}", "") if port == 80 else (f":{port}",)
    known = {name + ending for name in names for ending in endings}

    def accepts_host(header: str) -> bool:
        if header.lower() in known:
            return True
        name, _, ending = header.rpartition(":")
        return host in _WILDCARDS and ending == str(port) and _is_address(name)

    return accepts_host


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


# The server of the viewer: uvicorn, with a limit of time for a request and a limit of connections.
#
# uvicorn waits for the rest of a request forever. A client that opens connections and sends half a request on each
# would hold them until this process has no file descriptor left for others.

REQUEST_SECONDS = 20.0  # for all of a request, from the connection or its first byte on
MOST_CONNECTIONS = 256  # below the usual limit of file descriptors
_INCOMPLETE = (h11.IDLE, h11.SEND_BODY)  # the client has not sent all of a request


def viewer_server(
    app: ASGIApp, *, request_seconds: float = REQUEST_SECONDS, most_connections: int = MOST_CONNECTIONS
) -> uvicorn.Server:
    """A server that closes connections whose request is not complete in time, or the oldest of too many."""

    class Protocol(_TimedProtocol):
        seconds, most = request_seconds, most_connections

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            log_level="warning",
            access_log=False,
            use_colors=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,
        )
    )


class _TimedProtocol(H11Protocol):
    """One connection. Between two requests, uvicorn's own limit for idle connections holds."""

    seconds: float
    most: int
    deadline: asyncio.TimerHandle | None = None  # while a request is awaited

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request. If there are too many connections, close the one that has waited longest.

        uvicorn's `limit_concurrency` would refuse the new one instead, and with it everybody else.
        """
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > self.most:
            others = [other for other in self.connections if isinstance(other, _TimedProtocol) and other is not self]
            waiting = {other: other.deadline.when() for other in others if other.deadline is not None}
            min(waiting, key=waiting.__getitem__, default=self).give_up()

    def handle_events(self) -> None:
        """Read what has arrived. The limit of time does not start again with every byte."""
        super().handle_events()
        if self.conn.their_state in _INCOMPLETE:
            self._await_request()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client or `give_up` closed the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection at once."""
        self._stop_waiting()
        self.transport.abort()

    def _await_request(self) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(self.seconds, self.give_up)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
