"""Which tuples of a candidate's scene graph are in that of the references, by category, and the F score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeVar

from multimodal_eval.text.parsing import Sentence, Word
from multimodal_eval.text.wordnet import PARTS, open_wordnet

Attribute = tuple[str, str]  # object, attribute
Relation = tuple[str, str, str]  # subject, relation, object


@dataclass(frozen=True, slots=True)
class SceneGraph:
    """Objects, attributes and relations, as base forms. Tuples may repeat; `merging.merged` unites them."""

    objects: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __len__(self) -> int:
        return len(self.objects) + len(self.attributes) + len(self.relations)


# Scene graphs of several captions of one image, united: synonymous objects become one.
#
# Two objects are synonyms if WordNet has a synset of nouns with both. Attributes and relations may share a synset of
# any part of speech.

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


T = TypeVar("T")

CATEGORIES = ("object", "attribute", "relation", "color", "count", "size")
_ATTRIBUTE_KINDS = ("color", "count", "size")

COLORS = frozenset(
    "beige black blue brown dark gold golden gray green grey maroon navy orange pink purple red silver tan teal "
    "turquoise violet white yellow".split()
)
SIZES = frozenset(
    "baby big enormous giant great huge large little massive mini narrow short small tall tiny wide".split()
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tuples of the candidate are in the references, how many it has, and how many these have."""

    matched: int = 0
    candidate: int = 0
    references: int = 0

    @property
    def precision(self) -> float:
        """The share of the candidate's tuples that are in the references; 0 without tuples."""
        return self.matched / self.candidate if self.candidate else 0.0

    @property
    def recall(self) -> float:
        """The share of the references' tuples that the candidate has; 0 without tuples."""
        return self.matched / self.references if self.references else 0.0

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall; 0 if both are 0."""
        total = self.candidate + self.references
        return 2 * self.matched / total if total else 0.0


@dataclass(slots=True)
class Tuples:
    """Tuples of each category, as text."""

    objects: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Match:
    """A candidate's graph compared with that of its references."""

    all: Counts
    by_category: dict[str, Counts]
    matched: Tuples
    unmatched: Tuples  # of the candidate
    missed: Tuples  # of the references


def compare(candidate: SceneGraph, references: SceneGraph) -> Match:
    """Compare two merged graphs."""
    matched = SceneGraph(
        tuple(name for name in candidate.objects if any(is_same_object(name, other) for other in references.objects)),
        tuple(pair for pair in candidate.attributes if _has_attribute(references, pair)),
        tuple(triple for triple in candidate.relations if _has_relation(references, triple)),
    )
    by_category = {
        category: Counts(*(_size(graph, category) for graph in (matched, candidate, references)))
        for category in CATEGORIES
    }
    missed = SceneGraph(
        tuple(name for name in references.objects if not any(is_same_object(name, other) for other in matched.objects)),
        tuple(pair for pair in references.attributes if not _has_attribute(matched, pair)),
        tuple(triple for triple in references.relations if not _has_relation(matched, triple)),
    )
    return Match(
        Counts(len(matched), len(candidate), len(references)),
        by_category,
        _tuples(matched),
        _tuples(_without(candidate, matched)),
        _tuples(missed),
    )


def attribute_kind(attribute: str) -> str | None:
    """`color`, `count` or `size`; None for other attributes."""
    if attribute in COLORS:
        return "color"
    if attribute.isdigit():
        return "count"
    return "size" if attribute in SIZES else None


def _size(graph: SceneGraph, category: str) -> int:
    if category in _ATTRIBUTE_KINDS:
        return sum(attribute_kind(attribute) == category for _, attribute in graph.attributes)
    return len({"object": graph.objects, "attribute": graph.attributes, "relation": graph.relations}[category])


def _has_attribute(graph: SceneGraph, pair: Attribute) -> bool:
    return any(
        is_same_object(pair[0], name) and is_same_word(pair[1], attribute) for name, attribute in graph.attributes
    )


def _has_relation(graph: SceneGraph, triple: Relation) -> bool:
    return any(
        is_same_object(triple[0], subject) and is_same_word(triple[1], relation) and is_same_object(triple[2], target)
        for subject, relation, target in graph.relations
    )


def _without(graph: SceneGraph, matched: SceneGraph) -> SceneGraph:
    return SceneGraph(
        _others(graph.objects, matched.objects),
        _others(graph.attributes, matched.attributes),
        _others(graph.relations, matched.relations),
    )


def _others(values: Iterable[T], matched: Iterable[T]) -> tuple[T, ...]:
    known = set(matched)
    return tuple(value for value in values if value not in known)


def _tuples(graph: SceneGraph) -> Tuples:
    return Tuples(
        list(graph.objects),
        [f"{name}: {attribute}" for name, attribute in graph.attributes],
        [", ".join(triple) for triple in graph.relations],
    )


# How the original reads the opening of a caption: "a man riding a wave", "stop sign on a street".
#
# SPICE's parser was trained on newspapers and takes the opening of many captions for something else. Its output on COCO
# shows four readings of a noun with a gerund, such as "a man riding", and one of certain first words:
#
#     noun       frequent gerunds are the head of a noun phrase: "holding" is an object with the attribute "man"
#     adjective  after a noun with a colour: "black bear standing in water" has a standing bear, and a bear in water
#     lost       the gerund is a verb without a subject: neither its object nor its first phrase is a relation
#     clause     the noun is the subject, as people read it
#     order      the first word is a verb, such as "stop", "fire" and "living": "stop sign on a street"
#
# `plain` reads every opening as a clause. docs/metrics/spice.md has the agreement with the original for both.

Reading = Literal["noun", "adjective", "lost", "clause", "order", "none"]
Openings = Literal["original", "plain"]  # as the original reads them, or as people do

NOUN_GERUNDS = frozenset({"holding", "riding"})  # after "a man"
BARE_NOUN_GERUNDS = frozenset({"holding", "swinging"})  # after a bare "man", with an object and one phrase
NOUN_GERUNDS_IN = frozenset({"eating", "playing", "riding"})  # the same, if the phrase is "in a field"
ORDERS = frozenset({"fire", "living", "stop"})
_OPENING_TAGS = frozenset("DT JJ JJR JJS NN NNP NNS CC VBN CD PRP$".split())
_DETERMINERS = ("DT", "CD", "PRP$")
_ADJECTIVES = ("JJ", "JJR", "JJS", "VBN")


@dataclass(frozen=True, slots=True)
class Opening:
    """The reading of a caption's opening, and the gerund that it is about."""

    reading: Reading
    gerund: Word | None = None
    is_coordinated: bool = False  # "black and white cat sitting", whose gerund the original also takes for a verb
    start: int = 0  # of the noun phrase before the gerund: after "of" in "herd of sheep standing"

    @property
    def noun_gerund(self) -> Word | None:
        """The gerund that is read as a noun."""
        return self.gerund if self.reading == "noun" else None

    @property
    def nominal_gerund(self) -> Word | None:
        """The gerund that is read as a noun or an adjective."""
        return self.gerund if self.reading in ("noun", "adjective") else None

    @property
    def loses_first_color(self) -> bool:
        """Whether only the second of two colours counts: "black and white cat sitting"."""
        return (
            self.reading == "adjective"
            and self.is_coordinated
            and self.gerund is not None
            and self.gerund.text == "sitting"
        )

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
        if reading != "clause" and not _is_order(sentence):
            return Opening(reading, gerund, _is_coordinated(sentence[:count]))
    return Opening("order", gerund) if _is_order(sentence) else _group(sentence)


def _is_order(sentence: Sentence) -> bool:
    """Whether the first word is read as a verb."""
    first = sentence[0].text if len(sentence) > 1 else ""
    is_man = first == "man" and any(is_tying(word, sentence) for word in sentence)
    return is_man or (first in ORDERS and sentence[1].is_noun)


def is_skiing(word: Word, gerund: Word) -> bool:
    """Whether "skis" is a verb: "man riding skis"."""
    return word.text == "skis" and gerund.text == "riding" and word.index == gerund.index + 1


def is_tying(word: Word, sentence: Sentence) -> bool:
    """Whether "tie" is a verb: "man in a suit and tie", in which "man" is one, too."""
    return word.text == "tie" and word.index > 0 and sentence[word.index - 1].tag == "CC"


def _group(sentence: Sentence) -> Opening:
    """The reading of "herd of sheep standing": "standing" is a noun after a noun without the ending of a plural."""
    group = 1 if sentence and sentence[0].tag == "DT" else 0
    of = next((word.index for word in sentence[group + 1 : group + 2] if word.text == "of"), len(sentence))
    for word in sentence[of + 2 : of + 4]:
        before = sentence[word.index - 1]
        if word.text == "standing" and _has_gerund(word, before) and _is_singular(before):
            return Opening("noun", word, start=of + 1)
    return Opening("none")


def _is_singular(noun: Word) -> bool:
    """Whether a noun has no ending of a plural, whatever its tag: "zebra"."""
    return noun.lemma == noun.text != "people"


def _has_gerund(word: Word, before: Word) -> bool:
    return word.tag == "VBG" and before.is_noun and not word.has("aux", "auxpass")


def _reading(sentence: Sentence, gerund: Word) -> Reading:
    opening = sentence[: gerund.index]
    has_object = gerund.has("dobj")
    if opening[-1].tag == "NNS" and not _is_singular(opening[-1]):
        return "lost" if has_object and opening[0].tag != "CD" else "clause"
    if opening[0].tag not in _DETERMINERS:
        return _bare_reading(opening, gerund, sentence)
    if gerund.text == "standing":
        return "adjective" if _is_coordinated(opening) else "noun"
    if _is_coordinated(opening) or any(is_skiing(word, gerund) for word in gerund.labelled("dobj")):
        return "clause"
    if gerund.text in NOUN_GERUNDS and _phrases(gerund) and not any(word.tag in _ADJECTIVES for word in opening):
        return "noun"
    return "lost" if has_object or gerund.text == "sitting" else "clause"


def _bare_reading(opening: Sentence, gerund: Word, sentence: Sentence) -> Reading:
    """The reading without a determiner: "man holding a kite"."""
    if gerund.text == "standing" and not gerund.has("dobj"):
        return "adjective" if any(word.text in COLORS for word in opening) else "noun"
    if _is_coordinated(opening):  # "black and white cat"
        if gerund.text != "sitting":
            return "clause"
        return "lost" if any(word.label == "compound" for word in opening) else "adjective"
    if any(is_skiing(word, gerund) for word in gerund.labelled("dobj")):
        return "noun"
    phrases = _phrases(gerund)
    later_verbs = any(word.is_verb and word.label != "amod" for word in sentence[gerund.index + 1 :])
    if not gerund.has("dobj") or len(phrases) != 1 or later_verbs:
        return "lost"
    is_noun = gerund.text in BARE_NOUN_GERUNDS or (gerund.text in NOUN_GERUNDS_IN and _is_plain_in(phrases[0]))
    return "noun" if is_noun else "lost"


def _is_coordinated(opening: Sentence) -> bool:
    """Whether it has two adjectives, such as "black and white"."""
    return any(word.tag == "CC" for word in opening)


def _is_plain_in(preposition: Word) -> bool:
    """Whether a phrase is "in a field", and not "in front of a house"."""
    return preposition.text == "in" and not any(target.has("prep") for target in preposition.labelled("pobj"))


def _phrases(gerund: Word) -> list[Word]:
    """The prepositions after the gerund and after its objects."""
    after_gerund = list(gerund.labelled("prep"))
    after_object = [preposition for target in gerund.labelled("dobj") for preposition in target.labelled("prep")]
    return after_gerund + [preposition for preposition in after_object if preposition.text != "of"]
