"""What the two CHAIR metrics count: the objects that an answer mentions, and those that are not in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.objects import Mention, mentions, objects_of
from multimodal_eval.text.remembered import remembered

NEEDS = ("generated_answer", "references|metadata.objects")


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
