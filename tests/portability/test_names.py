"""Names that become files: on Windows some are devices, and on Windows and macOS capital letters do not count."""

from __future__ import annotations

import pytest

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import check_name
from multimodal_eval.run.plan import make_plan


@pytest.mark.parametrize("name", ["con", "NUL", "Aux", "prn", "com1", "LPT9"])
def test_a_metric_is_not_named_like_a_device(name):
    with pytest.raises(ConfigError, match="nor a device of Windows such as con or nul"):
        check_name(name)


@pytest.mark.parametrize("name", ["console", "null", "com", "com10", "aux_score", "consensus"])
def test_a_name_may_contain_one(name):
    check_name(name)


def test_two_metrics_of_a_run_do_not_differ_only_in_capital_letters():
    config = RunConfig(metrics=["rouge_l", "Rouge_L"], variants={"Rouge_L": "rouge_l"})
    with pytest.raises(ConfigError, match="'rouge_l' and 'Rouge_L' differ only in capital letters"):
        make_plan(config)


def test_a_variant_with_another_name_is_planned():
    plan = make_plan(RunConfig(metrics=["rouge_l", "other"], variants={"other": "rouge_l"}))
    assert plan.names == ["rouge_l", "other"]
