"""semantic_similarity and contextual_relevance."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval import Sample
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.encoder_metric import half_cosine
from multimodal_eval.evaluation.metrics.semantic_similarity import (
    compute_contextual_relevance,
    compute_semantic_similarity,
)
from multimodal_eval.evaluation.metrics_registry import evaluate_sample
from multimodal_eval.models.encoders import open_sentence_encoder
from tests.models.sentences.test_by_name import recorded

pytestmark = pytest.mark.weights


def scores(metric, *samples):
    return score_batch(metric, metric.open(None), samples)


def recorded_half_cosine(left, right):
    vectors = recorded()
    return (float(vectors[left] @ vectors[right]) + 1) / 2


def test_the_most_similar_reference_counts(weights):
    answer, near, far = "A dog runs along the beach.", "A brown dog is running on the shore.", "three"
    sample = Sample(id="1", generated_answer=answer, references=[far, near], expected_answer="no")
    (score,) = scores(compute_semantic_similarity, sample)
    assert score.value == pytest.approx(recorded_half_cosine(answer, near), abs=1e-6)
    assert score.details == {"compared_with": near}
    assert compute_semantic_similarity(sample) == score.value


def test_the_context_is_prompt_question_and_expected_answer(weights):
    sample = Sample(
        id="1", generated_answer="no", prompt="Look.", question="Is it red?", expected_answer="red", references=["x"]
    )
    encoder = open_sentence_encoder("all-minilm-l6-v2")
    answer, full, question = encoder.encode(["no", "Look. Is it red? red", "Is it red?"])
    assert compute_contextual_relevance(sample) == half_cosine(answer, full)
    without_leak = configured(compute_contextual_relevance, {"context": "question_only"})
    assert without_leak(sample) == half_cosine(answer, question)


def test_without_texts_to_compare_with_there_is_no_score(weights):
    (context,) = scores(compute_contextual_relevance, Sample(id="1", generated_answer="a dog", references=["a dog"]))
    assert (context.value, context.status) == (None, "missing_input")
    (blank,) = scores(compute_semantic_similarity, Sample(id="1", generated_answer="a dog", references=[" "]))
    assert (blank.value, blank.status, blank.reason) == (None, "missing_input", "every reference is blank")


def test_a_language_that_the_encoder_does_not_support_is_a_warning(weights):
    russian = Sample(id="1", generated_answer="Собака бежит", references=["Пёс бежит по пляжу"])
    assert scores(compute_semantic_similarity, russian)[0].warning == "language_unfit"
    russian_encoder = configured(compute_semantic_similarity, {"encoder": "navec-ru"})
    (score,) = scores(russian_encoder, russian)
    assert score.warning is None
    assert 0.7 < score.value <= 1


def test_a_truncated_text_is_a_warning(weights):
    long = Sample(id="1", generated_answer="a dog and a cat " * 100, references=["a dog"])
    assert scores(compute_semantic_similarity, long)[0].warning == "text_cut"


def test_unknown_words_give_no_score(weights):
    metric = configured(compute_semantic_similarity, {"encoder": "navec-ru"})
    (score,) = scores(metric, Sample(id="1", generated_answer="ыыыъ", references=["Пёс бежит"]))
    assert (score.value, score.status) == (None, "degenerate")


def test_options_are_checked():
    with pytest.raises(ConfigError, match="Did you mean 'encoder'"):
        configured(compute_semantic_similarity, {"encodr": "x"})
    with pytest.raises(ConfigError, match="must be one of full, question_only"):
        configured(compute_contextual_relevance, {"context": "all"})
    with pytest.raises(ConfigError, match="must be a name"):
        configured(compute_semantic_similarity, {"encoder": 3})


def test_equal_texts_are_at_most_1(weights):
    vectors = open_sentence_encoder("all-minilm-l6-v2").encode(["a dog", "cats", "the sea"])
    assert all(half_cosine(row, row) == pytest.approx(1, abs=1e-6) and half_cosine(row, row) <= 1 for row in vectors)
    assert half_cosine(np.array([1, 0], np.float32), np.array([-1, 0], np.float32)) == 0


def test_a_task_says_which_metric_has_no_model():
    result = evaluate_sample(Sample(id="1", generated_answer="a", expected_answer="a", question="b"), "vqa")
    assert result["semantic_similarity"] is None
    assert "mmeval fetch all-minilm-l6-v2" in result["status"]["semantic_similarity"]
