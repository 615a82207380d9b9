"""Rules of the family `transcript`: how the text of a transcript is normalised before words or characters are compared.

A rule is a function `text -> text` that is applied to the answer and to each reference. Afterwards, white space at both
ends is removed, and words are split at spaces and at runs of white space, as jiwer does.
"""

from __future__ import annotations

from multimodal_eval.core.rules import rule
from multimodal_eval.text.transcripts import FAMILY, normalized

__all__ = ["basic", "jiwer", "none", "whisper_basic", "whisper_english"]

_WHISPER = "whisper-normalizer 0.1.15, a copy of openai-whisper's whisper/normalizers"


@rule(FAMILY, "jiwer@4", origin="jiwer 4.0.0, its default transforms (Apache-2.0)")
def jiwer(text: str) -> str:
    """Nothing but white space at both ends is removed: case, punctuation and numbers count as they are written.

    The rule of jiwer without a transform of its own. A single tab or line break between two words does not separate
    them; two or more white-space characters, and every space, do.
    """
    return normalized(text, "jiwer@4")


@rule(FAMILY, "none@1", origin="multimodal-eval")
def none(text: str) -> str:
    """Every run of white space becomes one space; nothing else is changed.

    Unlike `jiwer@4`, a single tab or line break separates words, as in Python's `str.split`.
    """
    return normalized(text, "none@1")


@rule(FAMILY, "basic@1", origin="multimodal-eval")
def basic(text: str) -> str:
    """Lower case, without punctuation, with single spaces.

    All characters of the Unicode category P are removed, and nothing takes their place: "don't" becomes "dont" and
    "well-known" becomes "wellknown". Symbols such as "$" or "+" are kept. Runs of white space become one space.
    """
    return normalized(text, "basic@1")


@rule(FAMILY, "whisper-basic@0.1.15", origin=f"BasicTextNormalizer of {_WHISPER} (MIT)")
def whisper_basic(text: str) -> str:
    """Whisper's normalizer for languages other than English: lower case, no brackets, symbols or punctuation.

    1. Lower case. Texts between [ ] or < >, and between ( ), are removed.
    2. NFKC; then each mark, symbol and punctuation character (categories M, S and P) becomes a space.
    3. Lower case again; runs of white space become one space.

    Marks include the vowel signs of Indic scripts, which are lost: use another rule for those languages.
    """
    return normalized(text, "whisper-basic@0.1.15")


@rule(FAMILY, "whisper-english@0.1.15", origin=f"EnglishTextNormalizer of {_WHISPER} (MIT)")
def whisper_english(text: str) -> str:
    """Whisper's normalizer for English: contractions, numbers and British spellings are written in one way.

    1. Lower case. Texts between [ ] or < >, and between ( ), are removed, as are hmm, mm, mhm, mmm, uh and um.
    2. Contractions and titles are written out: "won't" is "will not", "he's been" is "he has been", "mr" is "mister".
    3. Commas between digits and full stops that no digit follows are removed. Diacritics are removed (NFKD), and other
       marks, symbols and punctuation become spaces, except in numbers and before amounts.
    4. Number words become digits, with signs, currencies and percent: "twenty five dollars" is "$25", "one oh one" is
       "101", "two and a half million" is "2500000". A lone "1" becomes "one".
    5. 1,738 British spellings become American.
    6. Symbols that do not belong to a number are removed; runs of white space become one space.
    """
    return normalized(text, "whisper-english@0.1.15")
