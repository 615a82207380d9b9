"""Settings of engines that are refused."""

from __future__ import annotations

import pytest

from multimodal_eval import Engine, evaluate
from multimodal_eval.core.errors import ConfigError

RECORDS = [{"id": "a", "generated_answer": "a dog", "references": ["a dog"]}]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "dask"}, "must be 'local' or 'ray'. Got 'dask'"),
        ({"workers": 0}, "`workers` must be 1 or more. Got 0"),
        ({"address": "auto"}, "need the engine 'ray'"),
        ({"gpus_per_worker": 0.5}, "need the engine 'ray'"),
        ({"name": "ray", "gpus_per_worker": 1.5}, "or a whole number. Got 1.5"),
    ],
)
def test_invalid_engines_are_refused(settings, message):
    with pytest.raises(ConfigError) as refusal:
        Engine(**settings)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "dask"}, "must be 'local' or 'ray'. Got 'dask'"),
        ({"engine": Engine("ray", address="auto")}, "needs an `output` folder"),
        ({"engine": Engine("local", workers=2), "workers": 3}, "given twice"),
        ({"engine": "ray", "address": "auto"}, "engine=Engine('ray', address=…)"),
    ],
)
def test_invalid_calls_are_refused(settings, message):
    with pytest.raises(ConfigError) as refusal:
        evaluate(RECORDS, metrics=["rouge_l"], **settings)
    assert message in str(refusal.value)
