from __future__ import annotations

from math import log

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.evaluation.metrics.cider import cider, cider_d, compute_cider
from multimodal_eval.text.captions import document_frequencies
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014
from multimodal_eval.text.tokenizers import get_tokenizer
from tests.reference import naive_cider

whitespace, ptb = get_tokenizer("whitespace"), get_tokenizer("ptb")
CORPUS = DocumentFrequencies.of([["red car"], ["red dog"], ["blue sky"]])


def test_value_computed_by_hand():
    # "red" is in 2 images of 3, "car" and "dog" in 1; only "red" is shared, and no bigram.
    red, other = log(3 / 2), log(3)
    unigrams = red**2 / (red**2 + other**2)
    assert cider("red dog", ["red car"], CORPUS) == pytest.approx(unigrams / 4)


def test_a_perfect_match_of_four_words_scores_1_and_of_three_words_075():
    corpus = DocumentFrequencies.of([["k l m n"], ["e f g"], ["h"]])
    assert cider("k l m n", ["k l m n"], corpus) == pytest.approx(1.0)
    assert cider("e f g", ["e f g"], corpus) == pytest.approx(0.75)


def test_nothing_in_common_or_nothing_at_all_scores_0():
    assert cider("x y", ["red car"], CORPUS) == 0.0
    assert cider("", ["red car"], CORPUS) == 0.0


def test_it_needs_a_reference():
    with pytest.raises(ConfigError, match="at least one reference"):
        cider("x", [], CORPUS)


captions = st.lists(st.sampled_from("a b c d e".split()), max_size=7).map(" ".join)
reference_sets = st.lists(st.lists(captions, min_size=1, max_size=3), min_size=2, max_size=5)


@given(captions, reference_sets, st.integers(1, 4))
def test_it_equals_the_naive_implementation(candidate, corpus, n):
    assume(len({tuple(sorted(set(" ".join(texts).split()))) for texts in corpus}) > 1)  # otherwise all weights are 0
    table = DocumentFrequencies.of(corpus, "whitespace")
    expected = naive_cider.cider(candidate, corpus[0], corpus, whitespace, n)
    value = cider(candidate, corpus[0], table, tokenizer="whitespace", n=n)
    assert value == pytest.approx(expected, abs=1e-12)
    assert 0 <= value <= 1


def test_a_single_sample_uses_the_shipped_table():
    sample = Sample(id="1", generated_answer="a man riding a wave", references=["a man on a wave in the ocean"])
    assert compute_cider(sample) == cider("a man riding a wave", sample.references or [], coco_val2014())
    assert 0 < compute_cider(sample) < 1
    assert str(signature_of(compute_cider, coco_val2014())) == "cider|v:2|tokenizer:ptb|df:coco-val2014"


def test_a_run_uses_its_own_references():
    words = ["red", "big"]
    samples = [Sample(id=w, generated_answer=f"a {w} dog", references=[f"the {w} dog"]) for w in words]
    run = evaluate(samples, metrics=["cider"])
    corpus = [sample.references for sample in samples]
    expected = [naive_cider.cider(s.generated_answer, s.references, corpus, ptb) for s in samples]
    assert run.scores().column("cider").to_pylist() == pytest.approx(expected, abs=1e-15)
    assert "df:corpus@" in run["cider"]["signature"]


def test_unknown_options_are_refused():
    with pytest.raises(ConfigError, match="nowhere"):
        document_frequencies([], df="nowhere")
    with pytest.raises(UnknownNameError, match="tokenizer"):
        document_frequencies([], tokenizer="ptbb")


def test_shorter_ngrams_by_hand():
    # As in the first test: one unigram of two is shared, and no bigram. Lengths are equal, so CIDEr-D has no penalty.
    red, other = log(3 / 2), log(3)
    unigrams = red**2 / (red**2 + other**2)
    assert cider("red dog", ["red car"], CORPUS, n=1) == pytest.approx(unigrams)
    assert cider("red dog", ["red car"], CORPUS, n=2) == pytest.approx(unigrams / 2)
    assert cider_d("red dog", ["red car"], CORPUS, n=1) == pytest.approx(10 * unigrams)
    assert cider_d("red dog", ["red car"], CORPUS, n=3) == pytest.approx(10 * unigrams / 3)
    assert cider("red dog", ["red car"], CORPUS, n=4) == cider("red dog", ["red car"], CORPUS)


@pytest.mark.parametrize("n", [0, 5, 2.5, True, "2"])
def test_other_numbers_of_orders_are_refused(n):
    for score in (cider, cider_d):
        with pytest.raises(ConfigError, match=r"`n` of cider.* must be one of 1, 2, 3, 4"):
            score("a", ["a"], CORPUS, n=n)


def test_n_is_an_option_that_only_a_change_puts_into_the_signature():
    words = ["red", "big", "old"]
    samples = [Sample(id=w, generated_answer=f"a {w} dog", references=[f"the {w} dog", "a dog"]) for w in words]
    run = evaluate(samples, metrics=["cider", "cider_d"], options={"cider": {"n": 2}, "cider_d": {"n": 4}})
    corpus = [sample.references for sample in samples]
    expected = [naive_cider.cider(s.generated_answer, s.references, corpus, ptb, 2) for s in samples]
    assert run.scores().column("cider").to_pylist() == pytest.approx(expected, abs=1e-15)
    assert run["cider"]["signature"].endswith("|n:2|errors:default@2")
    assert "|n:" not in run["cider_d"]["signature"]
    assert configured(compute_cider, {"n": 1})(samples[0]) == cider("a red dog", ["the red dog", "a dog"], n=1)
    with pytest.raises(ConfigError, match="option `n` of cider must be one of 1, 2, 3, 4"):
        evaluate(samples, metrics=["cider"], options={"cider": {"n": 5}})


def test_without_a_corpus_the_functions_use_the_shipped_table():
    references = ["a man on a wave in the ocean"]
    assert cider("a man riding a wave", references) == cider("a man riding a wave", references, coco_val2014())
    assert cider_d("a man riding a wave", references) == cider_d("a man riding a wave", references, coco_val2014())
    with pytest.raises(ConfigError, match="coco-val2014 has 'ptb' tokens"):
        cider("a man", references, tokenizer="unicode")
