"""Comparisons with figures that are worked out by hand."""

from __future__ import annotations

from itertools import combinations

from multimodal_eval.analysis.compare import NOT_SHOWN, MetricComparison, Pair, RunComparison, System


def pair(difference, low=None, high=None, *, first="A", second="B", p=0.002, verdict=None, **more):
    """The comparison of two runs by a metric for which higher is better, unless the verdict says otherwise."""
    if verdict is None:
        verdict = ("better" if difference > 0 else "worse") if p < 0.05 else NOT_SHOWN
    fields = {"stderr": 0.0075, "method": "t", "p_value": p, "p_metrics": p, "wins": 1, "ties": 1, "losses": 1}
    fields |= {"detectable": 0.021, "needed": 43, **more}
    return Pair(first=first, second=second, difference=difference, low=low, high=high, verdict=verdict, **fields)


def metric(name, pairs, *, values=None, direction="higher", samples=50, left_out=10, uncorrected=None):
    """A metric by which runs are compared; `values` are the scores of the runs, `uncorrected` without human labels."""
    names = dict.fromkeys(run for each in pairs for run in (each.first, each.second))
    scores = values or dict.fromkeys(names, 0.5)
    systems = tuple(
        System(run, value, 0.01, value - 0.02, value + 0.02, "t", 1, uncorrected=uncorrected)
        for run, value in scores.items()
    )
    return MetricComparison(name, direction, name, samples, left_out, None, systems, tuple(pairs))


def comparison(*metrics, runs=("A", "B")):
    """The comparison of runs by metrics."""
    return RunComparison(tuple(runs), 60, 10_000, 0, 0.95, tuple(metrics), ())


def all_pairs(values, is_shown):
    """All pairs of runs with these scores; `is_shown` are the pairs with a difference beyond chance."""
    return [
        pair(
            values[b] - values[a],
            values[b] - values[a] - 0.01,
            values[b] - values[a] + 0.01,
            first=a,
            second=b,
            p=0.01 if {a, b} in is_shown else 0.4,
        )
        for a, b in combinations(values, 2)
    ]
