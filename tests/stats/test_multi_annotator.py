from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, f1_score

from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.stats.intervals import standard_error
from multimodal_eval.stats.macro_f1 import macro_f1_gradient, macro_f1_of_sums, row_statistics
from multimodal_eval.stats.multi_annotator import (
    any_match_golds,
    human_ceiling,
    majority_codes,
    score_any_match,
    score_distributions,
    score_majority,
    score_soft,
    score_strict,
)
from tests.reference import naive_multi_annotator as naive

# The alphabetical order differs from that of the codes: dodge < explain < general < ignore.
LABELS = ("explain", "dodge", "ignore", "general")
E, D, I, G = range(4)  # noqa: E741 - initials
NONE = -1


def test_worked_out_by_hand():
    # row      p   G          effective gold
    # 0        E   {E, D}     E (hit)
    # 1        I   {E, G}     E, the alphabetically first of explain and general
    # 2        G   {}         skipped
    # 3        D   {I}        I
    predicted = [E, I, G, D]
    annotations = [[E, D, E], [G, NONE, E], [NONE, NONE, NONE], [I, I, NONE]]
    first = score_any_match(predicted, annotations, LABELS)
    assert (first.n_scored, first.n_skipped) == (3, 1)
    assert first.right.tolist() == [True, False, False]
    # explain: TP 1, FN 1: F = 2/3. The three others have no hit: macro F1 = 1/6.
    assert first.f1.tolist() == pytest.approx([2 / 3, 0, 0, 0])
    assert first.macro_f1.value == pytest.approx(1 / 6)
    assert first.precision.tolist() == [1, 0, 0, 0]
    assert first.recall.tolist() == [0.5, 0, 0, 0]
    assert first.gold.tolist() == [2, 0, 1, 0]
    assert first.confusion.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    # charge all: row 1 is also a false negative for general, which has F = 0 anyway.
    charged_all = score_any_match(predicted, annotations, LABELS, charge="all")
    assert charged_all.gold.tolist() == [2, 0, 1, 1]
    assert charged_all.confusion.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    # majority vote: E; explain and general tie, explain is first; none; I
    assert majority_codes(annotations, LABELS).tolist() == [E, E, NONE, I]
    # soft: 2/3, 0, skipped, 0
    soft = score_soft(predicted, annotations, LABELS)
    assert soft.values.tolist() == pytest.approx([2 / 3, 0, 0])
    assert soft.n_skipped == 1
    assert soft.mean.value == pytest.approx(2 / 9)


def test_charging_every_gold_label_lowers_the_score():
    # Hits for explain and dodge, and one miss whose annotators chose explain and dodge:
    # first: dodge has FN 1: F = 2/3, explain 1. all: both have FN 1: 2/3 and 2/3.
    annotations = [[E, E], [D, D], [E, D]]
    first, charged_all = (score_any_match([E, D, I], annotations, LABELS, charge=charge) for charge in ("first", "all"))
    assert first.macro_f1.value == pytest.approx((1 + 2 / 3) / 4)
    assert charged_all.macro_f1.value == pytest.approx((2 / 3 + 2 / 3) / 4)


def test_two_constant_predictors_can_both_be_right():
    annotations = [[E, D]] * 5
    for constant in (E, D):
        assert score_any_match([constant] * 5, annotations, LABELS).accuracy.value == 1.0


def test_any_match_macro_f1_can_be_lower_than_strict():
    # The miss in the fourth row is charged to explain, which is frequent, or to dodge, which occurs once.
    predicted, gold = [E, D, G, G, E], [E, D, G, E, E]
    annotations = [[E, NONE], [D, NONE], [G, NONE], [D, E], [E, NONE]]
    strict, any_match = score_strict(predicted, gold, LABELS), score_any_match(predicted, annotations, LABELS)
    assert any_match.accuracy.value == strict.accuracy.value
    # strict: E 2*2/(3+2), D 1, G 2/3; any-match: E 1, D 2/3, G 2/3.
    assert strict.macro_f1.value == pytest.approx((4 / 5 + 1 + 2 / 3) / 4)
    assert any_match.macro_f1.value == pytest.approx((1 + 2 / 3 + 2 / 3) / 4)
    assert any_match.macro_f1.value < strict.macro_f1.value


def test_a_prediction_outside_the_taxonomy_is_wrong_and_only_charges_the_gold_label():
    scores = score_any_match([NONE, E], [[E, D], [E, E]], LABELS)
    assert scores.right.tolist() == [False, True]
    assert scores.predicted.tolist() == [1, 0, 0, 0]
    assert scores.gold.tolist() == [1, 1, 0, 0]
    assert scores.confusion.sum() == 1


def test_a_human_ceiling_worked_out_by_hand():
    # Columns: A1 = E D, A2 = E E, A3 = - D. A1 against {A2}, {A2, A3}: both hits. A2: hit; E against {D}: miss.
    # A3: only row 1, D against {D, E}: hit.
    ceiling = human_ceiling([[E, E, NONE], [D, E, D]], LABELS)
    assert ceiling is not None
    first, second, third = ceiling.by_annotator
    assert first is not None
    assert first.accuracy.value == 1
    assert second is not None
    assert second.accuracy.value == 0.5
    assert third is not None
    assert (third.n_scored, third.n_skipped, third.accuracy.value) == (1, 1, 1)
    assert ceiling.accuracy.value == pytest.approx((1 + 0.5 + 1) / 3)
    # macro F1: E and D 1 of 4 labels: 1/2; E 2/3 and the rest 0: 1/6; D 1: 1/4
    assert ceiling.macro_f1.value == pytest.approx((1 / 2 + 1 / 6 + 1 / 4) / 3)
    assert human_ceiling([[E, NONE], [NONE, D]], LABELS) is None


def test_distributions_by_jensen_shannon():
    # As in test_jensen_shannon.py: p = (2/3, 1/3, 0), q = (.5, .25, .25) -> .3091967
    scores = score_distributions([[0.5, 0.25, 0.25], [1, 0, 0]], [[0, 0, 1], [NONE] * 3], ("a", "b", "c"))
    assert scores.values.tolist() == pytest.approx([0.3091967], abs=5e-8)
    assert scores.n_skipped == 1
    with pytest.raises(ConfigError, match="2 rows of 3 shares"):
        score_distributions([[1.0, 0, 0]], [[0], [0]], ("a", "b", "c"))


def cases(count, seed=0):
    """Random small problems: labels in any order, missing annotations, predictions outside the taxonomy."""
    draw = random.Random(seed)
    for _ in range(count):
        labels = draw.sample(["b", "a", "C", "d", "Ä", "e", "f"], draw.randint(1, 5))
        rows, people = draw.randint(1, 8), draw.randint(1, 4)
        outside = [*labels, ""]
        yield (
            tuple(labels),
            [draw.choice(outside) for _ in range(rows)],
            [draw.choice(outside) for _ in range(rows)],
            [[draw.choice(outside) for _ in range(people)] for _ in range(rows)],
        )


def encoded(texts, labels):
    return np.array([labels.index(text) if text in labels else NONE for text in texts], dtype=np.int64)


SIZES = pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])


@SIZES
def test_random_cases_equal_the_naive_implementation(count):
    compared = 0
    for number, (labels, predicted, gold, annotators) in enumerate(cases(count)):
        predictions = encoded(predicted, labels)
        annotations = np.array([encoded(row, labels) for row in annotators])
        vote = [naive.majority(row, labels) for row in annotators]
        assert [*labels, ""][majority_codes(annotations, labels)[0]] == vote[0]
        for scores, rows in (
            (_or_none(score_strict, predictions, encoded(gold, labels), labels), _single(predicted, gold)),
            (_or_none(score_majority, predictions, annotations, labels), _single(predicted, vote)),
            (
                _or_none(score_any_match, predictions, annotations, labels),
                naive.any_match_rows(predicted, annotators, labels),
            ),
            (
                _or_none(score_any_match, predictions, annotations, labels, charge="all"),
                naive.any_match_rows(predicted, annotators, labels, "all"),
            ),
        ):
            if not rows:
                assert scores is None
                continue
            compared += 1
            assert scores.n_scored == len(rows)
            assert abs(scores.macro_f1.value - naive.macro_f1(rows, labels)) < 1e-12
            assert abs(scores.accuracy.value - naive.accuracy(rows)) < 1e-12
            table = list(zip(scores.precision, scores.recall, scores.f1, scores.gold, strict=True))
            for ours, theirs in zip(table, naive.per_class(rows, labels).values(), strict=True):
                assert all(abs(x - float(y)) < 1e-12 for x, y in zip(ours, theirs, strict=True))
        shares = [naive.soft(prediction, row, labels) for prediction, row in zip(predicted, annotators, strict=True)]
        known = [float(share) for share in shares if share is not None]
        soft = _or_none(score_soft, predictions, annotations, labels)
        assert (soft is None) == (not known)
        if soft is not None:
            assert soft.values.tolist() == known
        if number % 5:  # scoring every annotator takes as long as everything else
            continue
        ceiling = human_ceiling(annotations, labels)
        expected = naive.ceiling(annotators, labels)
        assert (ceiling is None) == (expected is None)
        if ceiling is not None:
            assert abs(ceiling.macro_f1.value - expected) < 1e-12
    assert compared > 3.5 * count


def _single(predicted, gold):
    return [(prediction, [label]) for prediction, label in zip(predicted, gold, strict=True) if label]


def _or_none(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except InputError:
        return None


@SIZES
def test_random_cases_equal_scikit_learn(count):
    """A call of scikit-learn is slow, so all cases are combined into one multi-label problem with separate classes.

    Per case: labels= the taxonomy, zero_division=0. The classes of a case are separate columns. The rows of all other
    cases are 0 there in gold and prediction, and do not change its counts.
    """
    truth, guess, ours, owner = [], [], [], []
    offset = 0
    for labels, predicted, _, annotators in cases(count, seed=1):
        predictions = encoded(predicted, labels)
        annotations = np.array([encoded(row, labels) for row in annotators])
        for charge in ("first", "all"):
            rows = naive.any_match_rows(predicted, annotators, labels, charge)
            if not rows:
                continue
            ours.append(score_any_match(predictions, annotations, labels, charge=charge).macro_f1.value)
            owner.append((offset, len(labels)))
            truth += [[offset + labels.index(label) for label in golds] for _, golds in rows]
            guess += [[offset + labels.index(label)] if label in labels else [] for label, _ in rows]
            offset += len(labels)
    assert len(ours) > 1.8 * count
    scores = f1_score(_indicator(truth, offset), _indicator(guess, offset), average=None, zero_division=0)
    theirs = [scores[start : start + size].mean() for start, size in owner]
    assert ours == pytest.approx(theirs, abs=1e-12)


def _indicator(rows, width):
    from scipy.sparse import csr_matrix

    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([column for row in rows for column in row])
    return csr_matrix((np.ones(len(columns), dtype=np.int64), columns, starts), shape=(len(rows), width))


codes = st.integers(-1, 3)
tables = st.integers(1, 4).flatmap(
    lambda people: st.lists(
        st.tuples(codes, codes, st.lists(codes, min_size=people, max_size=people)), min_size=1, max_size=30
    )
)


def columns(rows):
    predicted, gold, annotations = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return predicted, gold, annotations


@given(tables)
def test_single_label_scores_equal_scikit_learn(rows):
    predicted, gold, _ = columns(rows)
    assume((gold >= 0).any())
    scores = score_strict(predicted, gold, LABELS)
    kept = gold >= 0
    theirs = f1_score(gold[kept], predicted[kept], labels=range(4), average="macro", zero_division=0)
    assert scores.macro_f1.value == pytest.approx(theirs, abs=1e-12)
    known = kept & (predicted >= 0)
    if known.any():
        assert scores.confusion.tolist() == confusion_matrix(gold[known], predicted[known], labels=range(4)).tolist()
    naive_rows = [
        (prediction, [label]) for prediction, label in zip(predicted.tolist(), gold.tolist(), strict=True) if label >= 0
    ]
    assert scores.macro_f1.influence == pytest.approx(naive.influence(naive_rows, range(4)), abs=1e-12)


@given(tables)
def test_any_match_accuracy_is_not_below_strict_accuracy_if_an_annotator_gave_the_gold_label(rows):
    predicted, gold, annotations = columns(rows)
    gold = np.where(gold >= 0, gold, 0)
    annotations = np.column_stack([annotations, gold])
    strict, any_match = score_strict(predicted, gold, LABELS), score_any_match(predicted, annotations, LABELS)
    assert any_match.accuracy.value >= strict.accuracy.value
    assert (any_match.right >= strict.right).all()


@given(tables, st.randoms())
def test_permuting_annotator_columns_changes_nothing(rows, chance):
    predicted, _, annotations = columns(rows)
    assume((annotations >= 0).any())
    order = list(range(annotations.shape[1]))
    chance.shuffle(order)
    other = annotations[:, order]
    for charge in ("first", "all"):
        before, after = (score_any_match(predicted, table, LABELS, charge=charge) for table in (annotations, other))
        assert before.macro_f1.value == after.macro_f1.value
        assert before.confusion.tolist() == after.confusion.tolist()
    assert majority_codes(annotations, LABELS).tolist() == majority_codes(other, LABELS).tolist()
    assert score_soft(predicted, annotations, LABELS).values.tolist() == pytest.approx(
        score_soft(predicted, other, LABELS).values.tolist()
    )
    ceiling, again = human_ceiling(annotations, LABELS), human_ceiling(other, LABELS)
    assert (ceiling is None) == (again is None)
    if ceiling is not None and again is not None:
        assert ceiling.macro_f1.value == again.macro_f1.value


def by_label(scores):
    return dict(zip(scores.labels, scores.f1.tolist(), strict=True))


@given(tables, st.permutations(range(4)))
def test_the_order_of_the_codes_changes_nothing(rows, order):
    """The same labels with different codes; the alphabetical order depends only on the labels."""
    predicted, _, annotations = columns(rows)
    assume((annotations >= 0).any())
    place = np.array([*np.argsort(order), -1])
    shuffled = tuple(LABELS[code] for code in order)
    for score in (score_any_match, score_majority):
        before = score(predicted, annotations, LABELS)
        assert by_label(before) == by_label(score(place[predicted], place[annotations], shuffled))


@given(tables, st.lists(st.text(min_size=1, max_size=3), min_size=4, max_size=4, unique=True))
def test_relabelling_that_keeps_the_alphabetical_order_is_equivariant(rows, names):
    predicted, _, annotations = columns(rows)
    assume((annotations >= 0).any())
    renamed = tuple(sorted(names)[sorted(LABELS).index(label)] for label in LABELS)
    for score in (score_any_match, score_majority):
        assert score(predicted, annotations, LABELS).f1.tolist() == score(predicted, annotations, renamed).f1.tolist()


@given(tables, st.lists(st.text(min_size=1, max_size=3), min_size=4, max_size=4, unique=True))
def test_any_relabelling_is_equivariant_for_strict_soft_and_charge_all(rows, names):
    predicted, gold, annotations = columns(rows)
    assume((annotations >= 0).any() and (gold >= 0).any())
    renamed = tuple(names)
    assert score_strict(predicted, gold, LABELS).f1.tolist() == score_strict(predicted, gold, renamed).f1.tolist()
    before, after = (score_any_match(predicted, annotations, labels, charge="all") for labels in (LABELS, renamed))
    assert before.f1.tolist() == after.f1.tolist()
    before, after = (score_soft(predicted, annotations, labels).values.tolist() for labels in (LABELS, renamed))
    assert before == after


@given(tables, st.sampled_from(["first", "all"]))
def test_influence_values_equal_those_of_the_summed_statistics(rows, charge):
    """The statistics that a run stores per row give the same score and the same influence values."""
    from multimodal_eval.core.score import Rows
    from multimodal_eval.stats.estimates import function_of_sums

    predicted, _, annotations = columns(rows)
    assume((annotations >= 0).any())
    scores = score_any_match(predicted, annotations, LABELS, charge=charge)
    golds = any_match_golds(predicted, annotations, LABELS, charge=charge).tolist()
    counted = [
        (prediction, [code for code in row if code >= 0])
        for prediction, row in zip(predicted.tolist(), golds, strict=True)
    ]
    stats = np.array([row_statistics(prediction, row, 4) for prediction, row in counted if row])
    estimate = function_of_sums(Rows(scores.right.astype(float), stats), macro_f1_of_sums, macro_f1_gradient)
    assert estimate.value == pytest.approx(scores.macro_f1.value, abs=1e-12)
    assert estimate.influence == pytest.approx(scores.macro_f1.influence, abs=1e-9)
    assert scores.macro_f1.influence.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("charge", ["first", "all"])
def test_the_standard_error_matches_repeated_draws(charge):
    chance = np.random.default_rng(0)

    def drawn(rows):
        truth = chance.integers(0, 4, rows)
        noisy = [np.where(chance.random(rows) < 0.7, truth, chance.integers(0, 4, rows)) for _ in range(4)]
        return score_any_match(noisy[0], np.column_stack(noisy[1:]), LABELS, charge=charge).macro_f1

    values = [drawn(400).value for _ in range(600)]
    estimate = drawn(400)
    error = standard_error(estimate.influence, corrected=estimate.corrected)
    # The standard deviation of 600 draws is accurate to 3 %.
    assert error == pytest.approx(np.std(values), rel=0.15)


def test_published_vector_of_macro_f1():
    labels = ("0", "1", "2")
    gold, predicted = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2], [0, 0, 1, 1, 1, 2, 2, 2, 0, 2]
    scores = score_strict(predicted, gold, labels)
    assert scores.macro_f1.value == pytest.approx(0.6944444, abs=5e-8)
    assert scores.macro_f1_interval().stderr == pytest.approx(0.1469771, abs=5e-8)
    clusters = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    assert scores.macro_f1_interval(clusters).method == "no interval: 3 classes have fewer than 5 gold examples"
    assert scores.few_gold == ["0", "1", "2"]


def test_invalid_input():
    with pytest.raises(InputError, match="predicted has 1, annotations has 2"):
        score_any_match([0], [[0], [1]], LABELS)
    with pytest.raises(InputError, match="NOTHING_TO_SCORE"):
        score_any_match([0], [[NONE]], LABELS)
    with pytest.raises(InputError, match="NOTHING_TO_SCORE"):
        score_strict([0], [NONE], LABELS)
    with pytest.raises(ConfigError, match="the code 4"):
        score_strict([4], [0], LABELS)
    with pytest.raises(ConfigError, match="first or all"):
        score_any_match([0], [[0]], LABELS, charge="some")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="integer codes"):
        score_soft([0.5], [[0]], LABELS)
    with pytest.raises(ConfigError, match="each once"):
        score_strict([0], [0], ("a", "a"))
