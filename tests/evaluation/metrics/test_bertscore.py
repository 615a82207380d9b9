"""bertscore: the matching by hand and against a naive loop, and the metric against bert-score."""

from __future__ import annotations

from math import isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from multimodal_eval import Sample
from multimodal_eval.core.corpus import check_state, fitted
from multimodal_eval.core.errors import ConfigError, InputError, ModelError, UnavailableError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics.bertscore import TokenFrequencies, compute_bertscore, greedy_match
from multimodal_eval.models.encoders import open_token_encoder
from multimodal_eval.models.sentences.tokens import unit_rows
from tests.golden.load import golden

GOLDEN = "bertscore.json.gz"


def scored(samples, **options):
    metric = configured(compute_bertscore, options)
    state = fitted(metric, samples)
    return score_batch(metric, metric.open(state), samples)


def recorded_samples():
    return [
        Sample(id=str(number), generated_answer=answer, references=references)
        for number, (answer, references) in enumerate(golden(GOLDEN)["cases"])
    ]


def baseline_file(folder):
    path = folder / "baseline.tsv"
    rows = [",".join(map(str, [layer, *values])) for layer, values in enumerate(golden(GOLDEN)["baselines"])]
    path.write_text("\n".join(["LAYER,P,R,F", *rows]) + "\n", encoding="utf-8")
    return str(path)


# --- the matching


def test_a_match_worked_out_by_hand():
    # The answer has the tokens x and y, the reference x and (0.6, 0.8). The best matches of the answer: x 1, y 0.8.
    # Those of the reference: x 1, the other 0.8. With the weights 1 and 3: precision (1 + 3 * 0.8) / 4 = 0.85.
    # With the weights 1 and 1: recall (1 + 0.8) / 2 = 0.9. F1: 2 * 0.85 * 0.9 / 1.75.
    answer, reference = np.eye(2, dtype=np.float32), np.array([[1, 0], [0.6, 0.8]], np.float32)
    match = greedy_match(answer, reference, np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    assert match == pytest.approx((0.85, 0.9, 2 * 0.85 * 0.9 / 1.75), abs=1e-7)


def test_opposite_tokens_match_with_0():
    token, weight = np.array([[1, 0]], np.float32), np.ones(1)
    assert greedy_match(token, -token, weight, weight) == (0, 0, 0)


def naive_match(candidate, reference, candidate_weights, reference_weights):
    def mean(rows, others, weights):
        total = 0.0
        for row, weight in zip(rows, weights, strict=True):
            best = 0.0
            for other in others:
                best = max(best, sum(float(a) * float(b) for a, b in zip(row, other, strict=True)))
            total += weight * best
        return total / sum(weights)

    precision = mean(candidate, reference, candidate_weights)
    recall = mean(reference, candidate, reference_weights)
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@st.composite
def texts(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.just(3)))
    numbers = draw(arrays.arrays(np.float32, shape, elements=st.floats(-1, 1, width=32)))
    numbers[np.linalg.norm(numbers, axis=1) < 0.01] = (1, 0, 0)
    weights = draw(arrays.arrays(np.float64, shape[0], elements=st.sampled_from([0.0, 0.25, 1.0, 3.5])))
    weights[draw(st.integers(0, shape[0] - 1))] = 1.0
    return unit_rows(numbers), weights


@given(texts(), texts())
def test_the_match_equals_a_naive_loop(left, right):
    match = greedy_match(left[0], right[0], left[1], right[1])
    assert match == pytest.approx(naive_match(left[0], right[0], left[1], right[1]), abs=1e-6)
    assert all(0 <= value <= 1 for value in match)
    swapped = greedy_match(right[0], left[0], right[1], left[1])
    assert (swapped.precision, swapped.recall) == pytest.approx((match.recall, match.precision), abs=1e-6)


@given(texts())
def test_a_text_matches_itself(text):
    assert greedy_match(text[0], text[0], text[1], text[1]) == pytest.approx((1, 1, 1), abs=1e-6)


# --- idf

corpora = st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6)


@given(corpora, corpora)
def test_frequencies_of_two_shards_merge_into_those_of_the_whole(left, right):
    whole = TokenFrequencies.of(left + right)
    merged = TokenFrequencies.of(right) + TokenFrequencies.of(left)
    assert merged == whole
    assert merged.digest == whole.digest


def test_idf_by_hand():
    frequencies = TokenFrequencies.of([[1, 1, 2], [1], [3]])
    assert [frequencies.idf(token) for token in (1, 2, 4)] == [log(4 / 3), log(4 / 2), log(4 / 1)]


# --- options, without a model


def test_options_are_checked():
    with pytest.raises(ConfigError, match="must be 0 or more"):
        configured(compute_bertscore, {"layer": -1})
    with pytest.raises(ConfigError, match="must be true or false"):
        configured(compute_bertscore, {"idf": "corpus"})
    with pytest.raises(ConfigError, match="Did you mean 'rescale'"):
        configured(compute_bertscore, {"rescal": "x"})


def test_the_signature_names_every_setting(tmp_path):
    path = baseline_file(tmp_path)
    metric = configured(compute_bertscore, {"layer": 5, "idf": True, "rescale": path})
    frequencies = TokenFrequencies.of([[1], [2]])
    parts = str(signature_of(metric, frequencies)).split("|")
    assert parts[:4] == ["bertscore", "v:1", "encoder:all-minilm-l6-v2@b49ed49c", "layer:5"]
    assert parts[4] == f"idf:corpus@{frequencies.digest}"
    assert parts[5].startswith("rescale:baseline.tsv@")
    (tmp_path / "baseline.tsv").write_text("LAYER,P,R,F\n5,0.5,0.5,0.5\n")
    assert str(signature_of(metric, frequencies)).split("|")[5] != parts[5]
    assert str(signature_of(configured(compute_bertscore, {"rescale": "gone.tsv"}))).endswith("|rescale:gone.tsv")


def test_a_missing_model_is_reported():
    assert "mmeval fetch all-minilm-l6-v2" in (compute_bertscore.unavailable() or "")
    with pytest.raises(UnavailableError, match="mmeval fetch all-minilm-l6-v2"):
        compute_bertscore.open(None)


# --- against bert-score


@pytest.mark.weights
@pytest.mark.parametrize(
    ("name", "options"),
    [("last", {}), ("layer 3", {"layer": 3}), ("layer 0", {"layer": 0}), ("idf", {"idf": True}), ("rescaled", {})],
)
def test_scores_equal_those_of_bert_score(weights, tmp_path, name, options):
    if name == "rescaled":
        options = {"rescale": baseline_file(tmp_path)}
    for score, (precision, recall, f1) in zip(
        scored(recorded_samples(), **options), golden(GOLDEN)["scores"][name], strict=True
    ):
        assert score.value == pytest.approx(f1, abs=1e-5)
        assert score.parts is not None
        if not isnan(precision):
            assert score.parts["precision"] == pytest.approx(precision, abs=1e-5)
        if not isnan(recall):
            assert score.parts["recall"] == pytest.approx(recall, abs=1e-5)


@pytest.mark.weights
def test_a_blank_answer_scores_what_bert_score_gives_it(weights, tmp_path):
    blank = Sample(id="1", generated_answer=" ", references=["a dog"])
    (score,) = scored([blank])
    assert (score.value, score.parts, score.warning) == (0, {"precision": 0, "recall": 0}, "blank_answer")
    path = tmp_path / "half.csv"
    path.write_text("LAYER,P,R,F\n6,0.5,0.2,0.2\n")
    (score,) = scored([blank], rescale=str(path))  # (0 - b) / (1 - b)
    assert score.value == pytest.approx(-0.25)
    assert score.parts == pytest.approx({"precision": -1, "recall": -0.25})


@pytest.mark.weights
def test_the_best_reference_is_named(weights):
    sample = Sample(id="1", generated_answer="a dog runs", references=["the sea", " ", "a dog is running"])
    (score,) = scored([sample])
    assert score.details == {"compared_with": "a dog is running"}
    (alone,) = scored([Sample(id="1", generated_answer="a dog runs", references=["a dog is running"])])
    assert alone.value == score.value
    assert alone.details is None
    assert compute_bertscore(sample) == score.value


@pytest.mark.weights
def test_without_a_weight_there_is_no_score(weights):
    (blank,) = scored([Sample(id="1", generated_answer="a dog", references=[" "])])
    assert (blank.value, blank.status, blank.reason) == (None, "missing_input", "every reference is blank")
    (empty,) = scored([Sample(id="1", generated_answer="a dog", references=["\u200b"])])
    assert (empty.value, empty.status) == (None, "degenerate")
    samples = [Sample(id=str(n), generated_answer="a dog", references=[text]) for n, text in enumerate(["a", "a dog"])]
    same, other = scored(samples, idf=True)  # "a" is in both references
    assert (same.status, "idf is 0" in (same.reason or "")) == ("degenerate", True)
    assert other.value == pytest.approx(1)
    (common,) = scored([Sample(id="1", generated_answer="a", references=["a dog", "a cat"])], idf=True)
    assert common.value == 0


@pytest.mark.weights
def test_a_corpus_of_equal_references_is_refused(weights):
    metric = configured(compute_bertscore, {"idf": True})
    samples = [Sample(id=str(n), generated_answer="a dog", references=["a dog"]) for n in range(3)]
    with pytest.raises(InputError, match="every weight would be 0"):
        check_state(fitted(metric, samples))
    check_state(fitted(metric, [*samples, Sample(id="4", references=["a cat"])]))


@pytest.mark.weights
def test_texts_are_scored_alike_alone_and_in_chunks(weights, monkeypatch):
    samples = recorded_samples()[:40]
    together = scored(samples)
    monkeypatch.setattr("multimodal_eval.evaluation.metrics.bertscore.LETTERS_AT_ONCE", 100)
    assert scored(samples) == together
    assert [score for sample in samples for score in scored([sample])] == together


@pytest.mark.weights
def test_texts_of_more_than_512_tokens_and_other_languages_are_warnings(weights):
    long = [Sample(id="1", generated_answer="dog " * count, references=["a dog"]) for count in (510, 511)]
    assert [score.warning for score in scored(long)] == [None, "text_cut"]
    russian = Sample(id="1", generated_answer="Собака бежит", references=["Пёс бежит по пляжу"])
    assert scored([russian])[0].warning == "language_unfit"


@pytest.mark.weights
def test_word_vectors_are_an_encoder_with_one_layer(weights):
    metric = configured(compute_bertscore, {"encoder": "navec-ru"})
    russian = [
        Sample(id="1", generated_answer="собака бежит", references=["бежит собака"]),
        Sample(id="2", generated_answer="собака бежит", references=["пёс бежит по пляжу"]),
        Sample(id="3", generated_answer="ыыыъ", references=["пёс бежит"]),
    ]
    same, near, unknown = score_batch(metric, metric.open(None), russian)
    assert same.value == pytest.approx(1)  # words have no context
    assert 0.4 < near.value < 0.95
    assert near.warning is None
    assert (unknown.value, unknown.status) == (None, "degenerate")
    with pytest.raises(ConfigError, match="has only layer 0"):
        configured(metric, {"layer": 1}).unavailable()


@pytest.mark.weights
def test_a_layer_that_the_encoder_does_not_have_is_refused(weights):
    with pytest.raises(ConfigError, match=r"has the layers 0 to 6\. Got layer 7 for bertscore"):
        configured(compute_bertscore, {"layer": 7}).unavailable()
    last, sixth = (scored(recorded_samples()[:5], layer=layer) for layer in (None, 6))
    assert last == sixth


@pytest.mark.weights
def test_int8_is_close(weights):
    samples = recorded_samples()[20:40]
    exact, rough = scored(samples), scored(samples, encoder="all-minilm-l6-v2+int8")
    assert max(abs(a.value - b.value) for a, b in zip(exact, rough, strict=True)) < 0.05


@pytest.mark.weights
def test_nan_never_becomes_a_score(weights, monkeypatch):
    encoder = open_token_encoder("all-minilm-l6-v2")
    broken = encoder.inner.encode(["a dog"], 6)
    broken[0].vectors[1, 0] = np.nan
    monkeypatch.setattr(encoder.inner, "encode", lambda texts, layer: broken)
    with pytest.raises(ModelError, match="vectors with NaN or infinity"):
        encoder.encode(["a dog"], 6)


@pytest.mark.weights
@pytest.mark.torch
def test_torch_gives_the_same_scores(weights, torch_libraries):
    samples = recorded_samples()[:60]
    for layer in (None, 3):
        pairs = zip(
            scored(samples, layer=layer), scored(samples, layer=layer, encoder="torch:all-minilm-l6-v2"), strict=True
        )
        for ours, theirs in pairs:
            assert theirs.value == pytest.approx(ours.value, abs=1e-5)
            assert theirs.warning == ours.warning
