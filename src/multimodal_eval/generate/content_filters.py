"""Recognise an error of an endpoint that is about the content of one request: a content filter has stopped it.

Azure and OpenAI send HTTP 400 with a `code` (`content_filter`, `content_policy_violation`); gateways such as OpenRouter
send HTTP 403 with a sentence ("… was flagged by moderation"). Words count only if the caller asks for them, because a
message about a parameter may contain them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["is_filtered"]

_CODES = {
    "content_filter",
    "content_filtered",
    "content_policy_violation",
    "moderation_blocked",
    "responsibleaipolicyviolation",
}
_WORDS = re.compile(rb"(?i)moderation|flagged|content[ _-]?(policy|filter|management)")


def is_filtered(content: bytes, *, by_words: bool = False) -> bool:
    """Whether the body of an error says that a content filter stopped the request; `by_words` also in a sentence."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        body = None
    if any(code.lower() in _CODES for code in _codes(body)):
        return True
    return by_words and _WORDS.search(content) is not None


def _codes(body: Any) -> Iterator[str]:
    """The codes and types of an error: of the body, of its `error`, and of the `innererror` in that."""
    if not isinstance(body, dict):
        return
    yield from (body[name] for name in ("code", "type") if isinstance(body.get(name), str))
    for name in ("error", "innererror"):
        yield from _codes(body.get(name))
