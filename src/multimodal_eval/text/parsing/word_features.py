"""What the parser looks up of a word: lower case, first letter, last three letters, shape."""

from __future__ import annotations

from functools import lru_cache

WordFeatures = tuple[str, str, str, str, str]  # text, lower case, prefix, suffix, shape

_LONGEST_SHAPE = 100
_LONGEST_RUN = 4
_CACHED_WORDS = 1 << 16

# Strings that spaCy numbers itself; all others are numbered by a hash. The weights were trained with these numbers.
_FIRST_NUMBER = 398
_NUMBERED = (
    "acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj csubjpass dep det dobj expl "
    "hmod hyph infmod intj iobj mark meta neg nmod nn npadvmod nsubj nsubjpass num number oprd obj obl parataxis "
    "partmod pcomp pobj poss possessive preconj prep prt punct quantmod relcl rcmod root xcomp acl"
)
FIXED_KEYS: dict[str, int] = {name: number for number, name in enumerate(_NUMBERED.split(), _FIRST_NUMBER)} | {"_": 456}

# Words with another normal form than their lower case, in addition to those in the parser's own table.
NORMAL_FORMS: dict[str, str] = {"€": "$", "£": "$", "¥": "$", "₹": "$", "₩": "$", "–": "-", "—": "-", "…": "..."}


@lru_cache(maxsize=_CACHED_WORDS)
def word_features(word: str) -> WordFeatures:
    """The features of a word, which must not be empty."""
    return word, NORMAL_FORMS.get(word, word.lower()), word[0], word[-3:], word_shape(word)


def word_shape(word: str) -> str:
    """Letters as X or x, digits as d, at most four of the same in a row: "U2" -> "Xd", "skating" -> "xxxx"."""
    if len(word) >= _LONGEST_SHAPE:
        return "LONG"
    shape: list[str] = []
    run, last = 0, ""
    for character in word:
        kind = _kind(character)
        run = run + 1 if kind == last else 1
        last = kind
        if run <= _LONGEST_RUN:
            shape.append(kind)
    return "".join(shape)


def _kind(character: str) -> str:
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return "d" if character.isdigit() else character
