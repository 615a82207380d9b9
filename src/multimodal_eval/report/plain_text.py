"""Somebody's text as a page may show it: escaped, on its own side, its invisible characters visible."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markupsafe import Markup, escape

LONGEST = 4_000  # characters of one text in a page

_KEPT = "\n\t\u200c\u200d"  # line, tab; joiners belong to emoji and to scripts
_HIDDEN_KINDS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_PRINTABLE = re.compile(r"[\x20-\x7e\n\t]*")


def _is_hidden(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in _HIDDEN_KINDS


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The text in stretches, each with whether it is the code of a character that would be invisible."""
    start = 0
    for place, character in enumerate(text):
        if _is_hidden(character):
            if place > start:
                yield text[start:place], False
            yield _code(character), True
            start = place + 1
    if start < len(text):
        yield text[start:], False


def visible(text: str) -> str:
    """The text without characters that direct, hide or end it: each stands there by its code."""
    if _PRINTABLE.fullmatch(text):
        return text
    return "".join(f"[{piece}]" if is_code else piece for piece, is_code in pieces(text))


def shortened(text: str, longest: int = LONGEST) -> str:
    """The beginning of a text that is too long, and how much more there is."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … ({len(text) - longest:,} characters more)"


def as_html(text: object) -> Markup:
    """The text, safe inside an element: escaped, isolated from the direction of what surrounds it."""
    return Markup("<bdi>{}</bdi>").format(codes_marked(shortened(str(text))))


def codes_marked(text: str) -> Markup:
    """The text escaped, with the codes of invisible characters as elements of their own."""
    if _PRINTABLE.fullmatch(text):
        return escape(text)
    marked = Markup('<span class="code-point">{}</span>')
    return Markup("").join(marked.format(piece) if is_code else escape(piece) for piece, is_code in pieces(text))
