"""Tokenizers by name. The name stands in the signature of every metric that uses one."""

from __future__ import annotations

import re
from collections.abc import Callable

from multimodal_eval.core.errors import UnknownNameError

Tokenizer = Callable[[str], list[str]]

# What coco-caption drops after tokenizing. Brackets are lower-cased before it looks, so they survive.
_DROPPED = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_REWRITTEN = {
    "½": "1/2",
    "¼": "1/4",
    "¾": "3/4",
    "£": "#",
    "…": "...",
    "‘": "'",
    "’": "'",
    "“": "``",
    "”": "''",
}
_ABBREVIATIONS = "mr|mrs|ms|dr|jr|sr|st|vs|etc|inc|corp|co|ltd|ft|no|ave|blvd|rd|prof|gen|col|sgt|lt|capt"
_TOKEN = re.compile(
    r"""
    (?:https?://|www\.)\S+                    # addresses
  | \#[a-z]\w*                                # hashtags
  | \d+(?:[.,:/-]\d+)*(?=(?:st|nd|rd|th)?\b)(?:st|nd|rd|th)?   # numbers, times, fractions, dates, ordinals
  | (?:[a-z]\.){2,}                           # u.s. a.m.
  | (?:ABBREVIATIONS)\.                       # mr.
  | can(?=not\b) | gon(?=na\b) | got(?=ta\b) | wan(?=na\b) | gim(?=me\b) | lem(?=me\b)
  | n't\b | '(?:s|re|ve|ll|d|m)\b
  | [^\W_]+?(?=n't\b)                         # the word that a contraction follows
  | [^\W_]+(?:[-_/.&][^\W_]+)*(?:'(?!(?:s|re|ve|ll|d|m)\b)[^\W_]+)*   # words; hyphens do not split them
  | \.\.\.+ | --+ | `` | ''
  | [^\s\w] | _+
    """.replace("ABBREVIATIONS", _ABBREVIATIONS),
    re.VERBOSE,
)


def ptb_approx(text: str) -> list[str]:
    """Tokens nearly as coco-caption's Penn Treebank tokenizer keeps them: lower case, no punctuation.

    It agrees with the Java program on most captions. Rare abbreviations, unusual symbols and mixed
    scripts can come out otherwise, which is why the name says `approx`.
    """
    lowered = text.lower()
    for old, new in _REWRITTEN.items():
        if old in lowered:
            lowered = lowered.replace(old, new)
    tokens = (_BRACKETS.get(token, token) for token in _TOKEN.findall(lowered))
    return [token for token in tokens if token not in _DROPPED and token != '"']


def whitespace(text: str) -> list[str]:
    """Tokens between white space, as they stand."""
    return text.split()


TOKENIZERS: dict[str, Tokenizer] = {"ptb-approx": ptb_approx, "whitespace": whitespace}


def get_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name."""
    try:
        return TOKENIZERS[name]
    except KeyError:
        raise UnknownNameError("tokenizer", name, TOKENIZERS) from None
