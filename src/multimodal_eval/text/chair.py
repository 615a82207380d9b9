"""What the two CHAIR metrics count: COCO's 80 objects that an answer mentions, and those that are not in the picture.

`coco_objects.tsv` lists how captions name each object, in the singular; a name of one word counts where it is a noun
("an orange cat" has no orange, "they train" no train), and a longer name goes before a shorter one ("hot dog" is no
dog). Names in the line `-` mention nothing ("train station"). Some names are made here: "baby elephant" and "elephant
calf" are elephants and no person or cow, "toy bear" and "stuffed dog" are teddy bears, "passenger jet" is no person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.pos import split_words, tag
from multimodal_eval.text.remembered import remembered
from multimodal_eval.text.wordnet import open_wordnet

NEEDS = ("generated_answer", "references|metadata.objects")

_ANIMALS = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")
_VEHICLES = ("bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat")
_OF_ANIMALS = (
    "baby",
    "adult",
    "mother",
    "mama",
    "momma",
    "mommy",
    "father",
    "papa",
    "male",
    "female",
    "infant",
    "police",
)
_OF_VEHICLES = ("passenger", "commuter", "police", "cop", "tourist", "kid", "child", "student", "driver")
_YOUNG = ("baby", "calf", "cub", "pup", "colt", "foal", "chick", "lamb", "kid")
_TOYS = ("toy", "stuffed", "plush", "teddy")

Name = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mention:
    """An object that a text mentions, and the words that do."""

    object: str
    words: str


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """The mentions of an answer, and those of objects that the picture does not have."""

    mentioned: tuple[Mention, ...]
    hallucinated: tuple[Mention, ...]

    @property
    def details(self) -> dict[str, list[str]]:
        """Which words mention objects, and which of these are hallucinated."""
        return {
            "mentioned_objects": [mention.words for mention in self.mentioned],
            "hallucinated_objects": [mention.words for mention in self.hallucinated],
        }


def object_counts(sample: Sample) -> ObjectCounts:
    """What a sample's answer mentions, against the objects of its references and its list together."""
    present = set(objects_of(_listed(sample)))
    for text in sample.reference_texts:
        present |= _objects_in(text)
    said = tuple(mentions(sample.generated_answer or ""))
    return ObjectCounts(said, tuple(mention for mention in said if mention.object not in present))


def texts_of(sample: Sample) -> list[str]:
    """The texts in which objects are looked for."""
    return [sample.generated_answer or "", *sample.reference_texts]


def is_blank(sample: Sample) -> bool:
    """Whether the answer has nothing in it."""
    return not (sample.generated_answer or "").strip()


@remembered
def _objects_in(text: str) -> frozenset[str]:
    return frozenset(mention.object for mention in mentions(text))


def _listed(sample: Sample) -> Sequence[str]:
    """The objects in `metadata["objects"]`."""
    listed = sample.metadata.get("objects")
    if listed is None:
        return ()
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        message = f"`objects` must be a list of strings. Got {shorten(listed)} instead."
        raise InputError([Problem(code="TYPE", message=message, id=sample.id, field="metadata.objects")])
    return listed


def mentions(text: str) -> list[Mention]:
    """The objects that a text mentions, each time it does, in order."""
    words = split_words(text)
    forms = [_forms(word.lower()) for word in words]
    tags = tag(words)
    found: list[Mention] = []
    start = 0
    while start < len(words):
        length, category = _longest(forms, tags, start)
        if category:
            found.append(Mention(category, " ".join(words[start : start + length]).lower()))
        start += length
    return found


def objects_of(names: Iterable[str]) -> set[str]:
    """The objects that a list of names holds, by any of their names; names of other things are left out."""
    found = set()
    for name in names:
        forms = [_forms(word.lower()) for word in split_words(name)[: _longest_name() + 1]]
        found |= {_names()[choice] for choice in product(*forms) if _names().get(choice)}
    return found


def _longest(forms: Sequence[Sequence[str]], tags: Sequence[str], start: int) -> tuple[int, str]:
    """The words of the longest name that starts here, and its object; one word and none where there is no name."""
    for length in range(min(_longest_name(), len(forms) - start), 0, -1):
        if length == 1 and tags[start] not in ("NOUN", "PROPN"):
            break
        for choice in product(*forms[start : start + length]):
            if choice in _names():
                return length, _names()[choice]
    return 1, ""


def _forms(word: str) -> list[str]:
    """The word as it stands and its singulars: "glasses" are glasses, or more than one glass."""
    return list(dict.fromkeys([word, *open_wordnet().lemmas(word, "NOUN")]))


@cache
def _names() -> dict[Name, str]:
    """The object of each name; empty for a name that mentions none. What is listed goes before what is made."""
    listed = {
        tuple(name.split()): "" if category == "-" else category for category, names in _lines() for name in names
    }
    return dict(_made_names(listed)) | listed


def _made_names(listed: dict[Name, str]) -> Iterator[tuple[Name, str]]:
    for name, category in listed.items():
        if category in _ANIMALS:
            yield from (((toy, *name), "teddy bear") for toy in _TOYS)
            yield from (((parent, *name), category) for parent in _OF_ANIMALS)
            yield from (((*name, young), category) for young in _YOUNG)
        if category in _VEHICLES:
            yield from (((rider, *name), category) for rider in _OF_VEHICLES)


@cache
def _longest_name() -> int:
    return max(map(len, _names()))


@cache
def _lines() -> list[tuple[str, list[str]]]:
    text = (files("multimodal_eval.text") / "coco_objects.tsv").read_text("utf-8")
    pairs = (line.split("\t") for line in text.splitlines())
    return [(category, names.split("; ")) for category, names in pairs]
