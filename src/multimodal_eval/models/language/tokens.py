"""Tokenize texts with the model's tokenizer.json, and split long texts into windows.

Texts are read unchanged. Windows overlap, and each token is scored once. The first window scores all its tokens. Each
later window starts `stride` tokens further and scores its new tokens, so that a token is scored with at least
`window - stride` tokens before it, or with all if there are fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.models.runtime import open_tokenizer

if TYPE_CHECKING:
    from multimodal_eval.models.source import Model

WINDOW = 2048
STRIDE = 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text is read: tokens per window, tokens between window starts, and whether to start with a begin token."""

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
    """The model reads the tokens from `begin` to `end` and scores those from `first` on."""

    begin: int
    end: int
    first: int


def windows(tokens: int, first: int, reading: Reading) -> Iterator[Window]:
    """The windows of a text whose tokens from `first` on are scored. The very first token is never scored."""
    begin, scored = 0, max(1, first)
    while scored < tokens:
        end = min(begin + reading.window, tokens)
        if end > scored:
            yield Window(begin, end, scored)
            scored = end
        begin += reading.stride


class Tokens:
    """A tokenizer of the tokenizers library. "<|im_end|>" in an answer is treated as plain text."""

    def __init__(self, model: Model) -> None:
        self.tokenizer = open_tokenizer(model)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = True

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
