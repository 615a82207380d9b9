"""Transcripts of speech as input of the compiled core: normalised by a named rule, and aligned with their references.

The rules are those of the family `transcript` (`evaluation/rules/transcript.py`). The rules of this package run in
compiled code; a plug-in's is called for each text.
"""

from __future__ import annotations

import gzip
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from multimodal_eval._native import TranscriptRules, Transcripts
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.captions import texts_of

__all__ = ["TranscriptRule", "normalized", "transcripts", "transcripts_of"]

FAMILY = "transcript"
_UNCHANGED = "jiwer@4"  # the compiled core strips texts in any case
_SPELLINGS = Path(__file__).with_name("british_spellings.tsv.gz")

# The type of a metric's option `rule`.
TranscriptRule = Annotated[str, "how both texts are normalised before they are compared", RuleFamily(FAMILY)]

_PAGE = 256  # characters
_SPACE, _WORD, _DIGIT, _PUNCTUATION, _SYMBOL, _MOVES, _CONTEXT = (1 << bit for bit in range(7))
_FINAL_SIGMA = "Σ"  # the one letter whose lower case depends on its neighbours
_CURRENCY_AND_POINT = ".%$¢€£"
# Letters that NFKD does not separate from their stroke or ligature.
_PLAIN_LETTERS = {
    **{"œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "ß": "ss", "ẞ": "SS"},
    **{"đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "th", "ł": "l", "Ł": "L"},
}


def normalized(text: str, rule: str) -> str:
    """The text under a rule of the compiled core."""
    return _rules().normalize([text], rule)[0]


def transcripts(candidates: Sequence[str], references: Sequence[Sequence[str]], rule: str) -> Transcripts:
    """Transcripts, each with its references."""
    return _normalized_transcripts(list(candidates), [list(texts) for texts in references], rule)


def transcripts_of(samples: Sequence[Sample], rule: str) -> Transcripts:
    """Answers and references of samples; the metrics of a run share them."""
    batch = Batch.of(samples)
    return batch.shared(("transcripts", rule), lambda: _normalized_transcripts(*texts_of(batch), rule))


def _normalized_transcripts(candidates: Any, references: Any, rule: str) -> Transcripts:
    definition = find_rule(FAMILY, rule)
    if definition.is_built_in:
        return Transcripts(_rules(), candidates, references, rule)
    texts = candidates if isinstance(candidates, list) else candidates.to_pylist()
    lists = references if isinstance(references, list) else references.to_pylist()
    function = definition.function
    return Transcripts(
        _rules(),
        [function(text or "") for text in texts],
        [[function(text or "") for text in items or ()] for items in lists],
        _UNCHANGED,
    )


@cache
def _rules() -> TranscriptRules:
    with gzip.open(_SPELLINGS, "rt", encoding="utf-8") as lines:
        spellings = dict(line.rstrip("\n").split("\t") for line in lines if not line.startswith("#"))
    return TranscriptRules(_page, str.lower, _nfkc, spellings)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _page(number: int) -> tuple[bytes, bytes, list[str], list[str]]:
    """Flags, values of digits, lower cases and plain letters of 256 characters; see native/transcript_characters.h."""
    characters = [chr(code) for code in range(number * _PAGE, (number + 1) * _PAGE)]
    return (
        bytes(map(_flags, characters)),
        bytes(unicodedata.decimal(character, 0) for character in characters),
        [character.lower() for character in characters],
        [_plain(character) for character in characters],
    )


def _flags(character: str) -> int:
    kind = unicodedata.category(character)
    return (
        _SPACE * character.isspace()
        | _WORD * (character.isalnum() or character == "_")
        | _DIGIT * character.isdecimal()
        | _PUNCTUATION * (kind[0] == "P")
        | _SYMBOL * (kind[0] in "MSP")
        | _MOVES * _moves(character, kind)
        | _CONTEXT * (character == _FINAL_SIGMA)
    )


def _moves(character: str, kind: str) -> bool:
    """Whether NFKC may change the character, or combine it with the previous one.

    Only marks, vowels and final consonants of Hangul, and some letters of Kirat Rai combine.
    """
    combines = kind[0] == "M" or "\u1160" <= character <= "\u11ff" or "\U00016d40" <= character <= "\U00016d7f"
    return combines or unicodedata.normalize("NFKC", character) != character


def _plain(character: str) -> str:
    """The letters of a character without diacritics, a space for a symbol."""
    return "".join(map(_plain_letter, unicodedata.normalize("NFKD", character)))


def _plain_letter(character: str) -> str:
    if character in _CURRENCY_AND_POINT:
        return character
    if character in _PLAIN_LETTERS:
        return _PLAIN_LETTERS[character]
    kind = unicodedata.category(character)
    return "" if kind == "Mn" else " " if kind[0] in "MSP" else character
