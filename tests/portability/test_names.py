"""Names that become files: on Windows some are devices, and on Windows and macOS capital letters do not count."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import check_name

ANSWER = Sample("1", references=["a dog"], generated_answer="a dog")


@pytest.mark.parametrize("name", ["con", "NUL", "Aux", "prn", "com1", "LPT9"])
def test_a_metric_is_not_named_like_a_device(name):
    with pytest.raises(ConfigError, match="nor a device of Windows such as con or nul"):
        check_name(name)


@pytest.mark.parametrize("name", ["console", "null", "com", "com10", "aux_score", "consensus"])
def test_a_name_may_contain_one(name):
    check_name(name)


def test_two_metrics_of_a_run_do_not_differ_only_in_capital_letters():
    with pytest.raises(ConfigError, match="'rouge_l' and 'Rouge_L' differ only in capital letters"):
        evaluate([ANSWER], metrics=["rouge_l", "Rouge_L"], variants={"Rouge_L": "rouge_l"}, progress=False)


def test_a_variant_with_another_name_is_scored():
    run = evaluate([ANSWER], metrics=["rouge_l", "other"], variants={"other": "rouge_l"}, progress=False)
    assert {name: entry.value for name, entry in run.entries.items()} == {"rouge_l": 1.0, "other": 1.0}
