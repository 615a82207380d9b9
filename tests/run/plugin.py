"""Metrics that the run tests load as a plug-in: slow, corpus-based and non-decomposable ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import log
from pathlib import Path

import numpy as np

from multimodal_eval import Estimate, Rows, Sample, Score, metric
from multimodal_eval.stats.estimates import function_of_sums


@metric("slow_words", needs=("generated_answer",), bounds=(0, None))
def slow_words(sample: Sample, *, pause: float = 0.0, hold: str = "") -> float:
    """Number of words, computed slowly, so that a test can interrupt it. "held" waits while the file `hold` exists."""
    time.sleep(pause)
    words = (sample.generated_answer or "").split()
    while hold and "held" in words and Path(hold).exists():
        time.sleep(0.02)
    return float(len(words))


@dataclass(frozen=True)
class Words:
    """How often each word occurs in the answers."""

    counts: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Words) -> Words:
        return Words({w: self.counts.get(w, 0) + other.counts.get(w, 0) for w in {**self.counts, **other.counts}})


def count_words(samples: Iterable[Sample]) -> Words:
    counts: dict[str, int] = {}
    for sample in samples:
        for word in (sample.generated_answer or "").split():
            counts[word] = counts.get(word, 0) + 1
    return Words(counts)


def _rarity(sample: Sample, corpus: Words | None) -> float:
    table = corpus or Words()
    total = sum(table.counts.values()) or 1
    words = (sample.generated_answer or "").split()
    return sum(-log(max(1, table.counts.get(word, 0)) / total) for word in words) / max(1, len(words))


@metric("rarity", needs=("generated_answer",), corpus=count_words, default_corpus=Words)
def rarity(sample: Sample, corpus: Words | None = None) -> float:
    """Mean -ln share of the answer's words in all answers."""
    return _rarity(sample, corpus)


@metric("quick_rarity", needs=("generated_answer",), corpus=count_words, default_corpus=Words, placement="thread")
def quick_rarity(sample: Sample, corpus: Words | None = None) -> float:
    """The same, placed like a compiled metric."""
    return _rarity(sample, corpus)


def _precision(rows: Rows) -> Estimate:
    return function_of_sums(
        rows,
        lambda sums: sums[0] / sums[1],
        lambda sums: np.array([1 / sums[1], -sums[0] / sums[1] ** 2]),
    )


@metric("corpus_precision", needs=("generated_answer", "references"), bounds=(0, 1), aggregate=_precision)
def corpus_precision(sample: Sample) -> Score:
    """Share of all answers' words that are in their references: not the mean of the samples' shares."""
    known = {word for text in sample.reference_texts for word in text.split()}
    words = (sample.generated_answer or "").split()
    hits = sum(word in known for word in words)
    return Score(hits / max(1, len(words)), stats=(float(hits), float(len(words))))


@metric("process_number", needs=("generated_answer",), version="1")
def process_number(sample: Sample) -> float:
    """The id of the process that scored the sample."""
    time.sleep(0.001)
    return float(os.getpid())
