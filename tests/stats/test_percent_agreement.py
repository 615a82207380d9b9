"""Percent agreement."""

from __future__ import annotations

import pytest

from multimodal_eval.stats.agreement import percent_agreement


def test_percent_agreement_by_hand():
    # Pairs of ratings: unit 1 has 3, of which 1 is equal (a, b); unit 2 has 1, equal; unit 3 has none.
    agreement = percent_agreement([["x", "x", "y"], ["x", "x", None], [None, None, "y"]])
    assert agreement.overall.value == pytest.approx(2 / 4)
    # The first annotator is in 3 of the pairs, 2 of them equal; the third in 2, none equal.
    assert [annotator.value for annotator in agreement.annotators] == pytest.approx([2 / 3, 2 / 3, 0])
