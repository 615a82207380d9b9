"""CIDEr-R: by hand, against its formulas, and recorded values. CIDEr-D of pix2struct's test."""

from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval._native import Captions
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.evaluation.metrics.cider import cider_d, cider_r
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.tokenizers import tokenize
from tests.reference.naive_cider_r import cider_r as naive_cider_r

CORPUS = [["red car"], ["red dog"], ["blue sky"]]


def table(corpus):
    return DocumentFrequencies.of(corpus, "whitespace")


def test_a_value_worked_out_by_hand():
    # "red" is in 2 of 3 images; "dog" in 1. The answer has "dog" twice: norms sqrt(r² + 4d²) and sqrt(r² + d²).
    red, dog = log(3 / 2), log(3)
    unigrams = (red * red + dog * dog) / ((red**2 + 4 * dog**2) * (red**2 + dog**2)) ** 0.5
    bigrams = dog * dog / (2 * dog**2) ** 0.5 / dog  # "red dog" is shared, "dog dog" is not
    # Repetition: 1 for red, 1/2 for dog. Length: 3 words for 2.
    penalty = (1 * 1 / 2) ** (0.8 / 2) * exp(-((1 / 2) ** 2) * 0.2)
    expected = 10 * penalty * (unigrams + bigrams) / 4
    assert cider_r("red dog dog", ["red dog"], table(CORPUS), tokenizer="whitespace") == pytest.approx(
        expected, rel=1e-12
    )


def test_recorded_values():
    # sacreeos 1.0.2, `PyCiderScorer.py_compute_score(MetricClass.CIDEr_R, …, 4, None, None, {"repeat_coeff": 0.8,
    # "length_coeff": 0.2, "alpha": 1.0})`: the authors' code with lengths in words.
    candidates = ["a man rides a a a horse", "it 's five o'clock on a well-known clock", "red"]
    references = [
        ["a man rides a brown horse", "a person on a horse"],
        ["five o'clock , says the clock", "the clock shows five o'clock on the well-known tower"],
        ["red", "a red car"],
    ]
    captions = Captions(candidates, references, "whitespace")
    assert captions.cider_r(captions.document_frequencies()).tolist() == pytest.approx(
        [2.5114048009633905, 1.9769661428080885, 2.0324990118890045], rel=1e-12
    )


word = st.sampled_from("a b the dog dog's o'clock 3.5 x_y ё -".split())
text = st.lists(word, min_size=1, max_size=14).map(" ".join)
images = st.lists(st.tuples(text, st.lists(text, min_size=1, max_size=4)), min_size=2, max_size=6)


@given(images, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_the_formulas_agree(images, threads):
    corpus = [references for _, references in images]
    captions = Captions([candidate for candidate, _ in images], corpus, "whitespace", threads)
    scores = captions.cider_r(captions.document_frequencies()).tolist()
    for (candidate, references), score in zip(images, scores, strict=True):
        assert score == pytest.approx(naive_cider_r(candidate, references, corpus, str.split), rel=1e-9, abs=1e-12)


@given(images)
@settings(max_examples=50, deadline=None)
def test_without_numbered_ngrams_the_scores_are_the_same(images):
    candidates, references = [candidate for candidate, _ in images], [texts for _, texts in images]
    numbered = Captions(candidates, references, "whitespace")
    corpus = numbered.document_frequencies()
    in_blocks = Captions(candidates, references, "whitespace", with_ngrams=False)
    assert in_blocks.cider_r(corpus).tolist() == numbered.cider_r(corpus).tolist()


def test_repetition_costs_more_than_in_cider_d():
    corpus = DocumentFrequencies.of([["a man rides a horse"], ["a dog runs"], ["two cats"]], "ptb")
    plain, repeated = "a man rides a horse", "a man man man rides a horse horse"
    references = ["a man rides a horse"]
    lost = [metric(repeated, references, corpus) / metric(plain, references, corpus) for metric in (cider_r, cider_d)]
    assert lost[0] < lost[1] < 1


def test_an_answer_without_words_is_0():
    assert cider_r("", ["red dog"], table(CORPUS), tokenizer="whitespace") == 0
    assert cider_r("--", ["-- dog"], table(CORPUS), tokenizer="whitespace") >= 0


def test_a_run_uses_its_own_frequencies():
    samples = [Sample(id=str(i), generated_answer=texts[0], references=texts) for i, texts in enumerate(CORPUS)]
    run = evaluate(samples, metrics=["cider_r", "cider_d"])
    assert run["cider_r"]["signature"].startswith("cider_r|v:1|tokenizer:ptb|df:corpus")
    assert run["cider_r"]["value"] == pytest.approx(run["cider_d"]["value"])  # no penalty applies
    with pytest.raises(ConfigError, match="the option `n` of cider_r must be one of 1, 2, 3, 4"):
        cider_r("a", ["a"], n=5)


def test_the_example_of_pix2struct():
    # google-research/pix2struct, metrics_test.py: CIDEr as coco-caption's, 128.6 in percent.
    answers = ["abc", "abc", "Abc", "100%", "100%", "100%", "100%", "Don't"]
    gold = ["abc", "Abc", "abc", "96%", "94%", "0.96", "0.94", "Won't"]
    samples = [
        Sample(id=str(i), generated_answer=answer, references=[text])
        for i, (answer, text) in enumerate(zip(answers, gold, strict=True))
    ]
    assert tokenize(["Don't"]) == [["do", "n't"]]
    assert 100 * evaluate(samples, metrics=["cider_d"])["cider_d"]["value"] == pytest.approx(128.6, abs=0.05)
