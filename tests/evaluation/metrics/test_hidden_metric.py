"""The hidden metric's rule is an option like any other."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.metric import configured
from multimodal_eval.evaluation.metrics.hidden_metric import compute_hidden_metric


def test_configuring_without_options_keeps_the_rule():
    metric = configured(compute_hidden_metric, {"rule": "choice"})
    assert configured(metric, {}).options == {"rule": "choice"}
    assert configured(metric, {}).needs == metric.needs == ("metadata.candidates", "metadata.correct")
    assert configured(compute_hidden_metric, {}).options == {"rule": "confidence"}


def test_a_rule_must_exist():
    with pytest.raises(UnknownNameError, match="Did you mean 'confidence'"):
        configured(compute_hidden_metric, {"rule": "confidance"})
    with pytest.raises(ConfigError, match=r"the option `rule` of hidden_metric must be a name. Got 3 instead"):
        configured(compute_hidden_metric, {"rule": 3})
    with pytest.raises(ConfigError, match=r"has no option 'rul'. Did you mean 'rule'"):
        configured(compute_hidden_metric, {"rul": "choice"})


def test_log_probabilities_stand_for_a_perplexity():
    samples = [
        {"id": "both", "perplexity": 4.0, "logprobs": [-9.0], "generated_answer": "x"},
        {"id": "logprobs", "logprobs": [-1.0, -3.0], "generated_answer": "x"},
        {"id": "none", "generated_answer": "x"},
    ]
    run = evaluate(samples, metrics=["hidden_metric"], progress=False)
    assert run.scores(["hidden_metric"]).column(0).to_pylist() == [0.25, pytest.approx(np.exp(-2.0)), None]
