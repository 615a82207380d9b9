"""Base forms of tagged words: of WordNet's base forms, the one with the most senses."""

from __future__ import annotations

from functools import lru_cache

from multimodal_eval.text.wordnet import open_wordnet

_CACHED = 1 << 16
_INFLECTED = frozenset({"NNS", "NNPS", "VBZ", "VBD", "VBG", "VBN"})


@lru_cache(maxsize=_CACHED)
def lemma_of(word: str, tag: str) -> str:
    """The base form of a lower-case noun or verb; other words are unchanged.

    "leaves" is a form of "leaf" as a noun and of "leave" as a verb. Among several base forms ("swinging" can come from
    "swing" and from the rare "swinge"), the one with the most senses is meant.
    """
    part = {"NN": "NOUN", "VB": "VERB"}.get(tag[:2])
    if part is None:
        return word
    wordnet = open_wordnet()
    lemmas = list(wordnet.lemmas(word, part))
    if tag in _INFLECTED:
        lemmas = [lemma for lemma in lemmas if lemma != word] or lemmas
    if lemmas:
        return max(lemmas, key=lambda lemma: (wordnet.senses(lemma, part), -len(lemma)))
    return word[:-1] if tag == "NNS" and word.endswith("s") and len(word) > 1 else word
