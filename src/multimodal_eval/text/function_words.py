"""Words that carry grammar rather than content: articles, pronouns, auxiliaries, most prepositions
and some adverbs.

The lists are those of `languages` and, for English, the closed classes of `word_classes`. Negations and prepositions of
place are left out: "under" instead of "on" is a mistake in a caption. Of a language without a list, every word counts
as content.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from multimodal_eval.text.languages import LANGUAGES, hits, known_words
from multimodal_eval.text.word_classes import closed_classes

_GRAMMAR = frozenset(("DET", "PRON", "ADP", "AUX", "CCONJ", "SCONJ", "PART", "ADV"))
_CONTENT = frozenset(("NOUN", "NUM", "ADJ"))
_MEANINGFUL = frozenset(
    # negations
    "no not n't none nothing nobody neither nor without не нет без ни nicht ohne kein keine pas ne sans no sin non "
    "senza não sem niet zonder "
    # places
    "under over behind below above beneath underneath inside outside between against beside near across through "
    "под над за при рядом unter über neben vor sous devant près sur sobre entre junto su onder naast "
    # how often, how many
    "never always often together away upside two one front".split()
)
# In scripts without spaces each letter is a word.
_LETTERS = frozenset("的了在是和与着一个有上中这那的地得はがをにのでともへや")


@cache
def function_words(language: str) -> frozenset[str]:
    """The function words of one of `languages.LANGUAGES`, in lower case."""
    bit = 1 << LANGUAGES.index(language)
    words = {word for word, (languages, _) in known_words().items() if languages & bit}
    if language == "en":
        words |= {word for word, classes in closed_classes().items() if _is_grammar(classes)}
    return frozenset(words - _MEANINGFUL) | _LETTERS


def _is_grammar(classes: Iterable[str]) -> bool:
    return not _GRAMMAR.isdisjoint(classes) and _CONTENT.isdisjoint(classes)


def function_words_among(words: Iterable[str]) -> frozenset[str]:
    """The function words of the language that the words are probably in: the one with the most function words.

    For a tie these are the words of all languages in it, or the English words if English is among them.
    """
    counts = hits(words)[: len(LANGUAGES)]
    likely = [language for language, count in zip(LANGUAGES, counts, strict=True) if count == max(counts)]
    return function_words("en") if "en" in likely else frozenset().union(*map(function_words, likely))
