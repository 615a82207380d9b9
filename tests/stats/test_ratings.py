"""Errors for ratings that cannot be used."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.agreement import krippendorff_alpha


@pytest.mark.parametrize(
    ("ratings", "level", "message"),
    [
        ([["a", "b"]], "interval", "needs numbers. Got 'a'"),
        ([["a", "b"]], "ordinal", "need an order"),
        ([[1, -2]], "ratio", "non-negative numbers. Got -2"),
        ([[1, 2]], "nominl", "Did you mean 'nominal'?"),
        ([[1, np.inf]], "interval", "infinity"),
        ([1, 2], "nominal", "units x annotators"),
        (np.array([["a", 1.5]], dtype=object), "nominal", "mix strings and other values"),
        (np.array([[b"a", b"b"]], dtype=object), "nominal", "a rating must be a number or a string"),
        (np.arange(6000.0).reshape(-1, 2), "ratio", "up to 5,000 different numbers"),
    ],
)
def test_ratings_that_cannot_be_used(ratings, level, message):
    with pytest.raises(ConfigError, match=message):
        krippendorff_alpha(ratings, level)


def test_a_label_outside_the_order_is_refused():
    with pytest.raises(ConfigError, match="Did you mean 'high'"):
        krippendorff_alpha([["low", "hgih"]], "ordinal", order=["low", "high"])
    with pytest.raises(ConfigError, match="twice"):
        krippendorff_alpha([["low", "high"]], "ordinal", order=["low", "high", "low"])
