"""No interval leaves the bounds of its score, and none is without width, whatever the values are."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import evaluate
from multimodal_eval.analysis.calibrated import calibrated, corrected_estimates
from multimodal_eval.analysis.human_labels import HumanLabels
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.core.scoring import aggregate_of, estimate_of
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from multimodal_eval.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha, percent_agreement
from multimodal_eval.stats.estimates import pass_at_k
from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.macro_f1 import classification_scores
from multimodal_eval.stats.multi_annotator import score_soft
from multimodal_eval.stats.paired import compare, standings
from multimodal_eval.stats.stratified import Strata, stratified_mean

KINDS = {
    "shares": st.sampled_from([0.0, 1.0]),
    "thirds": st.sampled_from([0.0, 1 / 3, 0.5, 1.0]),
    "near the upper bound": st.sampled_from([1.0, 1.0, 1.0, 1.0, 0.0, 0.3]),
    "any": st.floats(0, 1),
    "equal": st.just(0.25),
    "equal, but for rounding": st.just(0.35),
}


@st.composite
def scores(draw, least=1):
    count = draw(st.integers(least, 25))
    values = np.array(draw(st.lists(draw(st.sampled_from(list(KINDS.values()))), min_size=count, max_size=count)))
    clusters = None
    if draw(st.booleans()):
        clusters = np.array(draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)))
    return values, clusters


def check(figure, low=0.0, high=1.0, *, may_be_without_width=False):
    """The interval is within the bounds, around the value, and has a width; or there is none, with a reason."""
    if figure.low is None or figure.high is None:
        assert figure.low is None
        assert figure.high is None
        assert figure.method.startswith("no interval"), figure
        return
    slack = 1e-9 * max(1.0, abs(figure.value))
    assert low <= figure.low <= figure.value + slack, figure
    assert figure.value - slack <= figure.high <= high, figure
    assert figure.low < figure.high or may_be_without_width, figure


def bounded(values, low=0.0, high=1.0):
    return replace(mean_estimate(Rows(values)), bounds=(low, high))


@given(scores())
def test_means_of_bounded_scores(drawn):
    values, clusters = drawn
    check(interval(bounded(values), clusters, values=values))
    check(interval(bounded(100 * values, 0, 100), clusters, values=100 * values), 0, 100)


@given(scores(least=4), st.data())
def test_weighted_sums_over_strata(drawn, data):
    values, _ = drawn
    codes = np.arange(len(values)) % 2
    weight = data.draw(st.floats(0.05, 0.95))
    estimate = stratified_mean(values, None, Strata(codes, ("a", "b"), (weight, 1 - weight)))
    check(interval(replace(estimate, bounds=(0.0, 1.0))))


@settings(max_examples=60)
@given(scores(least=2), st.data())
def test_differences_of_two_and_of_many(drawn, data):
    values, clusters = drawn
    others = [np.array(data.draw(st.permutations(values.tolist()))) for _ in range(2)]
    first, *rest = (bounded(each) for each in (values, *others))
    (result,) = compare([first], [rest[0]], clusters, rounds=200)
    check(result.difference, -1, 1)
    for comparison in standings([first, *rest], clusters, rounds=200).comparisons.values():
        check(comparison.difference, -1, 1)
        if comparison.difference.low is not None and comparison.p_value is not None:
            excludes = not comparison.difference.low <= 0 <= comparison.difference.high
            assert excludes == (comparison.p_value < 0.05)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=60))
def test_macro_f1_and_soft_scores(rows):
    gold, predicted = (np.array(column) for column in zip(*rows, strict=True))
    result = classification_scores(tuple("abcd"), np.ones(len(gold), np.bool_), predicted, gold[:, None])
    check(result.macro_f1_interval())
    check(result.macro_f1_interval(np.arange(len(gold)) // 2))
    check(result.accuracy_interval())
    soft = score_soft(predicted, np.stack([gold, (gold + 1) % 4], axis=1), tuple("abcd"))
    check(soft.interval())


@settings(max_examples=60)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=30), st.booleans())
def test_agreement(rows, is_grouped):
    ratings = np.array(rows)
    groups = np.arange(len(rows)) // 2 if is_grouped else None
    plan = {"groups": groups, "resamples": 200}
    figures = [krippendorff_alpha(ratings, level, **plan) for level in ("nominal", "ordinal", "interval")]
    figures += [fleiss_kappa(ratings, **plan), cohen_kappa(ratings[:, 0], ratings[:, 1], **plan)]
    figures.append(percent_agreement(ratings, **plan).overall)
    for figure in figures:
        if figure.value is not None:
            check(figure, -np.inf, 1.0)


@given(st.integers(1, 12), st.integers(1, 4), st.data())
def test_pass_at_k(samples, epochs, data):
    values = np.array(data.draw(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=epochs, max_size=epochs),
                                         min_size=samples, max_size=samples)))  # fmt: skip
    for k in range(1, epochs + 1):
        chances = pass_at_k(values, k)
        check(interval(bounded(chances), values=chances))


@given(scores(least=3), st.data())
def test_scores_and_differences_that_labels_correct(drawn, data):
    judge, clusters = drawn
    kind = data.draw(st.sampled_from(list(KINDS.values())))
    human = np.array(data.draw(st.lists(kind, min_size=len(judge), max_size=len(judge))))
    labelled = np.array(data.draw(st.lists(st.booleans(), min_size=len(judge), max_size=len(judge))))
    for of_file in (False, True):
        ratings = np.where(labelled, human, np.nan)[:, None]
        labels = HumanLabels("human", ratings, None, "digest", of_file, (0.0, 1.0))
        figure = calibrated(judge, labels, clusters)
        if figure.value is not None:
            check(figure, may_be_without_width=of_file and bool(labelled.all()))  # the mean is known then
        estimates = corrected_estimates([judge, judge[::-1]], [labels, labels], clusters)
        if estimates is not None:
            (compared,) = compare(estimates[:1], estimates[1:], clusters, rounds=99)
            check(compared.difference, -1.0, 1.0)
            assert compared.p_value is not None
            if compared.difference.low is not None:
                assert (compared.p_value < 0.05) != (compared.difference.low <= 0 <= compared.difference.high)


def test_every_metric_that_is_a_mean_within_bounds():
    random = np.random.default_rng(1)
    tried = 0
    for metric in map(resolve, list_available()):
        low, high = metric.bounds
        if low is None or high is None or not hasattr(aggregate_of(metric), "bounds"):
            continue
        for shares in ([1.0], [0.0], [0.0, 1.0], [0.97, 1.0], random.random(9)):
            values = low + (high - low) * np.resize(np.array(shares, np.float64), 23)
            check(interval(estimate_of(metric, Rows(values)), values=values), low, high)
        tried += 1
    assert tried > 20


WORDS = "a red dog runs on the beach two cats sit no yes 3".split()
OF_TEXTS = {"generated_answer", "references"}


@pytest.mark.parametrize("seed", range(6))
def test_every_metric_of_texts(seed):
    """Parts and slices too, with and without groups, for answers of any quality."""
    random = Random(seed)
    rows = []
    for number in range(random.randint(3, 9)):
        references = [" ".join(random.choices(WORDS, k=random.randint(1, 6))) for _ in range(random.randint(1, 3))]
        answer = references[0] if random.random() < seed % 3 / 2 else " ".join(random.choices(WORDS, k=3))
        rows.append({"id": str(number), "references": references, "generated_answer": answer, "kind": "ab"[number % 2]})
        rows[-1] |= {"perplexity": 1 + random.expovariate(1), "group": str(number // 2) if seed % 2 else None}
    names = [name for name in list_available() if set(resolve(name).needs) <= OF_TEXTS and name != "yes_no"]
    run = evaluate(rows, metrics=names, by=["kind"], skip_unavailable=True, allow_empty=True, skip_lint=True)
    figures = {name: figure for name, figure in run.figures.items() if figure.value is not None}
    assert len(figures) > 20
    for name, figure in figures.items():
        for part, each in [("", figure), *figure.parts.items()]:
            low, high = each.bounds or run.info.bounds_of(f"{name}.{part}" if part else name)
            if each.value is not None:
                check(each, -np.inf if low is None else low, np.inf if high is None else high)


def load_bench():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("inference", Path(__file__).parents[2] / "bench" / "inference.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("section", ["boards", "differences", "power", "scores", "agreement"])
def test_a_small_version_of_the_tables(section, monkeypatch):
    """Every figure of bench/inference.py is within four standard errors of its range."""
    bench, simulations = load_bench(), 150
    seen = []

    def report(name, share, low, high):
        margin = 4 * np.sqrt(max(0.05 if section != "power" else 0.2, 0.01) * 0.95 / simulations)
        seen.append(name)
        assert low - margin <= share <= high + margin, (name, share)
        return True

    monkeypatch.setattr(bench, "report", report)
    assert all(bench.SIMULATED[section][0](simulations))
    assert len(seen) >= 10
