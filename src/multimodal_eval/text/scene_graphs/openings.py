"""How the original reads the opening of a caption: "a man riding a wave", "stop sign on a street".

SPICE's parser was trained on newspapers and takes the opening of many captions for something else. Its output on COCO
shows three readings of a noun with a gerund, such as "a man riding", and one of certain first words:

    a noun   frequent gerunds are the head of a noun phrase: "riding" is an object with the attribute "man"
    lost     the gerund is a verb without a subject: neither its object nor its first phrase is a relation
    clause   the noun is the subject, as people read it
    order    "stop", "fire" and "living" are verbs: "stop sign on a street" has no relation of the sign

`plain` reads every opening as a clause. docs/metrics/spice.md has the agreement with the original for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from multimodal_eval.text.parsing import Sentence, Word

Reading = Literal["noun", "lost", "clause", "order", "none"]
Openings = Literal["original", "plain"]  # as the original reads them, or as people do

NOUN_GERUNDS = frozenset({"holding", "riding", "sitting", "standing"})  # after "a man"
BARE_NOUN_GERUNDS = frozenset({"eating", "holding", "swinging"})  # after a bare "man", with an object and one phrase
ORDERS = frozenset({"fire", "living", "stop"})
_OPENING_TAGS = frozenset("DT JJ JJR JJS NN NNP NNS CC VBN CD PRP$".split())
_DETERMINERS = ("DT", "CD", "PRP$")


@dataclass(frozen=True, slots=True)
class Opening:
    """The reading of a caption's opening, and the gerund that it is about."""

    reading: Reading
    gerund: Word | None = None
    is_coordinated: bool = False  # "black and white cat sitting", whose gerund the original also takes for a verb

    @property
    def noun_gerund(self) -> Word | None:
        """The gerund that is read as a noun."""
        return self.gerund if self.reading == "noun" else None

    @property
    def has_no_subject(self) -> bool:
        """Whether the gerund is not a verb with a subject."""
        return self.reading in ("noun", "lost")


def opening_of(sentence: Sentence, openings: Openings = "original") -> Opening:
    """The reading of the words before the first verb."""
    if openings == "plain":
        return Opening("none")
    count = next((word.index for word in sentence if word.tag not in _OPENING_TAGS), len(sentence))
    gerund = sentence[count] if 0 < count < len(sentence) else None
    if gerund is not None and _has_gerund(gerund, sentence[count - 1]):
        reading = _reading(sentence, gerund)
        if reading != "clause":
            is_coordinated = reading == "noun" and any(word.tag == "CC" for word in sentence[:count])
            return Opening(reading, gerund, is_coordinated)
    if len(sentence) > 1 and sentence[0].text in ORDERS and sentence[1].is_noun:
        return Opening("order", gerund)
    return Opening("none")


def _has_gerund(word: Word, before: Word) -> bool:
    return word.tag == "VBG" and before.is_noun and not word.has("aux", "auxpass")


def _reading(sentence: Sentence, gerund: Word) -> Reading:
    subject = sentence[gerund.index - 1]
    has_object = gerund.has("dobj")
    if subject.tag == "NNS":
        return "lost" if has_object else "clause"
    if sentence[0].tag not in _DETERMINERS:
        return _bare_reading(sentence, gerund)
    phrases = _phrases(gerund)
    if gerund.text in NOUN_GERUNDS and (gerund.text != "sitting" or len(phrases) <= 1):
        return "noun"
    return "lost" if has_object else "clause"


def _bare_reading(sentence: Sentence, gerund: Word) -> Reading:
    """The reading without a determiner: "man standing on a rock"."""
    if any(word.tag == "CC" for word in sentence[: gerund.index]):  # "black and white cat"
        return "noun" if gerund.text == "sitting" else "clause"
    if gerund.text == "standing":
        return "noun"
    phrases = _phrases(gerund)
    later_verbs = any(word.is_verb and word.label != "amod" for word in sentence[gerund.index + 1 :])
    if not gerund.has("dobj") or len(phrases) != 1 or later_verbs:
        return "lost"
    is_noun = gerund.text in BARE_NOUN_GERUNDS or (gerund.text == "riding" and phrases[0].text == "in")
    return "noun" if is_noun else "lost"


def _phrases(gerund: Word) -> list[Word]:
    """The prepositions after the gerund and after its objects."""
    after_gerund = list(gerund.labelled("prep"))
    return after_gerund + [preposition for target in gerund.labelled("dobj") for preposition in target.labelled("prep")]
