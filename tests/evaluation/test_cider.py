from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.evaluation.cider import cider, compute_cider, document_frequencies
from multimodal_eval.text.document_frequencies import DocumentFrequencies, coco_val2014
from multimodal_eval.text.tokenizers import ptb_approx, whitespace
from tests.reference import naive_cider

CORPUS = DocumentFrequencies.of([["red car"], ["red dog"], ["blue sky"]], whitespace)


def test_value_worked_out_by_hand():
    # "red" is in 2 images of 3, "car" and "dog" in 1; only "red" is shared, and no bigram.
    red, other = log(3 / 2), log(3)
    unigrams = red**2 / (red**2 + other**2)
    assert cider("red dog", ["red car"], CORPUS).value == pytest.approx(unigrams / 4)


def test_a_perfect_match_of_four_words_scores_1_and_of_three_words_075():
    corpus = DocumentFrequencies.of([["a b c d"], ["e f g"], ["h"]], whitespace)
    assert cider("a b c d", ["a b c d"], corpus).value == pytest.approx(1.0)
    assert cider("e f g", ["e f g"], corpus).value == pytest.approx(0.75)


def test_nothing_in_common_or_nothing_at_all_scores_0():
    assert cider("x y", ["red car"], CORPUS).value == 0.0
    assert cider("", ["red car"], CORPUS).value == 0.0


def test_it_needs_a_reference():
    with pytest.raises(ConfigError, match="at least one reference"):
        cider("x", [], CORPUS)


captions = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=7).map(" ".join)
reference_sets = st.lists(st.lists(captions, min_size=1, max_size=3), min_size=2, max_size=5)


@given(captions, reference_sets)
def test_it_equals_the_equations_written_out(candidate, corpus):
    table = DocumentFrequencies.of(corpus, whitespace)
    expected = naive_cider.cider(candidate, corpus[0], corpus, whitespace)
    assert cider(candidate, corpus[0], table, whitespace).value == pytest.approx(expected, abs=1e-12)
    assert 0 <= cider(candidate, corpus[0], table, whitespace).value <= 1


@given(reference_sets, reference_sets)
def test_two_shards_merge_into_the_whole(left, right):
    def table(sets):
        return document_frequencies(Sample(id="x", references=texts) for texts in sets)

    assert table(left) + table(right) == table(left + right)  # type: ignore[operator]


def test_a_lone_sample_uses_the_shipped_table():
    table = coco_val2014()
    assert table.images == 40_504
    assert len(table.counts) == 349_293
    sample = Sample(id="1", generated_answer="a man riding a wave", references=["a man on a wave in the ocean"])
    assert compute_cider(sample) == cider("a man riding a wave", sample.references or [], table).value
    assert 0 < compute_cider(sample) < 1
    assert str(compute_cider.signature(table)) == "cider|v:1|tokenizer:ptb-approx|df:coco-val2014"


def test_a_run_uses_its_own_references():
    samples = [
        Sample(id=str(i), generated_answer=f"a {w} dog", references=[f"the {w} dog"])
        for i, w in enumerate(["red", "big"])
    ]
    run = evaluate(samples, metrics=["cider"])
    corpus = [sample.references for sample in samples]
    expected = [naive_cider.cider(s.generated_answer, s.references, corpus, ptb_approx) for s in samples]
    assert run.scores().column("cider").to_pylist() == pytest.approx(expected, abs=1e-15)
    assert "df:corpus@" in run["cider"]["signature"]


def test_unknown_options_are_refused():
    with pytest.raises(ConfigError, match="coco-val2014"):
        list(document_frequencies([], df="nowhere"))  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="tokenizer"):
        document_frequencies([], tokenizer="ptbb")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A man can't ride, cannot stop!", ["a", "man", "ca", "n't", "ride", "can", "not", "stop"]),
        ("The dog's ball (red)", ["the", "dog", "'s", "ball", "-lrb-", "red", "-rrb-"]),
        ("black-and-white photo at 10:30 a.m.", ["black-and-white", "photo", "at", "10:30", "a.m."]),
        ('a "quoted" word...', ["a", "quoted", "word"]),
        ("Mr. Smith's 1/2 pizza", ["mr.", "smith", "'s", "1/2", "pizza"]),
    ],
)
def test_penn_treebank_tokens(text, tokens):
    assert ptb_approx(text) == tokens
