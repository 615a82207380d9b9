"""Who may ask, and what every answer says to the browser.

The server has no password. What keeps other pages of the same browser out is here: the name it was asked under must be
its own (a foreign name that was made to point at this machine is refused), other sites may link to a page but not load
anything of it, nothing can be changed, and no answer lets a script in that is not a file of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
_WILDCARDS = ("0.0.0.0", "::")


class Guard:
    """Refuses what is not meant for this server, and adds the headers."""

    def __init__(self, app: ASGIApp, *, is_own: Callable[[str], bool]) -> None:
        self.app, self.is_own = app, is_own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        answer = self.app if refusal is None else PlainTextResponse(refusal[1] + "\n", refusal[0])

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        given: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name, []).append(value.decode("latin-1"))
        hosts = given.get(b"host", [])
        if len(hosts) != 1 or not self.is_own(hosts[0]):
            return 421, "this server is not known by that name; see --host in mmeval view --help"
        if any(site == "cross-site" for site in given.get(b"sec-fetch-site", [])) and not _is_visit(given):
            return 403, "other sites may not load anything from here"
        if scope["method"] not in ("GET", "HEAD"):
            if any(origin != f"http://{hosts[0]}" for origin in given.get(b"origin", [])):
                return 403, "other sites may not send anything here"
            return 405, "this server only reads"
        return None


def _is_visit(given: dict[bytes, list[str]]) -> bool:
    """Whether a link is followed, which shows nothing to the page that has the link."""
    return given.get(b"sec-fetch-mode") == ["navigate"] and given.get(b"sec-fetch-dest") == ["document"]


def own_names(host: str, port: int) -> Callable[[str], bool]:
    """Whether a Host header names this server: this machine's own names and the one it was told to listen on.

    One that listens on every address is known by any address, but by no name: names can be made to point anywhere.
    """
    names = {"127.0.0.1", "localhost", "[::1]", _bracketed(host).lower()}
    endings = (f":{port}", "") if port == 80 else (f":{port}",)
    known = {name + ending for name in names for ending in endings}

    def is_own(given: str) -> bool:
        if given.lower() in known:
            return True
        name, _, ending = given.rpartition(":")
        return host in _WILDCARDS and ending == str(port) and _is_address(name)

    return is_own


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
