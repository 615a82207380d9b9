"""What a metric declares: needs, bounds, aggregate, corpus; and what is computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pickle import dumps, loads
from typing import Any

import numpy as np
import pytest

from multimodal_eval import Metric, Rows, Sample, Score, evaluate, metric
from multimodal_eval.core.corpus import Corpus, corpus_key, default_state, fitted
from multimodal_eval.core.metric import (
    BoundsWithParts,
    Need,
    blank_value,
    configured,
    lone_scorer,
    part_bounds,
    registered_name,
    renamed,
    sample_problems,
    signature_of,
)
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.score import Mean, mean_estimate
from multimodal_eval.core.scoring import aggregate_of, averages, estimate_of, kind_of

ROWS = Rows(np.array([0.0, 1.0, 1.0, 1.0]))


def no_shouting(sample: Sample, loudest: int) -> str | None:
    return "shouted" if (sample.generated_answer or "").count("!") > loudest else None


def letters(samples: Sequence[Sample], least: int, unit: str = "letters") -> int:
    return sum(len(sample.generated_answer or "") >= least for sample in samples)


class Loud(Metric):
    """How loud an answer is.

    Not part of the summary.
    """

    name = "loud"
    needs = ("references", Need("generated_answer", blank=0.5, problem=no_shouting))
    bounds = BoundsWithParts((0, 1), {"marks": (0, None)})
    options = Options(loudest=Option(int, 3), least=Option(int, 1))
    corpus = Corpus(letters, default=lambda least: -least)
    language = "en"  # as if it were the environment

    def settle(self) -> OptionValues:
        self.aggregate = {"marks": mean_estimate} if self.options["loudest"] > 3 else Mean(multiplies=True)
        return {"language": self.language}

    def open(self, state: int) -> Any:
        return _Scorer(state, self.language)


class _Scorer:
    def __init__(self, state: int, language: str) -> None:
        self.state, self.language = state, language

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [Score(float(self.state)) for _ in batch]


def test_a_need_is_the_name_of_its_field():
    need = Need("generated_answer", blank=0.5)
    assert Loud.needs == ("references", "generated_answer")
    for same in (loads(dumps(need)), deepcopy(need)):
        assert (same, same.blank, same.problem) == ("generated_answer", 0.5, None)
    assert blank_value(Loud()) == 0.5
    assert blank_value(StrictMetric()) is None
    (problem,) = sample_problems(configured(Loud(), {"loudest": 1}))
    assert problem(Sample("1", generated_answer="no!!")) == "shouted"
    assert sample_problems(Loud())[0](Sample("1", generated_answer="no!!")) is None


class StrictMetric(Metric):
    name = "strict"


def test_bounds_are_a_pair_with_those_of_parts():
    low, high = Loud.bounds
    assert (low, high) == Loud.bounds == (0, 1)
    assert part_bounds(Loud()) == loads(dumps(Loud.bounds)).parts == {"marks": (0, None)}
    assert part_bounds(StrictMetric()) == {}


def test_a_mean_is_the_default_and_says_what_it_is():
    plain, factors, parts = StrictMetric(), configured(Loud(), {}), configured(Loud(), {"loudest": 4})
    assert [averages(each) for each in (plain, factors, parts)] == [True, False, True]
    assert [kind_of(each) for each in (plain, factors, parts)] == ["mean"] * 3
    assert [kind_of(each, "marks") for each in (plain, factors, parts)] == ["mean", "mean", "corpus"]
    assert aggregate_of(plain)(ROWS).value == estimate_of(plain, ROWS).value == 0.75
    assert estimate_of(factors, ROWS).multiplies
    assert not estimate_of(factors, ROWS, "marks").multiplies


def test_functions_of_a_corpus_get_the_options_that_they_take():
    subject = configured(Loud(), {"least": 3})
    assert fitted(subject, [Sample("1", generated_answer="no"), Sample("2", generated_answer="yes")]) == 1
    assert default_state(subject) == -3
    assert corpus_key(subject) == (letters, ("least", "3"), ("unit", "'letters'"))
    assert corpus_key(subject) == corpus_key(configured(subject, {"loudest": 9})) != corpus_key(Loud())
    assert fitted(StrictMetric(), []) is corpus_key(StrictMetric()) is None


def test_a_variant_keeps_the_registered_name_in_its_signature():
    variant = renamed(renamed(Loud(), "louder"), "loudest")
    assert (variant.name, registered_name(variant)) == ("loudest", "loud")
    assert str(signature_of(variant)) == "loud|v:1|loudest:3|least:1"


def test_the_scorer_of_single_samples_is_opened_again_if_the_environment_changes():
    subject = Loud()
    first = lone_scorer(subject)
    assert lone_scorer(subject) is first
    subject.language = "de"
    assert lone_scorer(subject).language == "de"  # type: ignore[attr-defined]


def test_a_function_of_many_samples_states_its_options_once():
    @metric("shortness", needs=("generated_answer",), version="1", batch=True)
    def compute_shortness(samples: Sequence[Sample], *, most: int = 4) -> list[Score]:
        """The share of letters that are left."""
        return [Score(1 - len(sample.generated_answer or "") / most) for sample in samples]

    assert compute_shortness(Sample("1", generated_answer="a")) == 0.75
    assert compute_shortness(Sample("1", generated_answer="a"), most=2) == 0.5
    assert compute_shortness(Sample("1")) == 0.0
    assert compute_shortness.placement == "thread"
    run = evaluate([{"id": "1", "generated_answer": "abc"}], metrics=["shortness"], options={"shortness": {"most": 6}})
    assert run["shortness"]["value"] == 0.5
    assert run["shortness"]["signature"].startswith("shortness|v:1|most:6")


@pytest.mark.parametrize("needs", [(), ("question",), ("question", "generated_answer")])
def test_a_blank_answer_has_its_value_whatever_is_needed(needs):
    @metric("half", needs=needs, version="1", blank=0.5)
    def compute_half(sample: Sample) -> float:
        return 1.0

    rows = [
        {"id": "1", "generated_answer": " ", "question": "?"},
        {"id": "2", "generated_answer": "a", "question": "?"},
    ]
    assert evaluate(rows, metrics=["half"]).scores().column("half").to_pylist() == [0.5, 1.0]
