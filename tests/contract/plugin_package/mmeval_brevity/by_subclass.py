"""A metric by a subclass, with the names of members in 0.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from multimodal_eval import Estimate, Metric, Option, Options, Rows, Sample, Score, Signature, register
from multimodal_eval.core.errors import ConfigError


class Rarity(Metric):
    name = "rarity"
    version = "3"
    needs = ("generated_answer", "references")
    bounds = (0, 1)
    part_bounds: Mapping[str, Any] = {"long": (0, 1)}
    blank = 0.0
    summary = "The share of the answer's words that at most `most` references of the run have."
    state_type = dict[str, int]
    options = Options(most=Option(int, 1, help="in how many references a rare word is"))

    def check_options(self) -> None:
        super().check_options()  # type: ignore[misc]
        if self.options["most"] < 1:
            raise ConfigError("`most` must be at least 1")

    def problem(self, sample: Sample) -> str | None:
        return "the answer is shouted" if (sample.generated_answer or "").isupper() else None

    def fit(self, samples: Iterable[Sample]) -> Counts:
        counts = Counts()
        for sample in samples:
            for text in sample.reference_texts:
                counts += Counts(dict.fromkeys(text.split(), 1))
        return counts

    def default_state(self) -> Counts:
        return Counts({"a": 2})

    def signature(self, state: Any = None) -> Signature:
        return super().signature(state).extended(words="split")  # type: ignore[misc, no-any-return]

    def open(self, state: dict[str, int]) -> _Scorer:
        return _Scorer(state, self.options["most"])

    def aggregate(self, rows: Rows) -> Estimate:
        mean = super().aggregate(rows)  # type: ignore[operator]
        return Estimate(1 - mean.value, -mean.influence)

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        mean: Estimate = super().aggregate_part(part, rows)  # type: ignore[misc]
        return Estimate(mean.value / 2, mean.influence / 2) if part == "long" else mean


class Counts(dict[str, int]):
    def __add__(self, other: dict[str, int]) -> Counts:
        return Counts({word: self.get(word, 0) + other.get(word, 0) for word in {**self, **other}})


class _Scorer:
    def __init__(self, counts: dict[str, int], most: int) -> None:
        self.counts, self.most = counts, most

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [self._score((sample.generated_answer or "").split()) for sample in batch]

    def _score(self, words: list[str]) -> Score:
        rare = [word for word in words if self.counts.get(word, 0) <= self.most]
        parts = {"long": float(any(len(word) > 5 for word in words)), "words": float(len(words))}
        return Score(len(rare) / len(words), parts=parts)


compute_rarity = register(Rarity())
