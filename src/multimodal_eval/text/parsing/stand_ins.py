"""Words that the small parser mistakes, and common words that it is given in their place.

The parser knows few words. It takes "hydrant" for an adjective, and "a dog leaps over a log" for a noun phrase. Two
kinds of mistakes can be recognised without another parser: a word that WordNet lists only as a noun must be a noun, and
a plural cannot follow "a". A caption with such a word is parsed again, with a common word instead of it.
"""

from __future__ import annotations

from functools import lru_cache

from multimodal_eval.text.parsing.words import Sentence, Word
from multimodal_eval.text.wordnet import open_wordnet

_CACHED = 1 << 16
_SHORTEST = 3  # letters of a word that is known as a noun only
_TAKEN_FOR_OTHERS = ("JJ", "VB", "RB")


def stand_ins(sentence: Sentence) -> dict[int, str]:
    """The indices of words that must be something else than their tag says, with common words of that kind."""
    by_index = {word.index: _stand_in(word, sentence) for word in sentence}
    return {index: other for index, other in by_index.items() if other is not None}


def _stand_in(word: Word, sentence: Sentence) -> str | None:
    if word.tag[:2] in _TAKEN_FOR_OTHERS:
        return _noun_like(word.text) if is_only_noun(word.text) else None
    before = sentence[word.index - 1] if word.index else None
    if not word.is_noun or before is None or before.label != "compound" or before.head is not word:
        return None
    follows_a = any(child.text in ("a", "an") for child in word.labelled("det"))
    if word.tag in ("NNS", "NNPS"):  # "a dog leaps"
        return "walks" if follows_a and before.tag in ("NN", "NNP") and _is_verb_form(word.text) else None
    return "walk" if not follows_a and before.tag == "NNS" and _is_verb(word.text) else None  # "two dogs play"


@lru_cache(maxsize=_CACHED)
def is_only_noun(word: str) -> bool:
    """Whether WordNet lists the word, or a base form of it, as a noun and as nothing else."""
    wordnet = open_wordnet()
    if len(word) < _SHORTEST or not word.isalpha() or not wordnet.forms_of(word, "NOUN"):
        return False
    return not any(wordnet.forms_of(word, part) for part in ("VERB", "ADJ", "ADV"))


def _noun_like(word: str) -> str:
    return "cars" if word.endswith("s") and not word.endswith("ss") else "car"


def _is_verb_form(word: str) -> bool:
    return bool(open_wordnet().forms_of(word, "VERB"))


def _is_verb(word: str) -> bool:
    return bool(open_wordnet().senses(word, "VERB"))
