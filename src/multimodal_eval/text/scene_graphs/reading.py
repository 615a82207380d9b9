"""A caption as the rules see it: which words are objects, and what pronouns and prepositions refer to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from multimodal_eval.text.parsing.words import Sentence, Word
from multimodal_eval.text.scene_graphs.attachments import attach_to_nearest
from multimodal_eval.text.scene_graphs.openings import Opening, Openings, opening_of

PRONOUNS = frozenset("it he she they him her them himself itself herself themselves".split())
_THREE_WORDS = frozenset({("in", "front"), ("on", "top")})  # with "of"
_MODIFIERS = ("det", "amod", "poss")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A preposition with its object: "on a couch", "in front of a house"."""

    name: str
    preposition: Word
    target: Word
    is_three_words: bool = False


class CaptionReading:
    """The words of a caption, attached and read as the original does."""

    def __init__(self, sentence: Sentence, openings: Openings = "original") -> None:
        self.words = sentence
        attach_to_nearest(sentence)
        self.opening: Opening = opening_of(sentence, openings)
        if self.opening.noun_gerund is not None:
            self.opening.noun_gerund.lemma = self.opening.noun_gerund.text
        self._first_kept = 0 if self.opening.noun_gerund is None else self.opening.noun_gerund.index
        self.has_verb = self.opening.is_coordinated or any(
            word.is_verb and word is not self.opening.noun_gerund for word in sentence
        )
        self._attach_after_gerund()
        self.inner_nouns = self._find_inner_nouns()

    def is_object(self, word: Word) -> bool:
        """Whether a word is an object of the scene."""
        if word.index < self._first_kept:
            return False  # a modifier of the gerund
        if word is self.opening.noun_gerund:
            return True
        if self.opening.reading == "order" and word.index == 0:
            return False
        return word.is_noun and word.label != "compound"

    @property
    def objects(self) -> Iterator[Word]:
        """The objects in the order of the caption."""
        return (word for word in self.words if self.is_object(word))

    @property
    def gerund_modifiers(self) -> Iterator[Word]:
        """The words before a gerund that is read as a noun: they become its attributes."""
        gerund = self.opening.noun_gerund
        if gerund is None:
            return
        for word in self.words[: gerund.index]:
            is_first_of_two = word.index == 0 and self.words[1].tag == "CC"  # "black and white cat sitting"
            if word.tag in ("JJ", "JJR", "JJS", "NN", "NNP", "VBN") and not is_first_of_two:
                yield word

    def resolved(self, word: Word) -> Word | None:
        """The object that a noun or pronoun names; None if it names none. A pronoun means the first object."""
        if self.is_object(word):
            return word
        return self.first_object(word.index) if word.text in PRONOUNS else None

    def first_object(self, before: int) -> Word | None:
        """The first object before an index."""
        return next((word for word in self.words[:before] if self.is_object(word) and word.label != "npadvmod"), None)

    def named_by(self, word: Word) -> list[Word]:
        """The objects that a word and those coordinated with it name."""
        resolved = (self.resolved(other) for other in word.with_conjuncts())
        return [other for other in resolved if other is not None]

    def phrases(self, head: Word) -> Iterator[Phrase]:
        """The prepositional phrases of a word."""
        for child in head.children:
            if child.label in ("prep", "agent", "dative"):
                yield from self._phrases_of(child)
            elif child.label == "advmod":  # "next to a house"
                for preposition in child.labelled("prep"):
                    for target in preposition.labelled("pobj"):
                        yield Phrase(f"{child.text} {preposition.text}", preposition, target)

    def _phrases_of(self, preposition: Word) -> Iterator[Phrase]:
        for child in preposition.children:
            if child.label == "pobj":
                if self._is_three_words(preposition, child):
                    for target in self._targets_of_of(child):
                        yield Phrase(f"{preposition.text} {child.text} of", preposition, target, is_three_words=True)
                else:
                    yield Phrase(preposition.text, preposition, child)
            elif child.label == "prep":  # "out of a window"
                for target in child.labelled("pobj"):
                    yield Phrase(f"{preposition.text} {child.text}", child, target)

    def _is_three_words(self, preposition: Word, noun: Word) -> bool:
        """Whether "in front of" is one preposition. In captions without a verb, "front" is an object of its own."""
        if not self.has_verb or (preposition.text, noun.text) not in _THREE_WORDS or noun.has(*_MODIFIERS):
            return False
        return any(child.text == "of" for child in noun.labelled("prep"))

    @staticmethod
    def _targets_of_of(noun: Word) -> Iterator[Word]:
        return (target for of in noun.labelled("prep") if of.text == "of" for target in of.labelled("pobj"))

    def _find_inner_nouns(self) -> set[int]:
        """The nouns of "in front of" and "on top of" where these are prepositions: no relations of their own."""
        return {
            noun.index
            for preposition in self.words
            if preposition.label in ("prep", "agent", "dative")
            for noun in preposition.labelled("pobj")
            if self._is_three_words(preposition, noun)
        }

    def _attach_after_gerund(self) -> None:
        """What follows a gerund without a subject belongs to the nearest object, apart from its first phrase."""
        gerund = self.opening.gerund
        if gerund is None or not self.opening.has_no_subject:
            return
        self._take_first_phrase(gerund)
        after_object = [preposition for preposition in gerund.labelled("prep") if preposition.index > gerund.index]
        target = next(gerund.labelled("dobj"), None)
        if self.opening.reading == "noun" and target is not None:
            moved = [preposition for preposition in after_object if preposition.index > target.index]
        else:
            moved = after_object[1:]
        for preposition in moved:
            self._lower(preposition, "prep")
        for verb in list(gerund.labelled("advcl", "xcomp", "acl", "conj")):
            if verb.tag == "VBG":
                self._lower(verb, "acl")

    def _take_first_phrase(self, gerund: Word) -> None:
        """If its subject is lost, a gerund has the first phrase after its object: "flying a kite in the sky"."""
        target = next(gerund.labelled("dobj"), None)
        if self.opening.reading != "lost" or target is None or gerund.has("prep"):
            return
        first = next((preposition for preposition in target.labelled("prep") if preposition.text != "of"), None)
        if first is not None:
            first.attach(gerund)

    def _lower(self, word: Word, label: str) -> None:
        before = [other for other in self.words[: word.index] if self.is_object(other)]
        if before and (before[-1] is not self.opening.gerund or label == "prep"):
            word.attach(before[-1], label)
