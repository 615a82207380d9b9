"""Properties of every built-in metric. A metric without examples fails."""

from __future__ import annotations

import random
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multimodal_eval import Rows, Sample
from multimodal_eval.core.aggregates import aggregate_of
from multimodal_eval.core.corpus import default_state, fitted, load_state, save_state
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.metric_table import module_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from tests.contract.examples import EXAMPLES
from tests.golden.clip.images import TINY_CLIP

METRICS = list_available()


def opened(metric, samples):
    state = fitted(metric, samples) if metric.corpus else default_state(metric)
    return metric.open(state)


def uses_a_model(name):
    return bool(resolve(name).resources())


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.weights] * uses_a_model(name)) for name in METRICS])
def metric(request, monkeypatch):
    if uses_a_model(request.param):
        request.getfixturevalue("weights")
    monkeypatch.setenv("CLIP_MODEL_ID", str(TINY_CLIP))
    return resolve(request.param)


@pytest.fixture
def samples(metric):
    return EXAMPLES[metric.name]


def test_every_metric_has_examples():
    assert sorted(EXAMPLES) == METRICS


def test_its_file_is_named_after_it_or_its_family(metric):
    module = import_module(f"multimodal_eval.evaluation.{metric.name}")
    assert getattr(module, f"compute_{metric.name}") is metric
    assert metric.__module__ == module.__name__ == module_of(metric.name)
    assert module is import_module(f"multimodal_eval.evaluation.metrics.{metric.name}")


def test_its_options_can_be_set_again(metric):
    again = configured(metric, metric.options)
    assert again.options == metric.options
    assert signature_of(again, default_state(metric)) == signature_of(metric, default_state(metric))
    with pytest.raises(ConfigError, match=f"{metric.name} has no option 'nothing'"):
        configured(metric, {"nothing": 1})


def test_it_scores_its_examples_within_its_bounds(metric, samples):
    scores = score_batch(metric, opened(metric, samples), samples)
    low, high = metric.bounds
    for score in scores:
        assert score.status == "ok"
        assert score.value is not None
        assert low is None or score.value >= low
        assert high is None or score.value <= high
    assert len({score.value for score in scores}) > 1


def test_order_and_batching_do_not_change_scores(metric, samples):
    scorer = opened(metric, samples)
    scores = score_batch(metric, scorer, samples)
    assert [score_batch(metric, scorer, [sample])[0] for sample in samples] == scores
    order = list(range(len(samples)))
    random.Random(1).shuffle(order)
    assert score_batch(metric, scorer, [samples[i] for i in order]) == [scores[i] for i in order]


def test_without_its_inputs_it_is_unscored_in_a_run_and_0_when_called(metric):
    bare = Sample(id="bare")
    assert metric(bare) == 0.0
    (score,) = score_batch(
        metric, opened(metric, []) if not metric.corpus else metric.open(default_state(metric)), [bare]
    )
    assert (score.value, score.status) == (None, "missing_input")


def test_a_generator_error_is_unscored(metric, samples):
    failed = Sample(id="x", generated_answer="[ERROR] out of memory", references=["a dog"])
    (score,) = score_batch(metric, opened(metric, samples), [failed])
    assert (score.value, score.status) == (None, "error")


def test_its_state_merges_and_survives_storage(metric, samples, tmp_path):
    if not metric.corpus:
        assert fitted(metric, samples) is None
        return
    whole = fitted(metric, samples)
    assert fitted(metric, samples[:1]) + fitted(metric, samples[1:]) == whole
    save_state(whole, tmp_path / "state")
    assert load_state(metric, tmp_path / "state") == whole
    save_state(fitted(metric, samples[:2]) + fitted(metric, samples[2:]), tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == (tmp_path / "state").read_bytes()


def test_its_signature_names_it_and_is_stable(metric, samples):
    state = fitted(metric, samples) if metric.corpus else default_state(metric)
    signature = signature_of(metric, state)
    assert str(signature).startswith(f"{metric.name}|v:{metric.version}")
    assert signature == signature_of(resolve(metric.name), state)
    assert "code:" not in str(signature), "a built-in metric declares its version"


def test_its_aggregate_has_one_influence_value_per_row(metric, samples):
    import numpy as np

    scores = score_batch(metric, opened(metric, samples), samples)
    stats = [score.stats for score in scores]
    matrix = None if stats[0] is None else np.array(stats, dtype=float)
    estimate = aggregate_of(metric)(Rows(np.array([score.value for score in scores], dtype=float), matrix))
    assert len(estimate.influence) == len(samples)
    assert abs(float(np.mean(estimate.influence))) < 1e-9 * max(1.0, abs(estimate.value))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(answer=st.text(max_size=60), reference=st.text(min_size=1, max_size=60))
def test_any_text_gets_a_score_or_a_reason(metric, samples, answer, reference):
    sample = Sample(id="any", generated_answer=answer, references=[reference], image=samples[0].image)
    (score,) = score_batch(metric, opened(metric, samples), [sample])
    assert score.status != "error", score.reason
    assert (score.value is None) == (score.status != "ok")


def test_a_blank_answer_is_never_rewarded(metric, samples):
    scorer = opened(metric, samples)
    blank = Sample(id="blank", generated_answer="  ", references=["a red dog runs"], image=samples[0].image)
    (score,) = score_batch(metric, scorer, [blank])
    worst = metric.bounds[0 if metric.direction == "higher" else 1]
    if worst is None and score.value is not None:  # an error rate has no upper bound
        unrelated = Sample(id="unrelated", generated_answer="x" * 14, references=blank.references)
        worst = score_batch(metric, scorer, [unrelated])[0].value
    assert score.value in (None, worst)
    if score.value is not None:
        assert score.warning == "blank_answer"
