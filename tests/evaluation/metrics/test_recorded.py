"""Scores that are a column of the data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import resolve


def scored(value, **options):
    metric = configured(resolve("recorded"), options)
    (score,) = score_batch(metric, metric.open(None), [Sample(id="a", metadata={"score": value})])
    return score


@pytest.mark.parametrize(("value", "expected"), [(0.25, 0.25), (3, 3), (True, 1), (False, 0), ("0.5", 0.5), (" 2 ", 2)])
def test_numbers_are_taken_as_they_are(value, expected):
    assert scored(value).value == expected


@pytest.mark.parametrize("value", ["good", "nan", "inf", [1], {"score": 1}, "1,5"])
def test_anything_else_is_an_error_of_the_sample(value):
    score = scored(value)
    assert (score.value, score.status) == (None, "error")
    assert "the column 'score' must be a number" in score.reason


def test_a_value_outside_the_range_is_an_error():
    assert scored(5, high=5).value == 5
    score = scored(5.5, high=5)
    assert (score.status, score.reason) == ("error", "the column 'score' is 5.5, outside its range")
    assert scored(-1, low=0).status == "error"


def test_direction_and_range_are_those_of_the_options():
    metric = configured(resolve("recorded"), {"direction": "lower", "low": 0, "high": 10, "column": "latency"})
    assert (metric.direction, metric.bounds, metric.needs) == ("lower", (0, 10), ("metadata.latency",))
    assert resolve("recorded").direction == "higher"  # the registered metric is unchanged


def test_an_empty_range_is_refused():
    with pytest.raises(ConfigError, match=r"`recorded\.low` must be below `high`\. Got 1 and 0 instead\."):
        configured(resolve("recorded"), {"low": 1, "high": 0})
    with pytest.raises(ConfigError, match=r"`recorded\.low` must be below `high`\. Got 1 and 1 instead\."):
        configured(resolve("recorded"), {"low": 1, "high": 1})


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_the_result_is_the_mean(values):
    records = [{"id": str(place), "score": value} for place, value in enumerate(values)]
    entry = evaluate(records, metrics="recorded", progress=False, skip_lint=True).entries["recorded"]
    assert entry.value == pytest.approx(sum(values) / len(values), abs=1e-9)


def test_a_column_of_a_csv_file(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("id,rating\na,4\nb,\nc,2\n")
    entry = evaluate(path, metrics="recorded", options={"recorded": {"column": "rating"}}, progress=False).entries[
        "recorded"
    ]
    assert (entry.value, entry.n_scored, entry.unscored) == (3, 2, {"missing_input": 1})


def bounds_in_run(values, column="score", **options):
    records = [{"id": str(place), column: value} for place, value in enumerate(values)]
    settings = {"recorded": {"column": column, **options}}
    return evaluate(records, metrics="recorded", options=settings, progress=False, skip_lint=True).info.bounds_of(
        "recorded"
    )


@pytest.mark.parametrize(
    ("column", "values", "bounds"),
    [
        ("score", [0, 1, 1], (0, 1)),
        ("score", [1, 1, 1], (None, None)),  # may be the lowest value of a scale from 1 to 5
        ("score", [0, 0.5, 1], (None, None)),
        ("x.mean_acc", [0.5, 0.25], (0, 1)),
        ("x.exact_match_strict-match", [0, 0], (0, 1)),
        ("x.acc", [0, 100], (None, None)),
        ("x.perplexity", [0, 1], (None, None)),
        ("x.num_correct", [0, 1], (None, None)),
    ],
)
def test_the_values_and_the_name_show_the_range_of_a_share(column, values, bounds):
    assert bounds_in_run(values, column) == bounds


def test_a_stated_range_is_not_narrowed():
    assert bounds_in_run([0, 1], low=0, high=5) == (0, 5)


def test_runs_are_comparable_if_only_one_of_them_shows_the_range(tmp_path):
    runs = []
    for name, values in (("share", [0, 1, 1]), ("scale", [0, 3, 2])):
        records = [{"id": str(place), "score": value} for place, value in enumerate(values)]
        runs.append(evaluate(records, output=tmp_path / name, metrics="recorded", progress=False, skip_lint=True))
    assert [run.info.bounds_of("recorded") for run in runs] == [(0, 1), (None, None)]
    (metric,) = compare_runs(runs).numbers
    assert [system.value for system in metric.systems] == [pytest.approx(2 / 3), pytest.approx(5 / 3)]
