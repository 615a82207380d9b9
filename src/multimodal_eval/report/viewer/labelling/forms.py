"""Forms: their fields within limits, and tokens that only this browser and this process know."""

from __future__ import annotations

import hmac
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from multimodal_eval.report.viewer.runs import RunsFolder

__all__ = ["TOKEN", "Access", "Tokens", "checked_text", "cookie", "posted", "see_other", "set_cookie"]


MOST_BYTES = 64 * 1024
MOST_FIELDS = 16
_TYPE = "application/x-www-form-urlencoded"
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_JOINERS = "\u200c\u200d"


async def posted(request: Request, known: frozenset[str]) -> dict[str, str]:
    """The fields of a form, each at most once and one of `known`."""
    kind = request.headers.getlist("content-type")
    if len(kind) != 1 or kind[0].partition(";")[0].strip().lower() != _TYPE:
        raise HTTPException(415, f"a form must be sent as {_TYPE}")
    body = await _body(request)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        raise HTTPException(400, "the form cannot be read: it must be UTF-8 text with few fields") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise HTTPException(400, "a field of the form is given twice")
    if unknown := fields.keys() - known:
        raise HTTPException(400, f"the form has an unknown field: {sorted(unknown)[0][:60]}")
    return fields


async def _body(request: Request) -> bytes:
    content = bytearray()
    try:
        async for piece in request.stream():
            content += piece
            if len(content) > MOST_BYTES:
                raise HTTPException(413, f"a form may have {MOST_BYTES:,} bytes at most. Nothing was saved")
    except ClientDisconnect:
        raise HTTPException(400, "the form was not sent completely") from None
    return bytes(content)


def checked_text(fields: Mapping[str, str], name: str, longest: int, *, lines: bool = False) -> str:
    """A text that a person typed, without characters that are invisible; `lines` allows line breaks and tabs."""
    text = unicodedata.normalize("NFC", fields.get(name, "")).replace("\r\n", "\n").strip()
    if len(text) > longest:
        raise HTTPException(400, f"`{name}` may have {longest:,} characters at most. Got {len(text):,}")
    allowed = _JOINERS + ("\n\t" if lines else "")
    for character in text:
        if character not in allowed and unicodedata.category(character) in _HIDDEN:
            raise HTTPException(400, f"`{name}` has a character that is invisible: U+{ord(character):04X}")
    return text


# Secrets of one server process: forms and items that only this process, for this browser or annotator, has made.


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


# Pages with forms, and the forms that come back: each has a token that only this browser and this process know.


TOKEN = "token"
_SESSION = "session"


@dataclass(frozen=True)
class Access:
    """Renders pages with forms and reads what is posted."""

    folder: RunsFolder
    templates: Environment
    tokens: Tokens

    def page(self, request: Request, template: str, status: int = 200, **content: Any) -> Response:
        """A page whose forms have the token of this browser. It is not stored in any cache."""
        session = cookie(request, _SESSION) or secrets.token_hex(16)
        text = self.templates.get_template(template).render(
            folder=self.folder, token=self.tokens.form(session), **content
        )
        response = HTMLResponse(text, status, {"cache-control": "no-store"})
        if session != cookie(request, _SESSION):
            set_cookie(request, response, _SESSION, session)
        return response

    async def form(self, request: Request, *known: str) -> dict[str, str]:
        """The fields of a form of this browser and this process. The guard has checked its origin."""
        fields = await posted(request, frozenset((*known, TOKEN)))
        if not self.tokens.is_form(cookie(request, _SESSION), fields.pop(TOKEN, "")):
            raise HTTPException(
                403,
                "nothing was saved: the page is older than this server, or cookies are off. Reload it and try again",
            )
        return fields


def see_other(address: str) -> Response:
    """Lead the browser to another page after a form, so that reloading does not send it again."""
    return RedirectResponse(address, 303, {"cache-control": "no-store"})
