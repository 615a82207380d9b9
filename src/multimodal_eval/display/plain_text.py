"""Untrusted text for a page: escaped, isolated from the surrounding direction, with invisible characters shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markupsafe import Markup, escape

from multimodal_eval.core.visible import LONGEST, shortened

LONGEST_READ = 100_000  # of a text that somebody must read as a whole

_ALLOWED = "\n\t\u200c\u200d"  # newline, tab, and the joiners that emoji and some scripts need
_HIDDEN_KINDS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_PRINTABLE = re.compile(r"[\x20-\x7e\n\t]*")


def _is_hidden(character: str) -> bool:
    return character not in _ALLOWED and unicodedata.category(character) in _HIDDEN_KINDS


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Split the text at its invisible characters. Each piece says whether it is the code of such a character."""
    start = 0
    for index, character in enumerate(text):
        if _is_hidden(character):
            if index > start:
                yield text[start:index], False
            yield _code(character), True
            start = index + 1
    if start < len(text):
        yield text[start:], False


def visible(text: str) -> str:
    """Replace each invisible character by its code in brackets."""
    if _PRINTABLE.fullmatch(text):
        return text
    return "".join(f"[{piece}]" if is_code else piece for piece, is_code in pieces(text))


def as_html(text: object, longest: int = LONGEST) -> Markup:
    """The text, escaped and isolated from the surrounding text direction."""
    return Markup("<bdi>{}</bdi>").format(codes_marked(shortened(str(text), longest)))


def codes_marked(text: str) -> Markup:
    """The escaped text, with the code of each invisible character in a separate element."""
    if _PRINTABLE.fullmatch(text):
        return escape(text)
    marked = Markup('<span class="code-point">{}</span>')
    return Markup("").join(marked.format(piece) if is_code else escape(piece) for piece, is_code in pieces(text))
