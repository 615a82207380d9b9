"""The fields of a posted form, within limits: of size, number, length and characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

__all__ = ["checked_text", "posted"]

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
