"""Tokenizers by name. The name is part of the signature of every metric that uses one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal

from multimodal_eval._native import tokenize as _tokenize
from multimodal_eval.core.errors import UnknownNameError

__all__ = ["TOKENIZERS", "Tokenizer", "get_tokenizer", "tokenize"]

Tokenizer = Callable[[str], list[str]]
# The type of a metric's option `tokenizer`.
TokenizerName = Annotated[Literal["ptb", "13a", "whitespace", "unicode", "evalscope"], "how texts are split into words"]

TOKENIZERS: dict[str, str] = {
    "ptb": "Penn Treebank tokens as in coco-caption: lower case, without punctuation",
    "13a": "mteval-v13a as in sacrebleu: punctuation split off, case kept",
    "whitespace": "split at white space, otherwise unchanged, as programs do that pass raw captions (VLMEvalKit)",
    "unicode": "runs of letters, marks and digits of any script, lower case; Han and Kana by character",
    "evalscope": "lower case, ASCII punctuation other than colons as spaces, as evalscope does without Java",
}


def check_tokenizer(name: str) -> str:
    """The name, if a tokenizer with it exists."""
    if not isinstance(name, str) or name not in TOKENIZERS:
        raise UnknownNameError("tokenizer", name, TOKENIZERS)
    return name


def tokenize(texts: Sequence[str], tokenizer: str = "ptb") -> list[list[str]]:
    """The tokens of each text."""
    return _tokenize(list(texts), check_tokenizer(tokenizer))


def get_tokenizer(name: str) -> Tokenizer:
    """The tokenizer with that name, as a function of one text."""
    check_tokenizer(name)
    return partial(_tokens_of, name)


def _tokens_of(name: str, text: str) -> list[str]:
    return _tokenize([text], name)[0]
