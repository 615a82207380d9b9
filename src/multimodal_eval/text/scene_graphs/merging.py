"""Scene graphs of several captions of one image, united: synonymous objects become one.

Two objects are synonyms if WordNet has a synset of nouns with both. Attributes and relations may share a synset of any
part of speech.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from multimodal_eval.text.scene_graphs.graph import Attribute, Relation, SceneGraph
from multimodal_eval.text.wordnet import PARTS, open_wordnet

_CACHED = 1 << 16


@lru_cache(maxsize=_CACHED)
def object_synsets(lemma: str) -> frozenset[int]:
    """The synsets of a noun."""
    return frozenset(open_wordnet().lemma_synsets(lemma, "NOUN"))


@lru_cache(maxsize=_CACHED)
def any_synsets(lemma: str) -> frozenset[int]:
    """The synsets of a word as any part of speech; none of several words."""
    return frozenset(number for part in PARTS for number in open_wordnet().lemma_synsets(lemma, part))


def is_same_object(first: str, second: str) -> bool:
    """Whether two objects are equal or synonyms."""
    return first == second or not object_synsets(first).isdisjoint(object_synsets(second))


def is_same_word(first: str, second: str) -> bool:
    """Whether two attributes or relations are equal or synonyms."""
    return first == second or not any_synsets(first).isdisjoint(any_synsets(second))


class _Objects:
    """Numbers objects; a synonym gets the number of the first object that it is a synonym of."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._by_synset: dict[int, int] = {}

    def number(self, lemma: str) -> int:
        known = self._numbers.get(lemma)
        if known is not None:
            return known
        synsets = object_synsets(lemma)
        number = min((self._by_synset[s] for s in synsets if s in self._by_synset), default=len(self.names))
        if number == len(self.names):
            self.names.append(lemma)
            for synset in synsets:
                self._by_synset.setdefault(synset, number)
        self._numbers[lemma] = number
        return number


def merged(graphs: Iterable[SceneGraph]) -> SceneGraph:
    """One graph in which every object, attribute and relation occurs once."""
    objects = _Objects()
    attributes: dict[int, list[str]] = {}
    relations: dict[tuple[int, int], list[str]] = {}
    for graph in graphs:
        for name in graph.objects:
            objects.number(name)
        for name, attribute in graph.attributes:
            _add(attributes.setdefault(objects.number(name), []), attribute)
        for subject, relation, target in graph.relations:
            _add(relations.setdefault((objects.number(subject), objects.number(target)), []), relation)
    names = objects.names
    all_attributes: list[Attribute] = [(names[number], word) for number, words in attributes.items() for word in words]
    all_relations: list[Relation] = [
        (names[subject], word, names[target]) for (subject, target), words in relations.items() for word in words
    ]
    return SceneGraph(tuple(names), tuple(all_attributes), tuple(all_relations))


def _add(words: list[str], word: str) -> None:
    if not any(is_same_word(other, word) for other in words):
        words.append(word)
