"""Text from files on a terminal: control characters are written as escapes, never sent to the terminal.

Answers, ids and names come from files that other people write. Sent as they are, an escape sequence in one of them can
clear the screen, change the window title, write to the clipboard or hide a line. `protected_streams` filters standard
output and standard error of a process, so that no message needs to remember it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["protect_streams", "protected_streams", "shortened", "storable", "unprotected", "visible"]

LONGEST = 4_000  # characters of a shown text

# C0 without tab and line feed, DEL, C1, the line and paragraph separators, and the controls that reorder text.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""The text with control characters as escapes: \u001b. These are also valid in the strings of JSON."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shortened(text: str, longest: int = LONGEST) -> str:
    """Cut a text that is too long and state how many characters are missing."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … ({len(text) - longest:,} characters more)"


def storable(text: str) -> str:
    """What a model wrote, without what no file can have: NUL becomes `<0x00>`, half of a surrogate pair U+FFFD.

    `lint` names both as MARKUP.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "<0x00>")


class _Protected:
    """A text stream whose control characters are escaped. Everything else is that of the original stream."""

    def __init__(self, stream: TextIO) -> None:
        self._original = stream

    def write(self, text: str) -> int:
        """Write the text; returns its length, as for any text stream."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._original.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # would write around the filter
            raise AttributeError(name)
        return getattr(self._original, name)


def unprotected(stream: TextIO) -> TextIO:
    """The original of a protected stream, for code that draws on a terminal and escapes its texts itself."""
    return stream._original if isinstance(stream, _Protected) else stream


@contextmanager
def protected_streams() -> Iterator[None]:
    """Escape control characters in all that is written to standard output and standard error inside the block."""
    before = sys.stdout, sys.stderr
    protect_streams()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def protect_streams() -> None:
    """The same from now on, until the process ends."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Protected):  # a process without a terminal has no streams
            setattr(sys, name, _Protected(stream))
