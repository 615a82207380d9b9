"""CHAIR: does an answer mention objects that are not in the image?

CHAIR_i: what share of the objects mentioned in an answer is not in the image?

Over COCO's 80 objects, with M the mentions of objects in the answers and H the mentions whose object is neither in the
references nor in the list `metadata["objects"]`:

    CHAIR_i = |H| / |M|

For a corpus it is the ratio of the sums, not the mean of the samples' ratios. Lower is better.

CHAIR_s: does an answer mention an object that is not in the image?

1 if the answer mentions one of COCO's 80 objects that is neither in the references nor in the list
`metadata["objects"]`, else 0. For a corpus, the share of such answers. Lower is better.

Reference:
    Rohrbach, Hendricks, Burns, Darrell and Saenko (2018). Object Hallucination in Image Captioning. EMNLP.
    arXiv:1809.02156. The list of names is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Score
from multimodal_eval.text.languages import UNFIT, fits
from multimodal_eval.text.pos import LANGUAGES, cached_by_text, split_words, tag
from multimodal_eval.text.wordnet import open_wordnet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = [
    "NEEDS",
    "Mention",
    "Name",
    "ObjectCounts",
    "compute_chair_i",
    "compute_chair_s",
    "is_blank",
    "mentions",
    "object_counts",
    "objects_of",
    "texts_of",
]


# Find COCO's 80 objects in an answer, for the two CHAIR metrics: all mentions, and those that are not in the image.
#
# `coco_objects.tsv` lists the names of each object in captions, in the singular. A name of one word counts only as a
# noun ("an orange cat" has no orange, "they train" no train). A longer name takes precedence over a shorter one ("hot
# dog" is not a dog). Names in the line `-` mention nothing ("train station"). Some names are generated: "baby elephant"
# and "elephant calf" are elephants, not a person or a cow; "toy bear" and "stuffed dog" are teddy bears; "passenger
# jet" is not a person.

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
    """An object that a text mentions, and the words that mention it."""

    object: str
    words: str


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """The mentions in an answer, and those of objects that are not in the image."""

    mentioned: tuple[Mention, ...]
    hallucinated: tuple[Mention, ...]

    @property
    def details(self) -> dict[str, list[str]]:
        """The words that mention objects, and those that mention hallucinated ones."""
        return {
            "mentioned_objects": [mention.words for mention in self.mentioned],
            "hallucinated_objects": [mention.words for mention in self.hallucinated],
        }


def object_counts(sample: Sample) -> ObjectCounts:
    """The objects that a sample's answer mentions, compared with those of its references and its list."""
    present = set(objects_of(_listed(sample)))
    for text in sample.reference_texts:
        present |= _objects_in(text)
    mentioned = tuple(mentions(sample.generated_answer or ""))
    return ObjectCounts(mentioned, tuple(mention for mention in mentioned if mention.object not in present))


def texts_of(sample: Sample) -> list[str]:
    """The texts that are searched for objects."""
    return [sample.generated_answer or "", *sample.reference_texts]


def is_blank(sample: Sample) -> bool:
    """Whether the answer is missing or only white space."""
    return not (sample.generated_answer or "").strip()


@cached_by_text
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
    """Every mention of an object in a text, in order."""
    words = split_words(text)
    forms = [_forms(word.lower()) for word in words]
    tags = tag(words)
    mentioned: list[Mention] = []
    start = 0
    while start < len(words):
        length, category = _longest(forms, tags, start)
        if category:
            mentioned.append(Mention(category, " ".join(words[start : start + length]).lower()))
        start += length
    return mentioned


def objects_of(names: Iterable[str]) -> set[str]:
    """The objects in a list of names, by any of their names. Names of other things are ignored."""
    objects = set()
    for name in names:
        forms = [_forms(word.lower()) for word in split_words(name)[: _longest_name() + 1]]
        objects |= {_names()[choice] for choice in product(*forms) if _names().get(choice)}
    return objects


def _longest(forms: Sequence[Sequence[str]], tags: Sequence[str], start: int) -> tuple[int, str]:
    """The number of words of the longest name that starts here, and its object; (1, "") if no name starts here."""
    for length in range(min(_longest_name(), len(forms) - start), 0, -1):
        if length == 1 and tags[start] not in ("NOUN", "PROPN"):
            break
        for choice in product(*forms[start : start + length]):
            if choice in _names():
                return length, _names()[choice]
    return 1, ""


def _forms(word: str) -> list[str]:
    """The word itself and its singulars: "glasses" can be glasses or the plural of glass."""
    return list(dict.fromkeys([word, *open_wordnet().lemmas(word, "NOUN")]))


@cache
def _names() -> dict[Name, str]:
    """The object of each name, empty if it mentions none. Listed names take precedence over generated ones."""
    listed = {
        tuple(name.split()): "" if category == "-" else category for category, names in _lines() for name in names
    }
    return dict(_generated_names(listed)) | listed


def _generated_names(listed: dict[Name, str]) -> Iterator[tuple[Name, str]]:
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


def _share(sample: Sample) -> Score:
    if is_blank(sample):  # an empty answer is not rewarded: it counts as one hallucinated mention
        return Score(1.0, stats=(1.0, 1.0))
    warning = None if all(fits(text, LANGUAGES) for text in texts_of(sample)) else UNFIT
    counts = object_counts(sample)
    hallucinated, mentioned = float(len(counts.hallucinated)), float(len(counts.mentioned))
    if not mentioned:
        return Score(None, "degenerate", "the answer mentions none of COCO's objects", warning=warning)
    stats = (hallucinated, mentioned)
    return Score(hallucinated / mentioned, stats=stats, details=counts.details, warning=warning)


def _ratio(sums: Vector) -> float:
    return float(sums[0] / sums[1])


def _gradient(sums: Vector) -> Vector:
    import numpy as np

    return np.array([1 / sums[1], -sums[0] / sums[1] ** 2])


def _aggregate(rows: Rows) -> Estimate:
    from multimodal_eval.stats.estimates import function_of_sums

    return function_of_sums(rows, _ratio, _gradient)


@metric(
    "chair_i",
    version="1",
    needs=NEEDS,
    bounds=(0, 1),
    direction="lower",
    placement="process",
    batch=True,
    aggregate=_aggregate,
)
def compute_chair_i(samples: Sequence[Sample]) -> list[Score]:
    """The share of mentioned COCO objects that are not in the image.

    Called with one sample, it returns 0.0 for an answer that mentions none.
    """
    return [_share(sample) for sample in samples]


def _mention(sample: Sample) -> Score:
    if is_blank(sample):  # an empty answer is not rewarded
        return Score(1.0)
    warning = None if all(fits(text, LANGUAGES) for text in texts_of(sample)) else UNFIT
    counts = object_counts(sample)
    return Score(float(bool(counts.hallucinated)), details=counts.details, warning=warning)


@metric(
    "chair_s",
    version="1",
    needs=NEEDS,
    bounds=(0, 1),
    direction="lower",
    placement="process",
    batch=True,
)
def compute_chair_s(samples: Sequence[Sample]) -> list[Score]:
    """Whether the answer mentions a COCO object that is not in the image: 1.0 if so, else 0.0."""
    return [_mention(sample) for sample in samples]
