"""The rules that turn a parsed caption into objects, attributes and relations.

References:
    Schuster, Krishna, Chang, Fei-Fei and Manning (2015). Generating Semantically Precise Scene Graphs from Textual
    Descriptions for Improved Image Retrieval. Workshop on Vision and Language. The rules.
    Anderson, Fernando, Johnson and Gould (2016). SPICE. ECCV, section 3.1. Every noun is an object, and a number is an
    attribute.
"""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.text.parsing.words import Sentence, Word
from multimodal_eval.text.scene_graphs.graph import Attribute, Relation, SceneGraph
from multimodal_eval.text.scene_graphs.openings import Openings
from multimodal_eval.text.scene_graphs.reading import CaptionReading
from multimodal_eval.text.scene_graphs.verbs import verb_attributes, verb_relations

NUMBERS = {
    name: str(number)
    for number, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
QUANTITIES = frozenset({"bunch", "couple", "lot", "lots"})  # "a couple of dogs" says how many dogs there are


def scene_graph(sentence: Sentence, openings: Openings = "original") -> SceneGraph:
    """The objects, attributes and relations of a caption. The sentence is changed."""
    reading = CaptionReading(sentence, openings)
    attributes: list[Attribute] = [
        (reading.opening.noun_gerund.lemma, word.lemma)
        for word in reading.gerund_modifiers
        if reading.opening.noun_gerund is not None
    ]
    relations: list[Relation] = []
    for word in sentence:
        if reading.is_object(word):
            attributes += _noun_attributes(word, reading)
            relations += _noun_relations(word, reading)
        if word.is_verb:
            attributes += verb_attributes(word, reading)
            relations += verb_relations(word, reading)
    return SceneGraph(tuple(word.lemma for word in reading.objects), tuple(attributes), tuple(relations))


def _modifiers(noun: Word, reading: CaptionReading) -> Iterator[Word]:
    """The modifiers of a noun, without a first word that is read as a verb ("stop sign")."""
    skips_first = reading.opening.reading == "order"
    gerund = reading.opening.noun_gerund
    first = 0 if gerund is None else gerund.index
    return (child for child in noun.children if child.index >= first and not (skips_first and child.index == 0))


def _noun_attributes(noun: Word, reading: CaptionReading) -> Iterator[Attribute]:
    for modifier in _modifiers(noun, reading):
        if modifier.label == "amod":
            for other in modifier.with_conjuncts():
                if _participle_noun(other) is None:
                    yield noun.lemma, other.lemma
        elif modifier.label == "nummod":
            yield noun.lemma, _number(modifier)
        elif modifier.label == "compound":
            for other in modifier.with_conjuncts():
                yield noun.lemma, other.lemma
                for inner in other.labelled("compound", "amod"):
                    yield noun.lemma, inner.lemma
                for inner in other.labelled("nummod"):
                    yield noun.lemma, _number(inner)


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
    return noun.text in ("couple", "lots") or any(child.text == "a" for child in noun.labelled("det"))
