"""BLEU, chrF and TER equal sacrebleu: its own test cases, and the package itself on random texts."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval._native import sacrebleu_tokens, ter_tokens
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.score import Rows
from multimodal_eval.evaluation.metrics.sacrebleu import (
    chrf,
    compute_chrf,
    compute_sacrebleu,
    compute_ter,
    sacrebleu,
    ter,
)

METRICS = [compute_sacrebleu, compute_chrf, compute_ter]
BY_NAME = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """sacrebleu warns about sentence scores."""
    caplog.set_level(logging.CRITICAL, "sacrebleu")


def rows_of(metric, candidates, references):
    """The corpus; `references` has one list per sample."""
    return Rows(*metric.sentence_scores(list(candidates), [list(texts) for texts in references]))


def corpus(metric, candidates, *streams, **options):
    """The corpus score with sacrebleu's order of arguments: one list of references after the other."""
    chosen = configured(metric, options)
    return chosen.aggregate(rows_of(chosen, candidates, zip(*streams, strict=True))).value


DOG = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
FIRST = ["The dog bit the man.", "It was not unexpected.", "The man bit him first."]
SECOND = ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 48.530827),
        ({"tokenizer": "none"}, 49.1919566),
        ({"tokenizer": "intl"}, 43.91623493),
        ({"smooth_method": "none"}, 48.530827),
        *zip(({"max_ngram_order": n} for n in (1, 2, 3, 5, 6)), (77.65, 60.50, 53.93, 46.14, 43.28), strict=True),
    ],
)
def test_corpus_bleu_as_in_its_tests(options, expected):
    tolerance = 5e-3 if "max_ngram_order" in options else 1e-6
    assert corpus(compute_sacrebleu, DOG, FIRST, SECOND, **options) == pytest.approx(expected, abs=tolerance)


def test_bleu_without_a_match_is_0():
    assert corpus(compute_sacrebleu, ["", "", ""], FIRST, SECOND) == 0
    assert sacrebleu("this is a cat", ["okay thanks"], smooth_method="add-k") == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 8.493),
        ({"smooth_method": "none"}, 0.0),
        ({"smooth_method": "floor"}, 4.51688),
        ({"smooth_method": "floor", "smooth_value": 0.5}, 10.10),
        ({"smooth_method": "add-k"}, 14.882),
        ({"smooth_method": "add-k", "smooth_value": 2}, 21.389),
        ({"tokenizer": "none"}, 7.347),
        ({"tokenizer": "intl"}, 8.493),
        ({"tokenizer": "char"}, 40.8759),
        ({"tokenizer": "char", "lowercase": True}, 42.0267),
    ],
)
def test_sentence_bleu_as_in_its_tests(options, expected):
    reference = "producţia de zahăr brut se exprimă în zahăr alb;"
    candidate = "Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;"
    assert sacrebleu(candidate, [reference], **options) == pytest.approx(expected, abs=1e-3)


RISK = (
    "risk assessment must be made of those who are qualified and expertise in the sector - these are the scientists ."
)
TAKEN = (
    "risk assessment has to be undertaken by those who are qualified and expert in that area - that is the scientists ."
)
OBAMA = "Die Beziehung zwischen Obama und Netanjahu ist nicht gerade freundlich."
FRIENDLY = "Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich."


@pytest.mark.parametrize(
    ("candidates", "references", "options", "expected"),
    [
        (["abcdefg"], ["hijklmnop"], {"eps_smoothing": True}, 0.0),
        ([""], ["b"], {"eps_smoothing": True}, 0.0),
        (["aa"], ["ab"], {"eps_smoothing": True}, 8.3333),
        (["a", "b"], ["a", "c"], {"eps_smoothing": True}, 8.3333),
        (["a"], ["a"], {"eps_smoothing": True}, 16.6667),
        (["a b c"], ["abc"], {"eps_smoothing": True}, 50.0),
        ([f" {RISK}"], [TAKEN], {"eps_smoothing": True}, 63.361730),
        ([f" {OBAMA.replace('g z', 'g   z')} "], [FRIENDLY], {"eps_smoothing": True}, 64.1302698),
        (["a"], ["a"], {}, 100.0),
        ([""], ["c"], {}, 0.0),
        (["a b c"], ["abc"], {}, 100.0),
        (["a", "b"], ["a", "c"], {}, 50.0),
        (["aa"], ["ab"], {}, 25.0),
        ([OBAMA], [FRIENDLY], {"whitespace": True}, 67.3481606),
        ([RISK], [TAKEN], {"whitespace": True}, 65.2414427),
    ],
)
def test_corpus_chrf_as_in_its_tests(candidates, references, options, expected):
    assert corpus(compute_chrf, candidates, references, beta=3, **options) == pytest.approx(expected, abs=1e-4)


def test_sentence_chrf_as_in_its_tests():
    candidate = "Nebo prostě nemají vybavení, které by jim pomohlo, uvedli lékaři."
    reference = "A někdy nemáme ani potřebný materiál, abychom jim pomohli, popsali lékaři."
    assert chrf(candidate, [reference], eps_smoothing=True) == pytest.approx(31.22557079, abs=1e-7)


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("aaaa bbbb cccc dddd", "aaaa bbbb cccc dddd", 0),
        ("dddd eeee ffff", "aaaa bbbb cccc", 100),
        ("", "a", 100),
        ("a", "", 100),
        ("", "", 0),
        ("d e f g h a b c", "a b c d e f g h", 100 / 8),  # one shift
    ],
)
def test_ter_as_in_its_tests(candidate, reference, expected):
    assert ter(candidate, [reference]) == expected
    assert corpus(compute_ter, [candidate], [reference]) == expected


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("A B C D.", "", "a b c d."),
        ("A ; B ) C : D.", "no_punct", "a b c d"),
        ("a b (c) d.", "normalized", "a b ( c ) d ."),
        ("Jim's car.", "normalized", "jim 's car ."),
        ("4.2", "normalized", "4.2"),
        ("美众院公布对特", "normalized asian_support", "美 众 院 公 布 对 特"),
        ("りの拳銃を持", "normalized asian_support", "りの 拳 銃 を 持"),
    ],
)
def test_the_words_of_ter_as_in_its_tests(text, options, words):
    names = ("normalized", "no_punct", "asian_support", "case_sensitive")
    assert ter_tokens([text], *(name in options.split() for name in names)) == [words.split()]


# The package itself

PIECES = (
    "the The cat dog's 3.5 1,000 10-20 (hi) hi. ,, - &amp; &quot; <skipped> ΟΔΟΣ. ΑΣ İ straße 美众院 りの 、 "
    "！ （ 한국 😀 ½ ٣٤ \u3000 \xa0 \n -\n \n- 's jim's “q” … – € 50% _ ʰΣ it's, \u2028"
).split(" ")
piece = st.sampled_from(PIECES)
text = st.one_of(
    st.lists(piece, max_size=25).map(" ".join), st.lists(piece, max_size=8).map("".join), st.text(max_size=20)
)
sample = st.tuples(text, st.lists(text, min_size=1, max_size=4))
flags = st.booleans()


@given(text)
@settings(max_examples=200, deadline=None)
def test_the_tokenizers_of_sacrebleu(text):
    from sacrebleu.metrics.bleu import _get_tokenizer

    for name in ("13a", "intl", "char", "zh", "none"):
        assert sacrebleu_tokens([text], name)[0] == _get_tokenizer(name)()(text).split()


def peer(name, **options):
    from sacrebleu.metrics import BLEU, CHRF, TER

    return {"sacrebleu": BLEU, "chrf": CHRF, "ter": TER}[name](**options)


def bleu_options(options, *, sentence):
    renamed = {key: value for key, value in options.items() if key != "tokenizer"}
    if sentence:
        renamed["effective_order"] = True
    return {**renamed, "tokenize": options["tokenizer"]}


def agrees(metric, options, samples):
    """The scores of all samples, and if all have as many references the corpus score and the signature."""
    chosen = configured(metric, options)
    candidates, references = [c for c, _ in samples], [r for _, r in samples]
    rows = rows_of(chosen, candidates, references)
    theirs = bleu_options(options, sentence=True) if metric.name == "sacrebleu" else options
    each = [peer(metric.name, **theirs).sentence_score(*pair).score for pair in samples]
    most = max(map(len, references))
    streams = [[texts[i] if i < len(texts) else None for texts in references] for i in range(most)]
    whole = peer(metric.name, **(bleu_options(options, sentence=False) if metric.name == "sacrebleu" else options))
    score = whole.corpus_score(candidates, streams).score
    assert rows.values.tolist() == each
    # Lengths of references are means: sums of thirds depend on the order of summation.
    assert chosen.aggregate(rows).value == (pytest.approx(score, rel=1e-13) if metric.name == "ter" else score)
    assert chosen.aggregate(rows).origin_signature == whole.get_signature().format()


@given(
    st.lists(sample, min_size=1, max_size=4),
    st.sampled_from(["13a", "intl", "char", "zh", "none"]),
    st.sampled_from([("exp", None), ("none", None), ("floor", None), ("floor", 0.5), ("add-k", None), ("add-k", 2.0)]),
    flags,
    flags,
    st.sampled_from([4, 1, 2, 6]),
)
@settings(max_examples=150, deadline=None)
def test_bleu_of_the_package(samples, tokenizer, smoothing, lowercase, effective_order, order):
    method, value = smoothing
    options = {
        "tokenizer": tokenizer,
        "smooth_method": method,
        "smooth_value": value,
        "lowercase": lowercase,
        "effective_order": effective_order,
        "max_ngram_order": order,
    }
    agrees(compute_sacrebleu, options, samples)


@given(
    st.lists(sample, min_size=1, max_size=4),
    st.sampled_from([(6, 0), (6, 2), (1, 1), (3, 4)]),
    st.integers(0, 3),
    flags,
    flags,
    flags,
)
@settings(max_examples=150, deadline=None)
def test_chrf_of_the_package(samples, orders, beta, lowercase, whitespace, eps_smoothing):
    options = {
        "char_order": orders[0],
        "word_order": orders[1],
        "beta": beta,
        "lowercase": lowercase,
        "whitespace": whitespace,
        "eps_smoothing": eps_smoothing,
    }
    agrees(compute_chrf, options, samples)


@given(st.lists(sample, min_size=1, max_size=3), flags, flags, flags, flags)
@settings(max_examples=150, deadline=None)
def test_ter_of_the_package(samples, normalized, no_punct, asian_support, case_sensitive):
    options = {
        "normalized": normalized,
        "no_punct": no_punct,
        "asian_support": asian_support,
        "case_sensitive": case_sensitive,
    }
    agrees(compute_ter, options, samples)


letters = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=110)


@given(letters, st.lists(st.tuples(st.integers(0, 109), st.integers(1, 12), st.integers(0, 109)), max_size=5), letters)
@settings(max_examples=60, deadline=None)
def test_shifts_in_long_texts(words, moves, other):
    # More than 64 words: the table is filled inside the beam instead of bit by bit.
    moved = list(words)
    for start, length, target in moves:
        taken = moved[start : start + length]
        del moved[start : start + length]
        moved[target:target] = taken
    pairs = [(" ".join(moved), [" ".join(words)]), (" ".join(words), [" ".join(other)])]
    agrees(compute_ter, {}, pairs)


def test_texts_of_very_different_lengths():
    # The beam is wider than usual if the reference has more than 50 words for each word of the candidate.
    words = [f"w{i % 37}" for i in range(400)]
    agrees(compute_ter, {}, [("w3 w1", [" ".join(words)]), (" ".join(words), ["w5 w2 w9"]), ("w0", [" ".join(words)])])


def test_no_more_than_a_thousand_shifts_are_tried():
    # All words are equal to many others, so that there are more candidates than that.
    agrees(compute_ter, {}, [(" ".join("ab" * 45 + "c"), [" ".join("c" + "ba" * 40)])])


# Corpus scores, intervals and signatures in a run

SAMPLES = [
    Sample(id=str(number), generated_answer=answer, references=[first, second])
    for number, (answer, first, second) in enumerate(zip(DOG, FIRST, SECOND, strict=True))
]


@BY_NAME
def test_the_influence_values_are_derivatives(metric):
    # A little more weight for sample i, taken from all samples, changes the score by psi_i / n per weight.
    rows = rows_of(metric, DOG, zip(FIRST, SECOND, strict=True))
    estimate = metric.aggregate(rows)
    sums, weight = rows.stats.sum(axis=0), 1e-6
    for number in range(len(DOG)):
        moved = metric.corpus_score(sums + weight * (rows.stats[number] - sums / len(DOG)))
        change = (moved - estimate.value) / weight
        assert change == pytest.approx(estimate.influence[number] / len(DOG), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (compute_sacrebleu, {"smooth_method": "floor", "tokenizer": "char"}),
        (compute_sacrebleu, {"smooth_method": "add-k", "max_ngram_order": 6}),
        (compute_chrf, {"eps_smoothing": True, "word_order": 2}),
        (compute_chrf, {"word_order": 2, "beta": 1}),
    ],
)
def test_the_influence_values_with_other_options(metric, options):
    test_the_influence_values_are_derivatives(configured(metric, options))


def test_a_run_stores_the_signature_of_sacrebleu():
    run = evaluate(SAMPLES, metrics=["sacrebleu", "chrf", "ter"], options={"chrf": {"word_order": 2}})
    assert run["sacrebleu"]["value"] == pytest.approx(48.530827, abs=1e-6)
    assert run["sacrebleu"]["signature"] == (
        "sacrebleu|v:1|tokenizer:13a|smooth_method:exp|lowercase:False|errors:default@2"
    )
    assert {name: run[name]["origin_signature"] for name in ("sacrebleu", "chrf", "ter")} == {
        "sacrebleu": "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        "chrf": "nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0",
        "ter": "nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0",
    }
    assert run["sacrebleu"]["low"] <= run["sacrebleu"]["value"] <= run["sacrebleu"]["high"]


def test_a_varying_number_of_references_is_in_the_signature():
    fewer = [SAMPLES[0], Sample(id="x", generated_answer="a cat", references=["a cat sat"])]
    assert evaluate(fewer, metrics=["chrf"])["chrf"]["origin_signature"].startswith("nrefs:var|")
    assert "origin_signature" not in evaluate(fewer, metrics=["rouge_1"])["rouge_1"]


def test_the_paired_test_swaps_samples_exactly():
    # 12 samples, all better by the same: only the 2 of 4096 swaps that swap none or all reach the difference.
    from multimodal_eval.stats.randomization import randomized_sums

    references = [["a b c d e f"]] * 12
    worse = compute_chrf.aggregate(rows_of(compute_chrf, ["a b c x y z"] * 12, references))
    better = compute_chrf.aggregate(rows_of(compute_chrf, ["a b c d e z"] * 12, references))
    test = randomized_sums(worse.summed, better.summed)
    assert test.p_value == 2 / 4096
    assert 0 < test.low <= better.value - worse.value <= test.high
    assert randomized_sums(worse.summed, worse.summed).p_value == 1
    clusters = np.repeat([0, 1], 6)
    assert randomized_sums(worse.summed, better.summed, clusters).p_value == 0.5


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (compute_sacrebleu, {"tokenizer": "spm"}, "must be one of 13a, intl, char, zh, none"),
        (compute_sacrebleu, {"smooth_value": 1.0}, "`smooth_value` of sacrebleu is for floor and add-k"),
        (compute_sacrebleu, {"smooth_method": "floor", "smooth_value": -1.0}, "must be at least 0"),
        (compute_sacrebleu, {"max_ngram_order": 0}, "must be from 1 to 100"),
        (compute_chrf, {"char_order": 0}, "must be from 1 to 100"),
        (compute_chrf, {"beta": -1}, "must be at least 0"),
    ],
)
def test_options_that_cannot_work_are_refused(metric, options, message):
    with pytest.raises(ConfigError, match=message):
        configured(metric, options)


def test_an_empty_list_of_references_is_refused():
    with pytest.raises(ConfigError, match="ter needs a list of at least one reference"):
        ter("a", [])
