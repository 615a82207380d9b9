"""Captions of many images, compared as scene graphs: the rules that make objects, attributes and relations.

Every distinct caption is parsed once.

References:
    Schuster, Krishna, Chang, Fei-Fei and Manning (2015). Generating Semantically Precise Scene Graphs from Textual
    Descriptions for Improved Image Retrieval. Workshop on Vision and Language. The rules.
    Anderson, Fernando, Johnson and Gould (2016). SPICE. ECCV, section 3.1. Every noun is an object, and a number is an
    attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from multimodal_eval._native import tokenize
from multimodal_eval.text.parsing import CaptionParser, Sentence, Word
from multimodal_eval.text.scene_graphs.matching import (
    Attribute,
    Match,
    Opening,
    Openings,
    Relation,
    SceneGraph,
    compare,
    is_skiing,
    is_tying,
    merged,
    opening_of,
)

# Attachments as Stanford's parser makes them, which SPICE uses: to the nearest noun.
#
# The two parsers disagree on a few points that are frequent in captions. In most, the word moves to the nearer noun.

_NOUN_LABELS = ("pobj", "dobj", "nsubj")
_PRONOMINAL = ("other", "another")  # "next to each other"
_WITH_SINGULAR = ("VBZ", "VBG", "VBD", "VBN")  # verbs that may follow a singular noun
_COORDINATED = ("conj", "appos", "attr", "dobj")  # what the parser calls the last noun of a list


_BEFORE_A_NOUN = ("det", "amod", "compound", "nummod", "poss", "nmod")


def attach_to_nearest(sentence: Sentence) -> None:
    """Move nouns of a list, participles, "with", and the phrases after "close up" to the nearest noun before them."""
    for word in sentence:
        is_modifier = word.is_noun and word.label == "compound" and word.index < word.head.index
        if is_modifier and word.head.tag in _WITH_SINGULAR:
            _make_subject(word)
    for word in sentence:
        if word.tag == "JJ" and word.label in _NOUN_LABELS and word.text not in _PRONOMINAL:
            word.is_noun = True  # "a girl in white"
        if word.label == "conj" and word.head.label == "amod" and word.head.tag == "JJ":
            word.is_noun = False  # "a black and white teddy bear"
        if word.label == "amod" and word.is_noun and word.head.index > word.index:
            word.label = "compound"  # "living room": a noun before a noun
        elif word.label in _COORDINATED and word.is_noun:
            _lower_conjunct(word, sentence)
        elif word.head.is_noun and (_is_with(word) or (word.label == "acl" and is_participle(word))):
            word.attach(innermost(word.head, word.index))
    if len(sentence) > 1 and "close" in (sentence[0].text, sentence[1].text):
        _lower_after_close_up(sentence)


def _make_subject(noun: Word) -> None:
    """In "a white ship sails", the parser takes "ship" for a modifier of a verb, and "white" too."""
    noun.label = "nsubj"
    for child in list(noun.head.labelled(*_BEFORE_A_NOUN)):
        if child.index < noun.index:
            child.attach(noun)


def _is_with(word: Word) -> bool:
    """Whether it begins a phrase such as "with a mirror" in "a view of a bathroom with a mirror"."""
    return word.label == "prep" and word.text == "with"


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
    start = min((child.index for child in word.children if child.index < word.index), default=word.index)
    if start < 2 or sentence[start - 1].tag != "CC":
        return
    first = sentence[start - 2]
    while first.label == "conj" and first.head.is_noun and first is not word.head:
        first = first.head
    if first.is_noun and first.label in ("pobj", "dobj") and first.index > word.head.index and first.head is not word:
        word.attach(first, "conj")


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


# A caption as the rules see it: which words are objects, and what pronouns and prepositions refer to.

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
        self.noun_gerund = gerund = self.opening.noun_gerund
        # the words of the noun phrase of which the gerund is the head
        self._before_gerund = [] if gerund is None else sentence[self.opening.start : gerund.index]
        self._read_gerund()
        self.has_verb = self.opening.is_coordinated or any(
            word.is_verb and word is not self.opening.nominal_gerund for word in sentence
        )
        self._attach_after_gerund()
        self.inner_nouns = self._find_inner_nouns()

    def is_object(self, word: Word) -> bool:
        """Whether a word is an object of the scene."""
        if word in self._before_gerund:
            return False  # a modifier of the gerund
        if word is self.noun_gerund:
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
        for word in self._before_gerund:
            is_first_of_two = word.index == 0 and self.words[1].tag == "CC"  # "black and white cat sitting"
            if word.tag in ("JJ", "JJR", "JJS", "NN", "NNP", "NNS", "VBN") and not is_first_of_two:
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

    def _read_gerund(self) -> None:
        """Make the opening's gerund a noun or an adjective, and "tie" and "skis" verbs, if they are read so."""
        gerund, start = self.opening.gerund, self.opening.start
        for word in self.words:
            if self.opening.reading == "order" and is_tying(word, self.words):
                word.is_noun = False
        if gerund is None:
            return
        if self.opening.nominal_gerund is not None:
            gerund.lemma = gerund.text
        if start:
            gerund.attach(self.words[start - 1], "pobj")  # "herd of sheep standing": a herd of standing
        if self.opening.reading == "adjective":  # "black bear standing in water": the bear is in water
            subject = self.words[gerund.index - 1]
            for phrase in list(gerund.labelled("prep", "advmod")):
                phrase.attach(subject)
            gerund.attach(subject, "amod")
        for skis in [word for word in gerund.labelled("dobj") if is_skiing(word, gerund)]:
            skis.is_noun = not self.opening.has_no_subject
            for phrase in list(gerund.labelled("prep")) if self.opening.reading == "noun" else ():
                phrase.attach(skis)

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


# The attributes and relations of verbs: "a dog chases a cat", "a dog sleeps", "a boat tied to a dock".

_NOT_MAIN = ("aux", "auxpass", "amod", "compound")
_SUBJECTS = ("nsubj", "nsubjpass")
_RELATIVE = ("WDT", "WP")
_COMPLEMENTS = ("prep", "dobj", "attr", "acomp")

# passive: its phrases are not relations. relative ("that is …"): only "in front of" and "on top of" are.
# gerund: of the caption's first noun; only its first phrase is a relation.
Kind = Literal["active", "passive", "relative", "gerund"]


@dataclass(frozen=True, slots=True)
class Subjects:
    """The objects that a verb is about, and how they are its subject."""

    words: tuple[Word, ...] = ()
    kind: Kind | None = None
    is_inherited: bool = False  # from a verb above


def verb_attributes(verb: Word, subjects: Subjects) -> Iterator[Attribute]:
    """Adjectives after "be", and active verbs without an object: "the dog is wet", "a dog sleeps"."""
    is_attribute = verb.lemma != "be" and verb.label != "acl" and subjects.kind != "passive"
    for subject in subjects.words:
        for adjective in verb.labelled("acomp"):
            for other in adjective.with_conjuncts():
                yield subject.lemma, other.lemma
        if is_attribute and not _has_complement(verb):
            yield subject.lemma, verb.lemma


def _has_complement(verb: Word) -> bool:
    return verb.has(*_COMPLEMENTS) or any(adverb.has("prep") for adverb in verb.labelled("advmod"))  # "next to it"


def verb_relations(verb: Word, subjects: Subjects, reading: CaptionReading) -> Iterator[Relation]:
    """The relations of a verb's subjects with its objects and those of its prepositions."""
    for subject in subjects.words:
        yield from _object_relations(verb, subject, subjects, reading)
        yield from _phrase_relations(verb, subject, subjects, reading)


def _object_relations(verb: Word, subject: Word, subjects: Subjects, reading: CaptionReading) -> Iterator[Relation]:
    for child in verb.children:
        if child.label == "dobj" and subjects.kind != "relative":
            for target in reading.named_by(child):
                yield subject.lemma, verb.lemma, target.lemma
        elif child.label == "attr" and child.is_noun:
            yield subject.lemma, "be", child.lemma
        elif child.label == "acomp":
            for phrase in reading.phrases(child):
                for target in reading.named_by(phrase.target):
                    yield subject.lemma, f"{child.lemma} {phrase.name}", target.lemma


def _phrase_relations(verb: Word, subject: Word, subjects: Subjects, reading: CaptionReading) -> Iterator[Relation]:
    is_first = True
    for phrase in reading.phrases(verb):
        for target in reading.named_by(phrase.target):
            if phrase.preposition.label == "agent":  # "is chased by a dog"
                yield target.lemma, verb.lemma, subject.lemma
            elif _counts(phrase, subjects, is_first):
                is_first = False
                yield subject.lemma, f"{verb.lemma} {phrase.name}", target.lemma


def _counts(phrase: Phrase, subjects: Subjects, is_first: bool) -> bool:
    if subjects.kind == "passive":
        return False
    if subjects.kind == "relative":
        return phrase.is_three_words
    return is_first or subjects.kind != "gerund" or subjects.is_inherited


def _subjects(verb: Word, reading: CaptionReading) -> Subjects:
    """The verb's own subjects, or those of the verb that it is coordinated with."""
    current, is_inherited = verb, False
    while True:
        if current is reading.opening.gerund and reading.opening.has_no_subject:
            return Subjects()
        subjects = _own_subjects(current, reading)
        above = current.head
        if subjects.kind is not None or current.label != "conj" or above is current or not above.is_verb:
            return Subjects(subjects.words, subjects.kind, is_inherited)
        current, is_inherited = above, True


def _own_subjects(verb: Word, reading: CaptionReading) -> Subjects:
    words: list[Word] = []
    kind: Kind | None = None
    for child in verb.labelled(*_SUBJECTS):
        is_passive = child.label == "nsubjpass"
        if child.tag in _RELATIVE:
            kind = "passive" if is_passive else "relative"
            if verb.label == "relcl":
                words += reading.named_by(verb.head)[:1]
        elif verb.tag == "VBG" and is_participle(verb):  # "a group of people riding": the people ride
            inner = innermost(child, verb.index)
            kind = "gerund" if inner is child else "active"
            words += reading.named_by(child) if inner is child else [inner]
        else:
            kind = "passive" if is_passive else "active"
            words += reading.named_by(child)
    if kind is None and verb.label in ("acl", "relcl") and reading.is_object(verb.head):
        is_gerund = verb.tag == "VBG" and verb.head.label == "ROOT"
        return Subjects((verb.head,), "gerund" if is_gerund else "active")
    return Subjects(tuple(words), kind)


NUMBERS = {
    name: str(number)
    for number, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
QUANTITIES = frozenset({"bunch", "couple", "lot", "lots"})  # "a couple of dogs" says how many dogs there are
QUANTIFIERS = frozenset({"bunch", "couple", "group", "lot", "pair"})  # after "a", also an attribute of the dogs


def scene_graph(sentence: Sentence, openings: Openings = "original") -> SceneGraph:
    """The objects, attributes and relations of a caption. The sentence is changed."""
    reading = CaptionReading(sentence, openings)
    attributes: list[Attribute] = [
        (reading.noun_gerund.lemma, word.lemma) for word in reading.gerund_modifiers if reading.noun_gerund is not None
    ]
    relations: list[Relation] = []
    for word in sentence:
        if reading.is_object(word):
            attributes += _noun_attributes(word, reading)
            attributes += _quantity_attributes(word)
            relations += _noun_relations(word, reading)
        if word.is_verb and word.label not in _NOT_MAIN:
            subjects = _subjects(word, reading)
            attributes += verb_attributes(word, subjects)
            relations += verb_relations(word, subjects, reading)
    return SceneGraph(tuple(word.lemma for word in reading.objects), tuple(attributes), tuple(relations))


def _modifiers(noun: Word, reading: CaptionReading) -> Iterator[Word]:
    """The modifiers of a noun, without a first word that is read as a verb ("stop sign")."""
    skips_first = reading.opening.reading == "order"
    gerund = reading.noun_gerund
    first = 0 if gerund is None or noun.index < gerund.index else gerund.index
    return (child for child in noun.children if child.index >= first and not (skips_first and child.index == 0))


def _noun_attributes(noun: Word, reading: CaptionReading) -> Iterator[Attribute]:
    for modifier in _modifiers(noun, reading):
        if modifier.label == "amod":
            for other in modifier.with_conjuncts():
                if _participle_noun(other) is None and not (reading.opening.loses_first_color and other.index == 0):
                    yield noun.lemma, other.lemma
        elif modifier.label == "nummod":
            yield noun.lemma, _number(modifier)
        elif modifier.label == "compound":
            for other in modifier.with_conjuncts():
                yield noun.lemma, other.lemma
                for inner in other.labelled("compound", "amod"):
                    yield from ((noun.lemma, word.lemma) for word in inner.with_conjuncts())
                for inner in other.labelled("nummod"):
                    yield noun.lemma, _number(inner)


def _quantity_attributes(noun: Word) -> Iterator[Attribute]:
    """In "a couple of dogs", the dogs are a couple."""
    if noun.text in QUANTIFIERS and _follows_a(noun):
        for of in noun.labelled("prep"):
            if of.text == "of":
                for target in of.labelled("pobj"):
                    yield target.lemma, noun.text


def _noun_relations(noun: Word, reading: CaptionReading) -> Iterator[Relation]:
    for modifier in _modifiers(noun, reading):
        if modifier.label == "amod":  # "a snow covered hill"
            for other in modifier.with_conjuncts():
                inner = _participle_noun(other)
                if inner is not None:
                    yield noun.lemma, other.lemma, inner.lemma
        elif modifier.label == "poss":
            owner = modifier if modifier.is_noun else reading.first_object(modifier.index)
            if owner is not None:
                yield owner.lemma, "have", noun.lemma
    if noun.index in reading.inner_nouns or (reading.opening.reading == "order" and noun.index == 1):
        return
    for phrase in reading.phrases(noun):
        if phrase.name == "of" and _is_quantity(noun):
            continue
        for target in reading.named_by(phrase.target):
            yield noun.lemma, phrase.name, target.lemma


def _participle_noun(modifier: Word) -> Word | None:
    """The noun of "snow covered"."""
    if modifier.tag not in ("VBN", "VBD"):
        return None
    return next((child for child in modifier.children if child.is_noun), None)


def _number(word: Word) -> str:
    return NUMBERS.get(word.text, word.text)


def _is_quantity(noun: Word) -> bool:
    if noun.text not in QUANTITIES:
        return False
    return noun.text in ("couple", "lots") or _follows_a(noun)


def _follows_a(noun: Word) -> bool:
    return any(child.text == "a" for child in noun.labelled("det"))


IMAGES_AT_ONCE = 1024  # the parses of more would take much memory

Tokens = tuple[str, ...]


def compared_captions(
    parser: CaptionParser,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    openings: Openings = "original",
    threads: int = 1,
    are_lines: bool = False,
) -> Iterator[Match]:
    """Each candidate compared with its references. With `are_lines`, tokens depend on the next caption, as in Java."""
    counts = [len(texts) for texts in references]
    all_candidates = _tokens(candidates, are_lines)
    all_references = _tokens([text for texts in references for text in texts], are_lines)
    start = 0
    for first in range(0, len(all_candidates), IMAGES_AT_ONCE):
        block = counts[first : first + IMAGES_AT_ONCE]
        end = start + sum(block)
        yield from _compared(
            parser, all_candidates[first : first + IMAGES_AT_ONCE], all_references[start:end], block, openings, threads
        )
        start = end


def caption_graphs(
    parser: CaptionParser, captions: Sequence[Tokens], openings: Openings = "original", threads: int = 1
) -> dict[Tokens, SceneGraph]:
    """The scene graph of each distinct caption."""
    distinct = list(dict.fromkeys(captions))
    return {
        tokens: scene_graph(sentence, openings)
        for tokens, sentence in zip(distinct, parser.parse(distinct, threads), strict=True)
    }


def _tokens(texts: Sequence[str], are_lines: bool) -> list[Tokens]:
    return [tuple(tokens) for tokens in tokenize(list(texts), "ptb", are_lines)]


def _compared(
    parser: CaptionParser,
    candidates: list[Tokens],
    references: list[Tokens],
    counts: list[int],
    openings: Openings,
    threads: int,
) -> Iterator[Match]:
    graphs = caption_graphs(parser, [*candidates, *references], openings, threads)
    start = 0
    for tokens, count in zip(candidates, counts, strict=True):
        reference = merged(graphs[other] for other in references[start : start + count])
        yield compare(merged([graphs[tokens]]), reference)
        start += count
