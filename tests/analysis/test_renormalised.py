"""Composites that leave missing parts out: wherever they are compared, a run gains nothing by a part it fails at."""

from __future__ import annotations

import math

import pytest

from multimodal_eval import evaluate, load_run, suite
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.composite import composite_parts, sensitivity
from multimodal_eval.analysis.leaderboard import leaderboard
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample

COUNT, LACKING = 50, 20
TASK = {
    "metrics": ["exact_match", "hidden_metric"],
    "weights": {"exact_match": 0.5, "hidden_metric": 0.5},
    "on_missing": "renormalise",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every answer is right. Of the first 20, `surprised` has the perplexity 1000, `silent` has none; the others 1."""
    folder = tmp_path_factory.mktemp("runs")
    for name, perplexity in (("surprised", 1000.0), ("silent", None)):
        samples = [
            Sample(str(n), generated_answer="yes", references=["yes"], perplexity=perplexity if n < LACKING else 1.0)
            for n in range(COUNT)
        ]
        for counts in (None, "wrong"):
            kind = "counted" if counts else "left_out"
            evaluate(
                samples, task="mine", tasks={"mine": TASK}, count_failures=counts, output=folder / kind / name / "t"
            )
    return folder


def runs(folder, kind):
    return [folder / kind / name / "t" for name in ("surprised", "silent")]


def test_a_part_that_is_not_answered_is_no_gain(folder):
    # hidden_metric is 1 / perplexity. The composites of `surprised` have the mean (20 (1 + 0.001) / 2 + 30) / 50.
    names = {"names": ["surprised", "silent"]}
    with pytest.raises(ConfigError, match="20 of 50 samples are unscored in at least one run or have other parts"):
        compare_runs(runs(folder, "left_out"), metrics=["composite"], **names)
    (both,) = compare_runs(runs(folder, "left_out"), metrics=["composite"], allow_partial=True, **names).numbers
    assert [system.value for system in both.systems] == [1, 1]
    assert (both.samples, both.left_out) == (COUNT - LACKING, LACKING)
    with pytest.raises(ConfigError, match="20 of 50"):
        sensitivity(runs(folder, "left_out"))
    table = suite(folder / "left_out")
    assert {row.cells[0].remark for row in table.rows} == {"20 of 50 composites have other parts than in another run"}
    shared = suite(folder / "left_out", allow_partial=True)
    assert [(row.cells[0].figure.value, row.cells[0].figure.n_scored) for row in shared.rows] == [(1, 30), (1, 30)]


def test_failures_that_count_are_failed_parts(folder):
    (both,) = compare_runs(runs(folder, "counted"), metrics=["composite"], names=["surprised", "silent"]).numbers
    surprised, silent = (system.value for system in both.systems)
    assert both.samples == COUNT
    assert surprised == pytest.approx((LACKING * 1.001 / 2 + 30) / COUNT)
    assert silent == pytest.approx((LACKING / 2 + 30) / COUNT)
    for kind in ("counted", "left_out"):
        run = load_run(folder / kind / "silent" / "t")
        figure = run.outcome.composite
        assert (figure.failed, figure.lowest, figure.highest) == (LACKING, pytest.approx(silent), 1)
        other = figure.without_failures if kind == "counted" else figure.with_failures
        assert sorted([figure.value, other.value]) == [pytest.approx(silent), 1]
        parts = composite_parts(run)
        assert math.fsum(part.contribution for part in parts.parts) == pytest.approx(figure.value)


@pytest.mark.parametrize(
    ("choice", "values", "left_out"),
    [("worst", {"surprised": 0.8002, "silent": 0.8}, 0), ("left-out", {"surprised": 1.0, "silent": 1.0}, 20)],
)
def test_a_leaderboard_does_not_reward_a_missing_part(folder, choice, values, left_out, tmp_path):
    for run, name in zip(runs(folder, "left_out"), values, strict=True):
        (tmp_path / name).symlink_to(run, target_is_directory=True)
    board = leaderboard(tmp_path, list(values), failed_answers=choice, allow_partial=True)
    assert {row.name: row.value for row in board.standings} == {name: pytest.approx(values[name]) for name in values}
    assert board.left_out == left_out
    assert {row.name: row.failures for row in board.standings}["silent"] == (
        {"not_scorable": LACKING} if choice == "worst" else {}
    )
