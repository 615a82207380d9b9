from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, Score, evaluate_sample
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.evaluation.composite_score import composite_of_scores, compute_composite, normalize_cider
from multimodal_eval.evaluation.metrics_registry import _METRICS, TASK_METRICS
from multimodal_eval.evaluation.tasks_config import Task, get_task

EXAMPLE = {"clip_score": 0.72, "semantic_similarity": 0.81, "cider": 0.67}


def test_the_worked_example_is_exact():
    # 0.25 * 0.72 + 0.50 * 0.81 + 0.25 * 0.67 = 0.18 + 0.405 + 0.1675
    assert compute_composite(EXAMPLE) == 0.7525


def test_every_task_has_its_formula():
    parts = {"clip_score": 0.1, "semantic_similarity": 0.2, "contextual_relevance": 0.4, "cider": 0.8}
    # vqa: .10*.1 + .40*.2 + .50*.4 = .01 + .08 + .20;  contextual: .40*.1 + .30*.8 + .30*.2 = .04 + .24 + .06
    assert compute_composite(parts, "vqa") == pytest.approx(0.29, abs=1e-15)
    assert compute_composite(parts, "contextual_relevance") == pytest.approx(0.34, abs=1e-15)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_numpy_numbers_work(kind):
    values = {name: kind(value) for name, value in EXAMPLE.items()}
    assert compute_composite(values) == pytest.approx(0.7525, rel=1e-6)


def test_a_missing_part_is_named():
    with pytest.raises(ConfigError, match="is missing clip_score, cider"):
        compute_composite({"semantic_similarity": 0.5, "cider": None})


def test_missing_parts_may_count_as_zero_or_be_left_out():
    values = {"semantic_similarity": 0.8}
    assert compute_composite(values, on_missing="zero") == pytest.approx(0.4)
    assert compute_composite(values, on_missing="renormalise") == pytest.approx(0.8)
    with pytest.raises(ConfigError, match="no part with a weight"):
        compute_composite({}, on_missing="renormalise")


@pytest.mark.parametrize("bad", [True, float("nan"), -0.1, "0.5", float("inf")])
def test_bad_parts_are_refused(bad):
    with pytest.raises(ConfigError, match="clip_score"):
        compute_composite({**EXAMPLE, "clip_score": bad})


def test_a_cider_above_its_maximum_is_clipped_with_a_warning():
    with pytest.warns(UserWarning, match="above its maximum"):
        assert compute_composite({**EXAMPLE, "cider": 1.3}) == compute_composite({**EXAMPLE, "cider": 1.0})


def test_hallucination_has_no_formula_and_names_its_metric():
    with pytest.raises(ConfigError, match="hallucination_metric"):
        compute_composite(EXAMPLE, "hallucination")


def test_an_unknown_task_lists_the_choices():
    with pytest.raises(UnknownNameError, match="captioning, chartqa, classification, contextual_relevance"):
        compute_composite(EXAMPLE, "capt")


@pytest.mark.parametrize(
    ("cider", "expected"),
    [
        (0.5, 0.5),
        (2.0, 1.0),
        (-1.0, 0.0),
        ("0.5", 0.0),
        (None, 0.0),
        (True, 0.0),
        (float("nan"), 0.0),
        (np.float32(0.5), 0.5),
    ],
)
def test_normalize_cider(cider, expected):
    assert normalize_cider(cider) == expected


@pytest.mark.parametrize("maximum", [0, -1, float("nan"), True, "1"])
def test_the_maximum_must_be_above_zero(maximum):
    with pytest.raises(ConfigError, match="max_cider"):
        normalize_cider(0.5, maximum)


@given(st.floats(0, 20), st.floats(0.1, 10))
def test_normalised_cider_is_between_0_and_1_and_keeps_the_order(cider, maximum):
    low, high = normalize_cider(cider, maximum), normalize_cider(cider + 0.5, maximum)
    assert 0 <= low <= high <= 1


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_the_composite_stays_between_its_parts(values):
    composite = compute_composite(dict(zip(EXAMPLE, values, strict=True)))
    assert min(values) - 1e-12 <= composite <= max(values) + 1e-12


@pytest.mark.parametrize("weights", [{"a": 0.5, "b": 0.6}, {"a": -0.5, "b": 1.5}, {"a": float("nan")}, {"a": True}])
def test_weights_must_be_valid(weights):
    with pytest.raises(ConfigError, match="WEIGHTS"):
        Task("mine", ["a", "b"], weights)


def test_weights_may_differ_from_1_by_rounding():
    Task("mine", ["a", "b", "c"], {"a": 0.1, "b": 0.2, "c": 0.7 + 1e-12})


def test_an_unscored_part_leaves_the_composite_unscored():
    task = get_task("captioning")
    scores = {"clip_score": Score(0.5), "semantic_similarity": Score(0.5), "cider": Score(None, "error", "broken")}
    assert composite_of_scores(task, scores) == Score(None, "missing_input", "unscored: cider")


def test_evaluate_sample_gives_a_flat_dict_with_status():
    _METRICS["clip_score"] = lambda sample: 0.72
    _METRICS["semantic_similarity"] = lambda sample: {"score": 0.81, "best": 2, "why": ["x"]}
    result = evaluate_sample(Sample(id="1", generated_answer="a red dog", references=["a red dog runs"]))
    assert result["composite_score"] == pytest.approx(0.25 * 0.72 + 0.5 * 0.81 + 0.25 * result["cider"])
    assert result["semantic_similarity.best"] == 2
    assert result["semantic_similarity.why"] == ["x"]
    assert set(result["status"].values()) == {"ok"}


def test_hallucination_takes_its_composite_from_its_metric():
    _METRICS["hallucination_metric"] = lambda sample: {"composite_score": 0.3, "semantic_similarity": 0.9}
    _METRICS["semantic_similarity"] = lambda sample: 0.5
    result = evaluate_sample(Sample(id="1", generated_answer="x"), "hallucination")
    assert result["hallucination_metric"] == result["composite_score"] == 0.3
    assert result["semantic_similarity"] == 0.5
    assert result["hallucination_metric.semantic_similarity"] == 0.9


def test_missing_scores_are_none_with_a_reason():
    result = evaluate_sample({"id": "1", "generated_answer": "a dog"})
    assert result["cider"] is None
    assert result["status"]["cider"] == "no references"
    assert result["composite_score"] is None
    assert result["status"]["clip_score"].startswith("unavailable")


def test_an_unknown_metric_is_an_error_and_not_a_missing_score():
    TASK_METRICS["captioning"].append("cidr")
    with pytest.raises(UnknownNameError, match="cider"):
        evaluate_sample(Sample(id="1"))


def test_on_missing_must_be_known():
    with pytest.raises(ConfigError, match="on_missing"):
        compute_composite(EXAMPLE, on_missing="bogus")


def test_a_record_may_have_further_columns():
    assert evaluate_sample({"id": 1, "generated_answer": "a dog", "references": ["a dog"], "split": "val"})["cider"] > 0
