"""Properties of every built-in metric. A metric without examples fails."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multimodal_eval import Sample
from multimodal_eval.core.corpus import default_state, fitted, save_state
from multimodal_eval.core.metric import signature_of
from multimodal_eval.core.metric_table import module_of
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from multimodal_eval.testing import check_metric
from tests.contract.examples import EXAMPLES
from tests.golden.clip.images import TINY_CLIP

METRICS = list_available()


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


def test_it_keeps_the_contract(metric, samples):
    check_metric(metric, samples)


def test_it_declares_its_version(metric):
    assert "code:" not in str(signature_of(metric))


def test_the_stored_statistics_of_parts_in_another_order_are_equal(metric, samples, tmp_path):
    if metric.corpus:
        for place, path in ((1, tmp_path / "state"), (2, tmp_path / "other")):
            save_state(fitted(metric, samples[:place]) + fitted(metric, samples[place:]), path)
        assert (tmp_path / "other").read_bytes() == (tmp_path / "state").read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(answer=st.text(max_size=60), reference=st.text(min_size=1, max_size=60))
def test_any_text_gets_a_score_or_a_reason(metric, samples, answer, reference):
    scorer = metric.open(fitted(metric, samples) if metric.corpus else default_state(metric))
    sample = Sample(id="any", generated_answer=answer, references=[reference], image=samples[0].image)
    (score,) = score_batch(metric, scorer, [sample])
    assert score.status != "error", score.reason
    assert (score.value is None) == (score.status != "ok")
