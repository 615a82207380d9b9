"""ROUGE-1, ROUGE-2 and ROUGE-Lsum equal rouge-score 0.1.2: its test cases, recorded values, and a naive version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval._native import RougeTexts
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics.rouge import compute_rouge_lsum, rouge_1, rouge_2, rouge_lsum
from tests.reference.naive_rouge import rouge_lsum as naive_lsum
from tests.reference.naive_rouge import rouge_n as naive_n

METRICS = ["rouge_1", "rouge_2", "rouge_lsum"]


@pytest.mark.parametrize(
    ("metric", "reference", "candidate", "precision", "recall", "fmeasure"),
    [  # the cases of rouge-score's own tests
        (rouge_1, "testing one two", "testing", 1, 1 / 3, 1 / 2),
        (rouge_2, "testing one two", "testing one", 1, 1 / 2, 2 / 3),
        (rouge_1, "testing one two", "testing one", 1, 2 / 3, 4 / 5),
        (rouge_1, "testing one two", "", 0, 0, 0),
        (rouge_2, "testing one two", "", 0, 0, 0),
        (rouge_lsum, "testing one two", "", 0, 0, 0),
        (rouge_lsum, "", "w1", 0, 0, 0),
        (rouge_lsum, "w1 w2 w3 w4 w5", "/", 0, 0, 0),
        # The union of (w1 w2) and (w1 w3 w5): 4 words of 5, and of the candidate's 10.
        (rouge_lsum, "w1 w2 w3 w4 w5", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", 0.4, 0.8, 8 / 15),
        (rouge_lsum, "First sentence.\nSecond Sentence.", "Second sentence.\nFirst Sentence.", 1, 1, 1),
        (rouge_lsum, "First sentence. Second Sentence.", "Second sentence. First Sentence.", 0.5, 0.5, 0.5),
    ],
)
def test_the_cases_of_rouge_score(metric, reference, candidate, precision, recall, fmeasure):
    assert metric(candidate, [reference]) == pytest.approx((precision, recall, fmeasure))


# (candidate, references, stemmer, then (precision, recall, F) of rouge1, rouge2 and rougeLsum), recorded with
# `RougeScorer(["rouge1", "rouge2", "rougeLsum"], use_stemmer=stemmer).score_multi(references, candidate)`.
RECORDED = [
    (
        "A dog is running on the beaches; it's happily chasing 3.5 balls.",
        ["The dogs run happily on a beach.", "It chases balls, 3.5 of them."],
        False,
        (0.2857142857142857, 0.5714285714285714, 0.38095238095238093),
        (0.07692307692307693, 0.16666666666666666, 0.10526315789473684),
        (0.21428571428571427, 0.42857142857142855, 0.2857142857142857),
    ),
    (
        "A dog is running on the beaches; it's happily chasing 3.5 balls.",
        ["The dogs run happily on a beach.", "It chases balls, 3.5 of them."],
        True,
        (0.5, 1.0, 0.6666666666666666),
        (0.07692307692307693, 0.16666666666666666, 0.10526315789473684),
        (0.2857142857142857, 0.5714285714285714, 0.38095238095238093),
    ),
    (
        "The skies were relational.\nNews of innings and outings\n\nwere exceeding conditional hopping.",
        ["Hopping conditions exceed the sky.\nNew inning: an outing.", "relate\nnews"],
        True,
        (0.5384615384615384, 0.7777777777777778, 0.6363636363636364),
        (0.08333333333333333, 1.0, 0.15384615384615385),
        (0.38461538461538464, 0.5555555555555556, 0.4545454545454546),
    ),
    (
        "Güneş İstanbul'da, 300K ısı",
        ["istanbul 300 k", "gune i stanbul da 300k"],
        False,
        (0.5714285714285714, 0.8, 0.6666666666666666),
        (0.5, 0.75, 0.6),
        (0.5714285714285714, 0.8, 0.6666666666666666),
    ),
    (
        "b a c a b\na b b c",
        ["a b c b a\nc c a b", "a\nb\nc"],
        False,
        (0.8888888888888888, 0.8888888888888888, 0.8888888888888888),
        (0.75, 0.75, 0.75),
        (0.7777777777777778, 0.7777777777777778, 0.7777777777777778),
    ),
]


@pytest.mark.parametrize(("candidate", "references", "stemmer", "first", "second", "summary"), RECORDED)
def test_the_recorded_values_to_the_last_bit(candidate, references, stemmer, first, second, summary):
    assert rouge_1(candidate, references, stemmer=stemmer) == first
    assert rouge_2(candidate, references, stemmer=stemmer) == second
    assert rouge_lsum(candidate, references, stemmer=stemmer) == summary


@pytest.mark.parametrize(
    ("candidate", "reference", "precision", "recall"),
    [  # rouge-score's rougeL, by hand: the longest common subsequence of whole texts
        ("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 4 / 10, 4 / 5),  # w1 w2 w3 w5
        ("Second sentence.\nFirst Sentence.", "First sentence.\nSecond Sentence.", 2 / 4, 2 / 4),  # first sentence
        ("a\nb", "b\na", 1 / 2, 1 / 2),
    ],
)
def test_without_lines_it_is_the_rouge_l_of_rouge_score(candidate, reference, precision, recall):
    fmeasure = 2 * precision * recall / (precision + recall)
    assert rouge_lsum(candidate, [reference], lines=False) == pytest.approx((precision, recall, fmeasure))
    run = evaluate([Sample(id="1", generated_answer=candidate, references=[reference])], metrics=["rouge_lsum"],
                   options={"rouge_lsum": {"lines": False}})  # fmt: skip
    assert run["rouge_lsum"]["value"] == pytest.approx(fmeasure)
    assert "lines:False" in run["rouge_lsum"]["signature"]


def test_the_best_reference_gives_all_three_values():
    # "text first": with both references one word of two; with rouge_2 neither. The first of equal ones counts.
    assert rouge_1("text first", ["first text", "first something"]).fmeasure == 1
    assert rouge_2("text first", ["first text", "first something"]).fmeasure == 0
    # F is 2/3 with "a b" (P 1/2, R 1) and 3/4 with "a b c x": the recall is that of the second, though it is smaller.
    assert rouge_1("a b c d", ["a b", "a b c x"]) == pytest.approx((3 / 4, 3 / 4, 3 / 4))


def stemmed(word):
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer().stem(word)


word = st.sampled_from("a b cat cats running relational Sky skies 3d x_y İo Kelvin K2 naïve 美国 . \n \n\n".split(" "))
text = st.one_of(st.lists(word, max_size=40).map(" ".join), st.text(max_size=30))


@given(text, st.lists(text, min_size=1, max_size=4), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_naive_version_agrees(candidate, references, stemmer):
    stem = stemmed if stemmer else None
    assert rouge_1(candidate, references, stemmer=stemmer) == naive_n(candidate, references, 1, stem)
    assert rouge_2(candidate, references, stemmer=stemmer) == naive_n(candidate, references, 2, stem)
    assert rouge_lsum(candidate, references, stemmer=stemmer) == naive_lsum(candidate, references, stem)


@given(
    st.lists(st.sampled_from("abcd"), min_size=60, max_size=300),
    st.lists(st.sampled_from("abce"), min_size=60, max_size=300),
)
@settings(max_examples=30, deadline=None)
def test_sentences_longer_than_a_machine_word(left, right):
    # Which longest subsequence is taken shows only in the union of several.
    candidate = " ".join(left) + "\n" + " ".join(left[::-1])
    assert rouge_lsum(candidate, [" ".join(right)]) == naive_lsum(candidate, [" ".join(right)])


def test_many_samples_give_the_same_as_each_alone():
    samples = [("a cat runs", ["cats run", "a cat"]), ("", ["x"]), ("two\nlines", ["lines\ntwo", "two"])]
    texts = RougeTexts([candidate for candidate, _ in samples], [references for _, references in samples], True)
    for columns, metric in ((texts.words(), rouge_1), (texts.pairs(), rouge_2), (texts.summary_lcs(), rouge_lsum)):
        for row, (candidate, references) in zip(columns.tolist(), samples, strict=True):
            precision, recall, fmeasure = metric(candidate, references, stemmer=True)
            assert row == [fmeasure, precision, recall]


def test_a_run_has_the_mean_of_the_f_measures_with_precision_and_recall():
    samples = [
        Sample(id="1", generated_answer="testing", references=["testing one two"]),
        Sample(id="2", generated_answer="testing one", references=["testing one two"]),
    ]
    run = evaluate(samples, metrics=METRICS)
    assert run["rouge_1"]["value"] == pytest.approx((1 / 2 + 4 / 5) / 2)
    assert run["rouge_1.precision"]["value"] == 1
    assert run["rouge_1.recall"]["value"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert run["rouge_2"]["value"] == pytest.approx((0 + 2 / 3) / 2)
    assert run["rouge_lsum"]["signature"] == "rouge_lsum|v:1|stemmer:False|errors:default@2"


def test_a_string_of_references_is_refused():
    with pytest.raises(ConfigError, match="rouge_2 needs a list of at least one reference"):
        rouge_2("a", "a b")
    with pytest.raises(ConfigError, match="the option `stemmer` of rouge_lsum must be true or false"):
        configured(compute_rouge_lsum, {"stemmer": "porter"})
