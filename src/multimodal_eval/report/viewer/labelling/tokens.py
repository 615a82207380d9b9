"""Secrets of one server process: forms and items that only this process, for this browser or annotator, has made."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["Tokens", "cookie", "set_cookie"]

_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Tokens:
    """Signs with a random key that is known to this process alone, so that no form outlives it."""

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def form(self, session: str) -> str:
        """The token in the forms of a browser, whose cookie has `session`."""
        return self._signed("form", session)

    def is_form(self, session: str, token: str) -> bool:
        """Whether a form is one of this browser's."""
        return bool(session) and hmac.compare_digest(self.form(session).encode(), token.encode())

    def item(self, annotator: str, position: int) -> str:
        """The address of an item: its place in the order, and a signature that holds for one annotator."""
        return f"{position + 1}-{self._signed('item', annotator, str(position))[:24]}"

    def position(self, annotator: str, token: str) -> int | None:
        """The place of an item; None if the address was not made for this annotator by this process."""
        number = token.partition("-")[0]
        if not number.isascii() or not number.isdecimal() or len(number) > 9:
            return None
        position = int(number) - 1
        return position if hmac.compare_digest(self.item(annotator, position).encode(), token.encode()) else None

    def _signed(self, *parts: str) -> str:
        message = "\0".join(str(len(part)) + ":" + part for part in parts)
        return hmac.new(self._key, message.encode(), "sha256").hexdigest()


def cookie(request: Request, name: str) -> str:
    """The value of one of our cookies, or an empty text."""
    try:
        return unquote(request.cookies.get(_named(request, name), ""), errors="strict")
    except UnicodeDecodeError:
        return ""


def set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    """Keep a value in the browser: scripts cannot read it, and no other site makes the browser send it."""
    response.set_cookie(_named(request, name), quote(value, safe=""), _YEAR, path="/", httponly=True, samesite="strict")


def _named(request: Request, name: str) -> str:
    """Browsers keep cookies by host, not by port: two servers on one machine need different names."""
    return f"mmeval-{name}-{request.url.port or 80}"
