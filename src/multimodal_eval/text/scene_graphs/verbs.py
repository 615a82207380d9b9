"""The attributes and relations of verbs: "a dog chases a cat", "a dog sleeps", "a boat tied to a dock"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from multimodal_eval.text.parsing.words import Word
from multimodal_eval.text.scene_graphs.attachments import innermost, is_participle
from multimodal_eval.text.scene_graphs.graph import Attribute, Relation
from multimodal_eval.text.scene_graphs.reading import CaptionReading, Phrase

_NOT_MAIN = ("aux", "auxpass", "amod", "compound")
_SUBJECTS = ("nsubj", "nsubjpass")
_RELATIVE = ("WDT", "WP")
_BELOW_A_VERB = ("conj", "advcl", "xcomp", "ccomp")
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


def verb_attributes(verb: Word, reading: CaptionReading) -> Iterator[Attribute]:
    """Adjectives after "be", and verbs without an object: "the dog is wet", "a dog sleeps"."""
    if verb.label in _NOT_MAIN:
        return
    for subject in _subjects(verb, reading).words:
        for adjective in verb.labelled("acomp"):
            for other in adjective.with_conjuncts():
                yield subject.lemma, other.lemma
        if verb.lemma != "be" and not _has_complement(verb):
            yield subject.lemma, verb.lemma


def _has_complement(verb: Word) -> bool:
    return verb.has(*_COMPLEMENTS) or any(adverb.has("prep") for adverb in verb.labelled("advmod"))  # "next to it"


def verb_relations(verb: Word, reading: CaptionReading) -> Iterator[Relation]:
    """The relations of a verb's subjects with its objects and those of its prepositions."""
    if verb.label in _NOT_MAIN:
        return
    subjects = _subjects(verb, reading)
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
    """The verb's own subjects, or those of the verb above it."""
    current, is_inherited = verb, False
    while True:
        if current is reading.opening.gerund and reading.opening.has_no_subject:
            return Subjects()
        subjects = _own_subjects(current, reading)
        above = current.head
        if subjects.kind is not None or current.label not in _BELOW_A_VERB or above is current or not above.is_verb:
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
