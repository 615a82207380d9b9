"""Attachments as Stanford's parser makes them, which SPICE uses: to the nearest noun.

The two parsers disagree on three points that are frequent in captions. In each, the word moves to the nearer noun.
"""

from __future__ import annotations

from multimodal_eval.text.parsing.words import Sentence, Word


def attach_to_nearest(sentence: Sentence) -> None:
    """Move coordinated nouns, participles and the phrases after "close up" to the nearest noun before them."""
    for word in sentence:
        if word.label == "amod" and word.is_noun and word.head.index > word.index:
            word.label = "compound"  # "living room": a noun before a noun
        elif word.label == "conj" and word.is_noun and word.head.is_noun:
            _lower_conjunct(word, sentence)
        elif word.label == "acl" and word.head.is_noun and is_participle(word):
            word.attach(innermost(word.head, word.index))
    if len(sentence) > 1 and "close" in (sentence[0].text, sentence[1].text):
        _lower_after_close_up(sentence)


def is_participle(word: Word) -> bool:
    """Whether a verb is a participle of its own, without an auxiliary."""
    return word.tag in ("VBG", "VBN") and not word.has("aux", "auxpass")


def innermost(noun: Word, before: int) -> Word:
    """The last noun of a chain such as "group of people", as far as it is before an index."""
    inner = noun
    while True:
        below = [
            target
            for preposition in inner.labelled("prep")
            if preposition.text == "of" and preposition.index < before
            for target in preposition.labelled("pobj")
            if target.is_noun and target.index < before
        ]
        if not below:
            return inner
        inner = below[-1]


def _lower_conjunct(word: Word, sentence: Sentence) -> None:
    """In "a room with a bed and a desk", the desk belongs to the bed, not to the room."""
    conjunctions = [other for other in sentence[word.head.index + 1 : word.index] if other.tag == "CC"]
    if not conjunctions:
        return
    before = sentence[conjunctions[-1].index - 1]
    if before.is_noun and before.label in ("pobj", "dobj") and before.index > word.head.index:
        word.attach(before)


def _lower_after_close_up(sentence: Sentence) -> None:
    """In "close up of a plate on a table", the parser takes "close" for a verb with two phrases."""
    close = sentence[0] if sentence[0].text == "close" else sentence[1]
    following = sentence[close.index + 1 : close.index + 2]
    if not following or following[0].text != "up":
        return
    for preposition in list(close.labelled("prep")):
        before = [word for word in sentence[: preposition.index] if word.is_noun and word.label != "compound"]
        if before:
            preposition.attach(before[-1])
