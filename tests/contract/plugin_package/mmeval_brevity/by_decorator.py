"""A metric by the decorator, with most of its arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from multimodal_eval import Sample, Score, metric


@dataclass
class Lengths:
    """The words of all references, and their number."""

    words: int = 0
    texts: int = 0

    def __add__(self, other: Lengths) -> Lengths:
        return Lengths(self.words + other.words, self.texts + other.texts)

    @property
    def settings(self) -> dict[str, str]:
        return {"mean": f"{self.words}/{self.texts}"}


def lengths(samples: Iterable[Sample]) -> Lengths:
    """The lengths of some samples' references."""
    texts = [text for sample in samples for text in sample.reference_texts]
    return Lengths(sum(len(text.split()) for text in texts), len(texts))


def _problem(sample: Sample, most: int) -> str | None:
    return "the question is too long" if len((sample.question or "").split()) > most else None


@metric(
    "brevity",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    part_bounds={"words": (0, None)},
    version="1",
    blank=0.0,
    corpus=lengths,
    default_corpus=lambda: Lengths(10, 1),
    problem=_problem,
)
def compute_brevity(sample: Sample, corpus: Lengths, *, most: Annotated[int, "the longest question"] = 50) -> Score:
    """1 for an answer that is as short as the mean reference, less for longer ones."""
    words = len((sample.generated_answer or "").split())
    return Score(min(1.0, corpus.words / corpus.texts / words), parts={"words": float(words)})
