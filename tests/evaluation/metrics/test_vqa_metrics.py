"""Exact match and VQA accuracy."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate, evaluate_sample
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics.exact_match import compute_exact_match, exact_match
from multimodal_eval.evaluation.metrics.vqa_accuracy import compute_vqa_accuracy, vqa_accuracy
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS

answers = st.sampled_from(["yes", "Yes", "no", "two", "2", "the dog", "dog.", "a"])


# exact match


@pytest.mark.parametrize(
    ("candidate", "references", "lower", "vqa", "none"),
    [
        ("red", ["blue", "red"], 1, 1, 1),
        (" Red\n", ["red"], 1, 1, 0),
        ("red  car", ["red car"], 1, 1, 0),
        ("red.", ["red"], 0, 1, 0),
        ("two", ["2"], 0, 1, 0),
        ("A", ["a"], 1, 1, 0),  # a multiple-choice option, not an article
        ("A", ["the"], 0, 0, 0),  # normalisation leaves nothing of either, but they differ
        ("A", ["B"], 0, 0, 0),
        ("red", ["blue"], 0, 0, 0),
        ("Straße", ["straße"], 1, 1, 0),
    ],
)
def test_exact_match_by_normalisation(candidate, references, lower, vqa, none):
    for normalise, expected in (("lower", lower), ("vqa", vqa), ("none", none)):
        assert exact_match(candidate, references, normalise=normalise) == expected
    assert exact_match(candidate, references) == lower


@pytest.mark.parametrize("normalise", ["lower", "vqa", "none"])
def test_a_blank_answer_matches_nothing(normalise):
    assert exact_match("  ", ["  ", "a"], normalise=normalise) == 0.0


def test_every_kind_of_reference_counts_for_exact_match():
    sample = Sample(id="1", generated_answer="c", references=["a"], expected_answer="b", caption="c")
    assert compute_exact_match(sample) == 1.0


@given(answers, st.lists(answers, min_size=1, max_size=6), st.sampled_from(["lower", "vqa", "none"]))
def test_exact_match_accepts_any_reference(candidate, references, normalise):
    separate = [exact_match(candidate, [reference], normalise=normalise) for reference in references]
    assert exact_match(candidate, references, normalise=normalise) == max(separate)
    assert exact_match(candidate, [candidate], normalise=normalise) == 1.0
    assert exact_match(candidate, references[::-1], normalise=normalise) == max(separate)


def test_exact_match_of_a_run_has_wilsons_interval():
    run = evaluate(
        [Sample(id=str(n), generated_answer="x" if n % 2 else " ", expected_answer="X") for n in range(20)],
        metrics=["exact_match"],
    )
    entry = run["exact_match"]
    assert entry["value"] == 0.5
    assert "Wilson" in entry["method"]
    assert entry["warnings"] == {"blank_answer": 10}


# VQA accuracy


@pytest.mark.parametrize(
    ("agreeing", "value"),
    [
        (0, 0.0),
        (1, 0.3),  # leaving out the one who agrees: 0; leaving out any other: 1/3 -> 9/30
        (2, 0.6),  # 2 * 1/3 + 8 * 2/3 = 6 -> 6/10
        (3, 0.9),  # 3 * 2/3 + 7 * 1 = 9 -> 9/10
        (4, 1.0),  # at least three remain, whoever is left out
        (10, 1.0),
    ],
)
def test_ten_people(agreeing, value):
    people = ["red"] * agreeing + ["blue"] * (10 - agreeing)
    assert vqa_accuracy("red", people) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("people", "value"),
    [
        (["red"], 1.0),  # nobody is left to compare with: equal or not
        (["blue"], 0.0),
        (["red", "red"], 1 / 3),  # one other agrees each time
        (["red", "blue"], 1 / 6),  # 0 without the first, 1/3 without the second
        (["red"] * 3, 2 / 3),
        (["red", "red", "blue"], 4 / 9),  # 1/3, 1/3, 2/3
        (["red"] * 4, 1.0),
    ],
)
def test_fewer_people(people, value):
    assert vqa_accuracy("red", people) == pytest.approx(value, abs=1e-15)


def test_texts_are_normalised_if_people_differ():
    # Normalised: 2 dogs, 2 dogs, 2 dogs, dog; three agree with the answer. 3 * 2/3 + 1 * 1 = 3 -> 3/4
    people = ["two dogs", "2 dogs", "the two dogs.", "dog"]
    assert vqa_accuracy("Two dogs!", people) == 0.75
    assert vqa_accuracy("Two", ["2"] * 10) == 0.0  # as in the official program
    assert vqa_accuracy("Two", ["2"] * 10, normalise="always") == 1.0
    assert vqa_accuracy(" 2\n", ["2\t"] * 10) == 1.0  # surrounding white space is always removed
    assert vqa_accuracy("Two", ["2 ", "2"] + ["2"] * 8) == 0.0  # and does not make people differ
    assert vqa_accuracy("Two.", ["2"]) == 1.0  # a single answer is always normalised


def test_only_references_count_as_people():
    with_references = Sample(id="1", generated_answer="red", references=["blue"] * 9 + ["red"], expected_answer="red")
    assert compute_vqa_accuracy(with_references) == pytest.approx(0.3)
    without_references = Sample(id="2", generated_answer="Red", expected_answer="red", caption="a red car")
    assert compute_vqa_accuracy(without_references) == 1.0
    assert compute_vqa_accuracy(Sample(id="3", generated_answer="a car", caption="car")) == 1.0


def test_a_run_keeps_repeats_and_warns_about_few_people():
    samples = [
        Sample(id="ten", generated_answer="red", references=["red"] * 2 + ["blue"] * 8),
        Sample(id="two", generated_answer="red", references=["red", "red"]),
        Sample(id="one", generated_answer="red", expected_answer="red"),
        Sample(id="blank", generated_answer=" ", references=["red"] * 4),
    ]
    run = evaluate(samples, metrics=["vqa_accuracy"])
    assert run.scores().column("vqa_accuracy").to_pylist() == pytest.approx([0.6, 1 / 3, 1.0, 0.0])
    assert run.scores().column("vqa_accuracy.agreement").to_pylist() == [0.2, 1.0, 1.0, 0.0]
    assert run["vqa_accuracy"]["warnings"] == {"fewer_than_4_human_answers": 1, "blank_answer": 1}


def test_a_task_that_computes_them():
    TASK_METRICS["questions"] = ["exact_match", "vqa_accuracy"]
    result = evaluate_sample(Sample(id="1", generated_answer="red", references=["red"] * 4), task_type="questions")
    assert (result["exact_match"], result["vqa_accuracy"], result["vqa_accuracy.agreement"]) == (1.0, 1.0, 1.0)


@given(answers, st.lists(answers, min_size=2, max_size=12), st.sampled_from(["differing", "always"]))
def test_accuracy_is_the_mean_over_leaving_one_out(candidate, people, normalise):
    """The closed form in the card, with the number of matches from the part `agreement`."""
    sample = Sample(id="1", generated_answer=candidate, references=people)
    (score,) = configured(compute_vqa_accuracy, {"normalise": normalise}).open(None).score([sample])
    n = len(people)
    k = round(score.parts["agreement"] * n)
    closed = (k * min(Fraction(k - 1, 3), 1) + (n - k) * min(Fraction(k, 3), 1)) / n
    assert score.value == pytest.approx(float(closed), abs=1e-15)
    assert vqa_accuracy(candidate, people[::-1], normalise=normalise) == pytest.approx(score.value, abs=1e-15)
    assert vqa_accuracy(candidate, [*people, candidate], normalise="always") >= vqa_accuracy(
        candidate, [*people, "something else"], normalise="always"
    )


# both


@pytest.mark.parametrize("function", [exact_match, vqa_accuracy])
def test_wrong_arguments(function):
    with pytest.raises(ConfigError, match="a list of at least one reference"):
        function("red", "red")
    with pytest.raises(ConfigError, match="a list of at least one reference"):
        function("red", [])
    with pytest.raises(ConfigError, match=r"'alway'.*Known:"):
        function("red", ["red"], normalise="alway")


def test_a_single_human_answer_by_the_rules_of_harnesses():
    # Their formula leaves each person out in turn: of one person, nobody is left who could agree.
    assert vqa_accuracy("a dog", ["dog"]) == 1
    for rule in ("lmms-eval@0.7.3/vqav2", "lmms-eval@0.7.3/textvqa", "vlmevalkit@e8e78f05/vqa_score"):
        assert vqa_accuracy("dog", ["dog"], rule=rule) == 0
        assert vqa_accuracy("dog", ["dog"] * 4, rule=rule) == 1
