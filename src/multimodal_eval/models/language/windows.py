"""How a long text is read in pieces: windows that overlap, each token scored once.

The first window scores all it holds; each of the others begins `stride` tokens later and scores what is new in it, so
that a token is scored with at least `window - stride` tokens before it (or all there are).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from multimodal_eval.core.errors import ConfigError

WINDOW = 2048
STRIDE = 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings of reading: tokens seen at once, tokens from one window to the next, a begin-of-text token first."""

    window: int = WINDOW
    stride: int = STRIDE
    bos: bool = False

    def __post_init__(self) -> None:
        if self.window < 2 or not 0 < self.stride < self.window:
            raise ConfigError(
                "`window` must be at least 2 and `stride` at least 1 and below `window`. "
                f"Got window {self.window}, stride {self.stride}."
            )


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens `begin` to `end` of a text are seen, those from `first` on are scored."""

    begin: int
    end: int
    first: int


def windows(tokens: int, first: int, reading: Reading) -> Iterator[Window]:
    """The windows of a text whose tokens from `first` on are scored; the very first never is: nothing precedes it."""
    begin, scored = 0, max(1, first)
    while scored < tokens:
        end = min(begin + reading.window, tokens)
        if end > scored:
            yield Window(begin, end, scored)
            scored = end
        begin += reading.stride
