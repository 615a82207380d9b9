"""Bayesian bootstrap intervals of agreement values."""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.agreement import LEVELS, krippendorff_alpha, pairwise_kappas, percent_agreement
from tests.stats.rated_tables import DOCSTRING, alpha, nan


def test_the_interval_is_close_to_the_bootstrap_over_units():
    random = np.random.default_rng(0)
    truth = random.integers(3, size=120)
    ratings = np.where(random.random((120, 3)) < 0.7, truth[:, None], random.integers(3, size=(120, 3)))
    agreement = krippendorff_alpha(ratings, resamples=4000)
    draws = [alpha(ratings[random.integers(120, size=120)]) for _ in range(1500)]
    assert agreement.low == pytest.approx(np.quantile(draws, 0.025), abs=0.025)
    assert agreement.high == pytest.approx(np.quantile(draws, 0.975), abs=0.025)
    assert agreement.stderr == pytest.approx(np.std(draws), rel=0.1)
    assert agreement.method == "95% Bayesian bootstrap, 4,000 resamples of 120 units"


def test_the_standard_error_is_the_deviation_of_the_resamples():
    # Two resamples a and b: their deviation with n - 1 is |a - b| / sqrt(2); the percentiles are near a and b.
    agreement = percent_agreement([[0, 0], [0, 1], [1, 1], [1, 0], [0, 0]], resamples=2, seed=2).overall
    assert agreement.low < agreement.high
    assert agreement.stderr == pytest.approx((agreement.high - agreement.low) / 0.95 / 2**0.5)


def test_groups_are_drawn_whole():
    random = np.random.default_rng(1)
    # Ten copies of each of 20 units: as 200 units they seem ten times as informative as they are.
    once = np.where(random.random((20, 2)) < 0.7, random.integers(2, size=(20, 1)), random.integers(2, size=(20, 2)))
    copied, groups = np.repeat(once, 10, axis=0), np.repeat(np.arange(20), 10)
    grouped = krippendorff_alpha(copied, groups=groups, resamples=4000)
    assert grouped.method == "95% Bayesian bootstrap, 4,000 resamples of 20 groups"
    assert grouped.stderr == pytest.approx(krippendorff_alpha(once, resamples=4000).stderr, rel=0.1)
    assert grouped.stderr > 2 * krippendorff_alpha(copied).stderr
    alone = krippendorff_alpha(copied, groups=np.arange(200), resamples=4000)
    assert alone.stderr == pytest.approx(krippendorff_alpha(copied, resamples=4000).stderr, rel=0.1)


def test_a_large_group_is_drawn_as_often_as_a_small_one():
    random = np.random.default_rng(6)
    groups = np.repeat(np.arange(12), [1] * 6 + [12] * 6)
    agreeing = np.repeat(random.random(12) < 0.5, np.bincount(groups))
    first = random.integers(2, size=len(groups))
    ratings = np.stack([first, np.where(agreeing, first, random.integers(2, size=len(groups)))], axis=1)
    equal = ratings[:, 0] == ratings[:, 1]
    draws = []
    for _ in range(2000):
        drawn = random.integers(12, size=12)
        draws.append(np.mean(np.concatenate([equal[groups == group] for group in drawn])))
    agreement = percent_agreement(ratings, groups=groups, resamples=4000).overall
    assert agreement.stderr == pytest.approx(np.std(draws), rel=0.2)  # smaller: pseudo-units are drawn, too


def test_the_bootstrap_depends_on_the_seed_but_not_on_the_block_size(monkeypatch):
    first = krippendorff_alpha(DOCSTRING, "ordinal", seed=5)
    monkeypatch.setattr("multimodal_eval.stats.resampling._MAX_CELLS", 50)
    assert krippendorff_alpha(DOCSTRING, "ordinal", seed=5) == first
    assert krippendorff_alpha(DOCSTRING, "ordinal", seed=6) != first


def test_without_resamples_or_units_there_is_no_interval():
    one_unit = krippendorff_alpha([[1, 2]])
    assert (one_unit.value, one_unit.low) == (0.0, None)
    assert krippendorff_alpha([[1, 2]], "interval").method == "no interval: 1 unit"
    assert krippendorff_alpha(DOCSTRING, resamples=0).method == "no interval"
    one_group = krippendorff_alpha(DOCSTRING, groups=np.zeros(15, dtype=np.int64))
    assert (one_group.low, one_group.method) == (None, "no interval: 1 group")
    with pytest.raises(ConfigError, match="one group per unit"):
        krippendorff_alpha(DOCSTRING, groups=np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("level", LEVELS[:2])
def test_a_rare_label_leaves_no_interval(level):
    agreement = krippendorff_alpha([[0.1] * 3] * 29 + [[0.3] * 3], level)
    assert (agreement.value, agreement.low) == (1.0, None)
    assert agreement.method == "no interval: only 3 of 90 ratings differ from the most frequent label"


def test_agreement_on_every_unit_has_an_interval_with_a_width():
    # 20 units without a disagreement: the share of disagreements may still be about 3.84 / 23.84 = .16 (Wilson)
    ratings = np.repeat(np.array([0, 1] * 10)[:, None], 2, axis=1)
    kappa, share = pairwise_kappas(ratings).mean, percent_agreement(ratings).overall
    assert (kappa.value, kappa.high, share.high) == (1.0, 1.0, 1.0)
    assert 0.65 < kappa.low < 0.85
    assert 0.82 < share.low < 0.92


def test_a_pair_with_few_common_units_has_no_interval():
    ratings = [[1, 1, nan], [1, 2, nan]] * 14 + [[1, nan, 1], [2, nan, 2]]
    kappas = pairwise_kappas(ratings)
    assert (kappas.pairs[0, 2].value, kappas.pairs[0, 2].low) == (1.0, None)
    assert kappas.pairs[0, 1].low is not None
