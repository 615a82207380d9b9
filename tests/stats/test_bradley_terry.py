"""Ratings from comparisons: worked examples, choix and SciPy as oracles, and properties."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from multimodal_eval.stats import bradley_terry as module
from multimodal_eval.stats.bradley_terry import ELO, Comparisons, Ties, UndeterminedError, bradley_terry

Vector = NDArray[np.float64]
Row = tuple[int, int, float]


def comparisons(rows: list[Row], systems: int, clusters: list[int] | None = None) -> Comparisons:
    first, second, share = zip(*rows, strict=True)
    codes = None if clusters is None else np.array(clusters)
    return Comparisons(np.array(first), np.array(second), np.array(share, float), systems, clusters=codes)


def random_comparisons(seed: int, systems: int, count: int, clusters: int, tied: float = 0.2) -> Comparisons:
    rng = np.random.default_rng(seed)
    ratings = rng.normal(0, 1, systems)
    first = rng.integers(0, systems, count)
    second = (first + rng.integers(1, systems, count)) % systems
    share = (rng.random(count) < 1 / (1 + np.exp(ratings[second] - ratings[first]))).astype(float)
    share[rng.random(count) < tied] = 0.5
    return Comparisons(first, second, share, systems, clusters=rng.integers(0, clusters, count))


# Every pair has wins on both sides, so that the ratings exist in both models.
balanced = [(i, j, share) for i in range(4) for j in range(i) for share in (0.0, 0.5, 1.0)]
rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0])).map(
        lambda row: (row[0], (row[0] + row[1]) % 4, row[2])
    ),
    max_size=40,
).map(lambda drawn: balanced + drawn)
kinds: list[Ties] = ["half", "davidson"]


def test_three_wins_and_a_loss_worked_out_by_hand():
    # P = 3/4, so the difference is ln 3. The residuals are 1/4 (three times) and -3/4: their squares sum to 3/4, the
    # information is 4 · 3/4 · 1/4 = 3/4, and the variance 3/4 / (3/4)^2 · 4/3 = 16/9.
    ratings = bradley_terry(comparisons([(0, 1, 1), (1, 0, 0), (0, 1, 1), (1, 0, 1)], 2))
    assert ratings.difference(0, 1).value == pytest.approx(log(3), abs=1e-12)
    assert ratings.difference(0, 1).stderr == pytest.approx(4 / 3, abs=1e-12)
    assert ratings.values.tolist() == pytest.approx([log(3) / 2, -log(3) / 2])
    assert ratings.interval(0).stderr == pytest.approx(2 / 3)
    assert ratings.tie is None


def test_a_tie_is_half_a_win_of_each():
    # 2 wins, 2 ties and no loss: 3 points of 4.
    ratings = bradley_terry(comparisons([(0, 1, 1), (0, 1, 1), (0, 1, 0.5), (1, 0, 0.5)], 2))
    assert ratings.difference(0, 1).value == pytest.approx(log(3))


def test_davidson_worked_out_by_hand():
    # With two systems the model is saturated: wins : losses = exp(difference), and ties^2 / (wins · losses) = nu^2.
    # 4 wins, 6 ties, 1 loss: difference ln 4, nu 6 / sqrt(4).
    ratings = bradley_terry(comparisons([(0, 1, 1)] * 4 + [(0, 1, 0.5)] * 6 + [(0, 1, 0)], 2), ties="davidson")
    assert ratings.difference(0, 1).value == pytest.approx(log(4), abs=1e-10)
    assert ratings.tie == pytest.approx(3, abs=1e-9)
    # A saturated model is as if the difference were log(wins / losses), with the variance 1/4 + 1/1 of a multinomial.
    assert ratings.difference(0, 1).stderr == pytest.approx(sqrt(1.25 * 11 / 10), abs=1e-9)


def test_davidson_without_ties_is_bradley_terry():
    rows: list[Row] = [(0, 1, 1), (1, 2, 1), (2, 0, 1), (0, 2, 1)]
    ratings = bradley_terry(comparisons(rows, 3), ties="davidson")
    assert ratings.tie == 0
    assert ratings.values.tolist() == bradley_terry(comparisons(rows, 3)).values.tolist()


def test_clusters_worked_out_by_hand():
    # Two samples. In the first, 0 wins three times; in the second, it loses once. U = 3/4 and -3/4, the sum of squares
    # 9/8, the information 3/4: variance 9/8 / (9/16) · 2 = 4.
    rows: list[Row] = [(0, 1, 1), (0, 1, 1), (0, 1, 1), (1, 0, 1)]
    ratings = bradley_terry(comparisons(rows, 2, [7, 7, 7, 3]))
    assert ratings.difference(0, 1).stderr == pytest.approx(2)
    assert ratings.units == 2


def test_one_cluster_has_no_interval():
    ratings = bradley_terry(comparisons([(0, 1, 1), (1, 0, 1)], 2, [5, 5]))
    assert ratings.interval(0).low is None
    assert ratings.p_values() == {(0, 1): None}
    assert ratings.rank_ranges() == [(1, 2), (1, 2)]


# choix 0.4.1: opt_pairwise(4, WINS, alpha=0, tol=1e-14) and ilsr_pairwise(4, WINS, alpha=0, tol=1e-14, max_iter=10000)
WINS = [(0, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (0, 3), (0, 2), (1, 3), (3, 2), (0, 3), (2, 0)]
CHOIX = [0.378613019486, 0.110188784491, 0.001282941907, -0.490084745884]


def test_equal_to_choix():
    ratings = bradley_terry(comparisons([(winner, loser, 1.0) for winner, loser in WINS], 4))
    assert ratings.values.tolist() == pytest.approx(CHOIX, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_choix_on_random_data(seed: int):
    choix = pytest.importorskip("choix")
    data = random_comparisons(seed, 12, 3000, 300)
    # A tie is a win of each: all other results are counted twice.
    pairs = list(zip(data.first.tolist(), data.second.tolist(), data.share.tolist(), strict=True))
    wins = [(i, j) if share > 0.5 else (j, i) for i, j, share in pairs if share != 0.5 for _ in range(2)]
    wins += [pair for i, j, share in pairs if share == 0.5 for pair in ((i, j), (j, i))]
    ratings = bradley_terry(data).values
    for expected in (
        choix.opt_pairwise(12, wins, alpha=0, tol=1e-12),
        choix.ilsr_pairwise(12, wins, alpha=0, tol=1e-12, max_iter=1000),
    ):
        assert np.abs(ratings - (expected - expected.mean())).max() < 1e-8


@pytest.mark.parametrize("ties", kinds)
def test_equal_to_the_optimum_of_scipy(ties: Ties):
    data = random_comparisons(4, 6, 400, 50)
    by_tie = ties == "davidson"

    def loss(point: Vector) -> float:
        half = (point[data.first] - point[data.second]) / 2
        top = np.logaddexp(half, -half)
        log_z = np.logaddexp(top, point[6]) if by_tie else top
        likelihood = data.share * (half - log_z) + (1 - data.share) * (-half - log_z)
        if by_tie:
            likelihood = np.where(data.share == 0.5, point[6] - log_z, likelihood)
        return -float(likelihood.sum())

    optimum = minimize(loss, np.zeros(7 if by_tie else 6), method="BFGS", options={"gtol": 1e-7}).x
    # BFGS stops at its numeric gradient's noise; the likelihood at our point must not be lower.
    ratings = bradley_terry(data, ties=ties)
    ours = np.append(ratings.values, log(ratings.tie or 1)) if by_tie else ratings.values
    assert loss(ours) <= loss(optimum) + 1e-9
    assert ours[:6] == pytest.approx(optimum[:6] - optimum[:6].mean(), abs=1e-5)
    # The derivative of the likelihood, written down once more, is zero: so near that the error is below 1e-8.
    step = 1e-4
    gradient = [(loss(ours + step * unit) - loss(ours - step * unit)) / (2 * step) for unit in np.eye(len(ours))]
    assert np.abs(gradient).max() < 1e-6


@pytest.mark.parametrize("clusters", [7, 60])
@pytest.mark.parametrize("ties", kinds)
def test_covariance_equal_to_the_gradients_one_by_one(ties: Ties, clusters: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_BLOCK", 5)  # clusters in memory together
    data = random_comparisons(9, 5, 300, clusters)
    ratings = bradley_terry(data, ties=ties)
    nu = ratings.tie or 0.0
    size = 5 + (ties == "davidson")
    information, gradients = np.zeros((size, size)), np.zeros((clusters, size))
    codes = data.clusters
    assert codes is not None
    for i, j, share, cluster in zip(data.first, data.second, data.share, codes, strict=True):
        half = (ratings.values[i] - ratings.values[j]) / 2
        chances = np.array([exp(half), exp(-half), nu])
        chances /= chances.sum()
        effects = np.zeros((3, size))  # of a win, a loss and a tie on the derivatives
        effects[0, [i, j]], effects[1, [i, j]] = [0.5, -0.5], [-0.5, 0.5]
        if ties == "davidson":
            effects[2, 5] = 1.0
        mean = chances @ effects
        information += (effects.T * chances) @ effects - np.outer(mean, mean)
        is_tie = ties == "davidson" and share == 0.5
        observed = effects[2] if is_tie else share * effects[0] + (1 - share) * effects[1]
        gradients[cluster] += observed - mean
    inverse = np.linalg.pinv(information)
    seen = len(np.unique(codes))
    expected = inverse @ gradients.T @ gradients @ inverse * seen / (seen - 1)
    assert ratings.covariance is not None
    assert np.abs(ratings.covariance - expected[:5, :5]).max() < 1e-9


@pytest.mark.parametrize("ties", kinds)
def test_every_comparison_its_own_cluster(ties: Ties):
    data = random_comparisons(2, 5, 200, 1)
    alone = Comparisons(data.first, data.second, data.share, 5, clusters=np.arange(200))
    free = Comparisons(data.first, data.second, data.share, 5)
    first, second = bradley_terry(alone, ties=ties).covariance, bradley_terry(free, ties=ties).covariance
    assert first is not None
    assert second is not None
    assert np.abs(first - second).max() < 1e-12


def test_groups_without_a_comparison_are_named():
    with pytest.raises(UndeterminedError, match="no comparison connects these groups: 0, 2; 1, 3") as caught:
        bradley_terry(comparisons([(0, 2, 1), (2, 0, 1), (1, 3, 0.5)], 4))
    assert (caught.value.reason, caught.value.groups) == ("unconnected", [[0, 2], [1, 3]])


def test_a_system_without_a_comparison_is_a_group():
    with pytest.raises(UndeterminedError, match="0, 1; 2"):
        bradley_terry(comparisons([(0, 1, 0.5)], 3))


def test_systems_that_never_lose_are_named():
    with pytest.raises(UndeterminedError, match="systems 1, 3 lost no point") as caught:
        bradley_terry(comparisons([(1, 3, 1), (3, 1, 1), (1, 0, 1), (2, 3, 0), (0, 2, 1)], 4))
    assert caught.value.reason == "one_sided"
    assert caught.value.groups[0] == [1, 3]


def test_no_comparison_at_all():
    nothing = np.zeros(0, np.int64)
    with pytest.raises(UndeterminedError):
        bradley_terry(Comparisons(nothing, nothing, np.zeros(0), 2))


@pytest.mark.parametrize("loses", [0, 1])
def test_davidson_needs_losses_beside_wins_and_ties(loses: int):
    # Without a loss, the likelihood increases with the tie parameter and the difference together.
    data = comparisons([(0, 1, 1)] * 5 + [(0, 1, 0.5)] * 5 + [(0, 1, 0)] * loses, 2)
    if loses:
        assert bradley_terry(data, ties="davidson").tie == pytest.approx(5 / sqrt(5))
        return
    with pytest.raises(UndeterminedError) as caught:
        bradley_terry(data, ties="davidson")
    assert caught.value.reason == "ties"


def test_only_ties():
    data = comparisons([(0, 1, 0.5), (1, 2, 0.5)], 3)
    assert bradley_terry(data).values.tolist() == pytest.approx([0, 0, 0])
    with pytest.raises(UndeterminedError):
        bradley_terry(data, ties="davidson")


def test_a_prior_makes_ratings_finite():
    # One win, and two comparisons of each system with a further one, half won: by symmetry r_0 = -r_1 = x, and the
    # derivative 1 - s(2x) + 1 - 2 s(x) is 0.
    x = bradley_terry(comparisons([(0, 1, 1)], 2), prior=2).values[0]
    assert 1 - 1 / (1 + exp(-2 * x)) + 1 - 2 / (1 + exp(-x)) == pytest.approx(0, abs=1e-10)
    with pytest.raises(ValueError, match="must be a number from 0"):
        bradley_terry(comparisons([(0, 1, 1)], 2), prior=-1)


def test_a_small_prior_changes_little():
    data = random_comparisons(1, 5, 500, 50)
    close = bradley_terry(data, prior=1e-6)
    plain = bradley_terry(data)
    assert np.abs(close.values - plain.values).max() < 1e-6
    assert close.covariance is not None
    assert plain.covariance is not None
    assert np.abs(close.covariance - plain.covariance).max() < 1e-6


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [0], [1.0]), "compared with itself"),
        (([0], [2], [1.0]), "from 0 to 1"),
        (([0], [1], [1.5]), "shares must be"),
        (([0], [1], [float("nan")]), "shares must be"),
        (([0, 1], [1, 0], [1.0]), "same length"),
    ],
)
def test_bad_comparisons(columns: tuple[list[int], list[int], list[float]], message: str):
    first, second, share = columns
    with pytest.raises(ValueError, match=message):
        Comparisons(np.array(first), np.array(second), np.array(share), 2)


def test_a_share_of_ties_that_cannot_be():
    game = np.array([0]), np.array([1]), np.array([0.9])
    Comparisons(*game, 2, tie=np.array([0.2]))
    with pytest.raises(ValueError, match="share of ties"):
        Comparisons(*game, 2, tie=np.array([0.3]))


def test_an_anchor_is_zero_and_keeps_differences():
    ratings = bradley_terry(random_comparisons(3, 5, 400, 40))
    anchored = ratings.anchored(2)
    assert anchored.interval(2).value == anchored.interval(2).stderr == 0
    assert anchored.interval(0).value == pytest.approx(ratings.difference(0, 2).value)
    assert anchored.interval(0).stderr == pytest.approx(ratings.difference(0, 2).stderr)


def test_elo_points():
    # 400 points are odds of 10 to 1.
    assert ELO * log(10) == pytest.approx(400)


def test_rank_ranges_by_clear_differences():
    # 0 beats 1 and 2 in 95 of 100 comparisons each; 1 and 2 are equal.
    rows: list[Row] = [(0, other, float(n >= 5)) for other in (1, 2) for n in range(100)]
    rows += [(1, 2, float(n % 2)) for n in range(100)]
    assert bradley_terry(comparisons(rows, 3)).rank_ranges() == [(1, 1), (2, 3), (2, 3)]


@settings(max_examples=60, deadline=None)
@given(rows, st.permutations(range(4)), st.sampled_from(kinds), st.randoms(use_true_random=False))
def test_numbers_order_and_sides_change_nothing(drawn, places, ties, random):
    clusters = [number % 9 for number in range(len(drawn))]
    plain = bradley_terry(comparisons(drawn, 4, clusters), ties=ties)
    order = list(range(len(drawn)))
    random.shuffle(order)
    changed = [drawn[number] for number in order]
    changed = [(j, i, 1 - share) if random.random() < 0.5 else (i, j, share) for i, j, share in changed]
    changed = [(places[i], places[j], share) for i, j, share in changed]
    moved = bradley_terry(comparisons(changed, 4, [clusters[number] for number in order]), ties=ties)
    assert plain.values.tolist() == pytest.approx([moved.values[place] for place in places], abs=1e-9)
    assert plain.covariance is not None
    assert moved.covariance is not None
    assert np.abs(plain.covariance - moved.covariance[np.ix_(places, places)]).max() < 1e-8
    assert plain.values.sum() == pytest.approx(0, abs=1e-9)
    assert np.abs(plain.covariance.sum(axis=0)).max() < 1e-8


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from(kinds))
def test_the_same_samples_again_halve_the_variance(drawn, ties):
    count = len(drawn)
    once = bradley_terry(comparisons(drawn, 4, list(range(count))), ties=ties)
    twice = bradley_terry(comparisons(drawn * 2, 4, list(range(2 * count))), ties=ties)
    within = bradley_terry(comparisons(drawn * 2, 4, list(range(count)) * 2), ties=ties)
    assert twice.values.tolist() == pytest.approx(once.values.tolist(), abs=1e-9)
    assert once.covariance is not None
    assert twice.covariance is not None
    assert within.covariance is not None
    halved = once.covariance * (count - 1) / count / 2 * 2 * count / (2 * count - 1)
    assert np.abs(twice.covariance - halved).max() < 1e-9
    # Repeated within the same clusters, they add nothing.
    assert np.abs(within.covariance - once.covariance).max() < 1e-9


@settings(max_examples=60, deadline=None)
@given(rows)
def test_a_further_win_never_lowers_the_winner(drawn):
    before = bradley_terry(comparisons(drawn, 4))
    after = bradley_terry(comparisons([*drawn, (2, 0, 1.0)], 4))
    assert after.values[2] - after.values[0] > before.values[2] - before.values[0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0])), max_size=10))
def test_ratings_exist_exactly_if_no_group_keeps_all_points(drawn):
    drawn = [row for row in drawn if row[0] != row[1]]
    assume(drawn)
    points = np.zeros((4, 4))
    for i, j, share in drawn:
        points[i, j] += share
        points[j, i] += 1 - share
    groups = [[i for i in range(4) if mask >> i & 1] for mask in range(1, 15)]
    rest = [[i for i in range(4) if i not in group] for group in groups]
    exists = all(points[np.ix_(group, others)].any() for group, others in zip(groups, rest, strict=True))
    try:
        ratings = bradley_terry(comparisons(drawn, 4))
    except UndeterminedError:
        assert not exists
    else:
        assert exists
        assert np.isfinite(ratings.values).all()
