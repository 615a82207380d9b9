from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, Score, metric
from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.scoring import score_batch


def scored(function, *samples, **declared):
    subject = FunctionMetric(function, "subject", **declared)
    return score_batch(subject, subject.open(None), samples)


def answer(text, **fields):
    return Sample(id="1", generated_answer=text, **fields)


def test_a_missing_input_is_not_a_zero():
    (score,) = scored(lambda sample: 0.0, Sample(id="1"), needs=("generated_answer", "references"))
    assert score == Score(None, "missing_input", "no generated_answer, references")


def test_a_direct_call_with_a_missing_input_gives_zero():
    subject = FunctionMetric(lambda sample: 0.7, "subject", needs=("generated_answer",))
    assert subject(Sample(id="1")) == 0.0
    assert subject(answer("x")) == 0.7


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (float("nan"), "NONFINITE"),
        (float("inf"), "NONFINITE"),
        (1.5, "RANGE"),
        (-0.1, "RANGE"),
        (True, "TYPE"),
        ("0.5", "TYPE"),
    ],
)
def test_an_invalid_value_is_an_error_and_never_clamped(value, code):
    (score,) = scored(lambda sample: value, answer("x"), bounds=(0, 1))
    assert score.value is None
    assert score.status == "error"
    assert score.reason is not None
    assert score.reason.startswith(code)


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(0), 1])
def test_numpy_numbers_and_whole_numbers_are_scores(value):
    (score,) = scored(lambda sample: value, answer("x"), bounds=(0, 1))
    assert score.value == float(value)
    assert type(score.value) is float


@given(st.sets(st.integers(0, 29)), st.integers(1, 30))
def test_a_failing_sample_does_not_affect_the_others(failing, size):
    def fragile(sample):
        if int(sample.id) in failing:
            raise ValueError(f"cannot score {sample.id}")
        return float(sample.id)

    samples = [Sample(id=str(number), generated_answer="x") for number in range(size)]
    scores = scored(fragile, *samples)
    for number, score in enumerate(scores):
        if number in failing:
            assert score == Score(None, "error", f"ValueError: cannot score {number} (test_scoring.py:63)")
        else:
            assert score.value == number


def test_a_scorer_that_loses_samples_is_an_error():
    class Lossy(FunctionMetric):
        def open(self, state):
            class Scorer:
                def score(self, batch):
                    return [Score(1.0)] * (len(batch) - 1)

            return Scorer()

    subject = Lossy(lambda sample: 1.0, "lossy")
    scores = score_batch(subject, subject.open(None), [answer("x"), answer("y")])
    assert [score.status for score in scores] == ["error", "error"]


@pytest.mark.parametrize("blank", ["", "   ", "\n"])
def test_a_blank_answer_is_scored_and_counted(blank):
    (score,) = scored(lambda sample: 0.0, answer(blank))
    assert (score.value, score.warning) == (0.0, "blank_answer")


def test_a_blank_answer_without_a_score_has_no_warning():
    (score,) = scored(lambda sample: 0.0, answer(" "), needs=("generated_answer", "references"))
    assert (score.status, score.warning) == ("missing_input", None)
    (score,) = scored(lambda sample: 0.0, answer(" ", error="timeout"))
    assert (score.status, score.warning) == ("error", None)


def test_a_metric_may_fix_the_value_of_a_blank_answer():
    (score,) = scored(lambda sample: 0.9, answer(" "), blank=0.0)
    assert (score.value, score.warning) == (0.0, "blank_answer")


@pytest.mark.parametrize("sample", [answer("[ERROR] timeout"), answer("fine", error="timeout")])
def test_a_failure_of_the_generator_is_not_an_answer(sample):
    (score,) = scored(lambda sample: 1.0, sample)
    assert score.value is None
    assert score.status == "error"
    assert "timeout" in (score.reason or "")


def test_error_patterns_can_be_replaced():
    subject = FunctionMetric(lambda sample: 1.0, "subject")
    scorer = subject.open(None)
    assert score_batch(subject, scorer, [answer("[ERROR] x")], error_patterns=[])[0].value == 1.0
    assert score_batch(subject, scorer, [answer("FAILED: x")], error_patterns=["FAILED"])[0].value is None


def test_a_dict_gives_a_value_parts_and_details():
    result = {"composite_score": 0.5, "raw": 0.25, "objects": ["cat"]}
    (score,) = scored(lambda sample: result, answer("x"))
    assert (score.value, score.parts, score.details) == (0.5, {"raw": 0.25}, {"objects": ["cat"]})


def test_a_dict_without_a_headline_keeps_its_parts():
    (score,) = scored(lambda sample: {"a": 1, "b": 0.25, "c": "text"}, answer("x"))
    assert (score.value, score.status, score.parts, score.details) == (
        None,
        "degenerate",
        {"a": 1.0, "b": 0.25},
        {"c": "text"},
    )
    assert "no headline: one of composite_score, score, value, subject must be a key" in (score.reason or "")


@pytest.mark.parametrize("result", [{}, {"text": "x"}, {"a": True}])
def test_a_dict_without_a_number_is_an_error(result):
    (score,) = scored(lambda sample: result, answer("x"))
    assert (score.value, score.status, score.parts) == (None, "error", None)


def test_a_part_that_is_not_finite_is_an_error_without_a_headline_too():
    (score,) = scored(lambda sample: {"a": float("nan"), "b": 1.0}, answer("x"))
    assert (score.value, score.status, score.parts) == (None, "error", None)
    assert score.reason == "NONFINITE: the part 'a' is nan"


def test_a_missing_declared_headline_is_an_error():
    (score,) = scored(lambda sample: {"a": 1.0}, answer("x"), headline="b")
    assert (score.status, score.parts) == ("error", None)


def test_a_declared_headline_takes_precedence():
    @metric("headlined", headline="b")
    def headlined(sample):
        return {"score": 0.1, "b": 0.2}

    (score,) = score_batch(headlined, headlined.open(None), [answer("x")])
    assert (score.value, score.parts) == (0.2, {"score": 0.1})


def test_none_from_a_metric_is_degenerate():
    (score,) = scored(lambda sample: None, answer("x"))
    assert score.status == "degenerate"
