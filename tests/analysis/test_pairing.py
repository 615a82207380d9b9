"""Rows of the same samples in several runs, and how many of them may be unscored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from multimodal_eval.analysis.pairing import require_enough_scored, rows_by_id
from multimodal_eval.core.errors import ConfigError, InputError


def ids(*names):
    return pa.chunked_array([pa.array(names, pa.string())])


def test_rows_are_in_the_order_of_the_first_run():
    first, second, third = rows_by_id([ids("a", "b", "c"), ids("c", "a", "b"), ids("a", "b", "c")], ["x", "y", "z"])
    assert first.tolist() == third.tolist() == [0, 1, 2]
    assert second.tolist() == [1, 2, 0]


def test_samples_of_one_run_only_are_listed_in_order():
    with pytest.raises(InputError) as refusal:
        rows_by_id([ids("b", "c", "a", "d"), ids("b", "f", "e")], ["x", "y"])
    assert refusal.value.total == 5
    assert [(each.code, each.id, each.message) for each in refusal.value.problems] == [
        ("UNMATCHED", "a", "the sample is not in the run y"),
        ("UNMATCHED", "c", "the sample is not in the run y"),
        ("UNMATCHED", "d", "the sample is not in the run y"),
        ("UNMATCHED", "e", "the sample is not in the run x"),
        ("UNMATCHED", "f", "the sample is not in the run x"),
    ]


def scored(unscored, total):
    return np.arange(total) >= unscored


def test_one_sample_of_a_hundred_may_be_unscored():
    require_enough_scored("bleu", scored(0, 100), allow_partial=False)
    require_enough_scored("bleu", scored(1, 100), allow_partial=False)
    with pytest.raises(ConfigError, match="bleu: 2 of 100 samples are unscored in at least one run, more than 1%"):
        require_enough_scored("bleu", scored(2, 100), allow_partial=False)
    require_enough_scored("bleu", scored(99, 100), allow_partial=True)
    with pytest.raises(ConfigError, match="bleu: no sample is scored in all runs"):
        require_enough_scored("bleu", scored(100, 100), allow_partial=True)
