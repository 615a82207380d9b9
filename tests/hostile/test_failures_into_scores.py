"""A failure never becomes a score: values with an unscored status, wrong aggregates, exceptions with broken texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multimodal_eval import Metric, Sample, Score, evaluate, register
from multimodal_eval.core.errors import MetricError, described
from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.score import OK, Estimate, Rows, Scores, mean_estimate
from multimodal_eval.core.scoring import estimate_of, score_batch
from multimodal_eval.interop.accumulator import compute
from multimodal_eval.interop.list_scores import answer_scores
from tests.cli.command_line import called
from tests.hostile.plugins import BAD, COUNT, aggregating, data_file, for_the_bad_sample, plugin

SAMPLES = [Sample(str(number), generated_answer="a", references=["a"]) for number in range(4)]


class Given(Metric):
    """Returns given scores."""

    name = "given"
    bounds: Bounds = (0, 1)

    def __init__(self, scores: Any, estimate: Any = None) -> None:
        self.scores, self.estimate = scores, estimate

    def open(self, state: Any) -> Any:
        return self

    def score(self, batch: Any) -> Any:
        return self.scores if len(batch) == len(self.scores) else self.scores[: len(batch)]

    def aggregate(self, rows: Rows) -> Estimate:
        return mean_estimate(rows) if self.estimate is None else self.estimate(rows)


def _scored(scores: Any) -> list[Score]:
    metric = Given(scores)
    return score_batch(metric, metric, SAMPLES)


@pytest.mark.parametrize("status", ["missing_input", "degenerate", "error", "open"])
def test_a_value_with_an_unscored_status_is_an_error(status: Any) -> None:
    scores = _scored([Score(0.5), Score(0.0, status, "why"), Score(None, status, "why"), Score(1.0)])
    assert [score.value for score in scores] == [0.5, None, None, 1.0]
    assert scores[1].status == "error"
    assert scores[1].reason == (
        f"STATUS: given returned the value 0.0 with the status '{status}'. A sample has a value or a status: return "
        f"Score(None, '{status}', reason), or the value alone"
    )
    assert scores[2] == Score(None, status, "why")


def test_columns_with_a_value_and_an_unscored_status_are_errors() -> None:
    columns = Scores(np.array([0.5, 0.0, np.nan, 1.0]), np.array([0, 1, 1, 0], np.uint8), parts={"part": np.ones(4)})
    scores = _scored(columns)
    assert [score.status for score in scores] == ["ok", "error", "missing_input", "ok"]
    assert (scores[1].value, scores[1].parts) == (None, None)
    assert "given returned the value 0.0 with the status 'missing_input'" in (scores[1].reason or "")


@pytest.mark.parametrize(
    "columns",
    [
        Scores(np.zeros(4), np.zeros(3, np.uint8)),
        Scores(np.zeros(4), np.full(4, 9, np.uint8)),
        Scores(np.zeros(4), np.zeros(4)),  # type: ignore[arg-type]
        Scores(np.zeros((4, 1)), np.zeros(4, np.uint8)),
        Scores(np.array(list("abcd")), np.zeros(4, np.uint8)),
        Scores(np.zeros(4), np.zeros(4, np.uint8), parts={"part": np.zeros(3)}),
        Scores(np.zeros(4), np.zeros(4, np.uint8), stats=np.zeros((3, 2))),
        Scores(np.zeros(4), np.zeros(4, np.uint8), stats=np.zeros(4)),
    ],
)
def test_columns_of_the_wrong_shape_are_no_scores(columns: Scores) -> None:
    with pytest.raises(ValueError, match="must"):
        columns.refuse_shapes()


def test_statistics_in_lists_are_checked() -> None:
    columns = Scores(np.zeros(4), np.zeros(4, np.uint8), stats=[(1.0,), (np.nan,), (1.0,), None])
    assert [score.status for score in _scored(columns)] == ["ok", "error", "ok", "ok"]


@pytest.mark.parametrize("wrong", [1.0, None, "ok", (0.5, "ok"), {"value": 1.0}])
def test_anything_but_a_score_is_an_error(wrong: Any) -> None:
    assert [score.status for score in _scored([Score(1.0), wrong, Score(1.0), Score(1.0)])] == [
        "ok",
        "error",
        "ok",
        "ok",
    ]


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        (Score(10**400), "OverflowError"),  # type: ignore[arg-type]
        (Score(1.0, "weird"), "unknown status 'weird'"),  # type: ignore[arg-type]
        (Score(1.0, stats=(10**400,)), "OverflowError"),
        (Score(1.0, parts={"\udc80": 1.0}), "the name of a part"),
        (Score(1.0, parts={"part": "x"}), "part 'part' must be a number"),  # type: ignore[dict-item]
    ],
)
def test_odd_scores_are_errors(score: Score, reason: str) -> None:
    result = _scored([score] * 4)[0]
    assert (result.value, result.status) == (None, "error")
    assert reason in (result.reason or "")


def test_the_unscored_status_counts_nowhere() -> None:
    register(Given([Score(0.0, "missing_input", "x"), *[Score(1.0)] * 3]))
    run = evaluate(SAMPLES, metrics=["given"])
    assert (run["given"]["value"], run["given"]["n_scored"], run["given"]["unscored"]) == (1.0, 3, {"error": 1})
    listed = answer_scores(["a"] * 4, ["a"] * 4, metrics=["given"])
    assert listed.corpus == {"given": 1.0}
    assert np.isnan(listed.per_sample["given"]).tolist() == [True, False, False, False]


def _any(value: Any) -> Any:
    return value


ESTIMATES = {
    "the value 7.0 is outside [0, 1]": lambda rows: Estimate(7.0, rows.values * 0),
    "the value -0.5 is outside [0, 1]": lambda rows: Estimate(-0.5, rows.values * 0),
    "the value is nan": lambda rows: Estimate(float("nan"), rows.values * 0),
    "the value is inf": lambda rows: Estimate(float("inf"), rows.values * 0),
    "the value must be a number. Got None": lambda rows: Estimate(_any(None), rows.values * 0),
    "`influence` has 3 values for 4 rows": lambda rows: Estimate(0.5, np.zeros(3)),
    "`influence` has the shape (4, 1) for 4 rows": lambda rows: Estimate(0.5, np.zeros((4, 1))),
    "`influence` has the shape () for 4 rows": lambda rows: Estimate(0.5, np.array(1.0)),
    "`influence` is nan in row 0": lambda rows: Estimate(0.5, rows.values * np.nan),
    "`influence` is inf in row 2": lambda rows: Estimate(0.5, np.array([0.0, 0.0, np.inf, 0.0])),
    "`influence` has values of type complex128": lambda rows: Estimate(0.5, rows.values * 1j),
    "`influence` has values of type object": lambda rows: Estimate(0.5, np.array([None] * 4)),
    "`influence` has values of type bool": lambda rows: Estimate(0.5, rows.values > 0),
    "`strata` has 1 values for 4 rows": lambda rows: Estimate(0.5, rows.values * 0, strata=np.zeros(1, np.int64)),
    "it returned 0.5": lambda rows: 0.5,
}


@pytest.mark.parametrize("fault", ESTIMATES)
def test_a_wrong_aggregate_is_refused(fault: str) -> None:
    metric = Given([Score(0.5)] * 4, ESTIMATES[fault])
    with pytest.raises(MetricError) as refusal:
        estimate_of(metric, Rows(np.full(4, 0.5)))
    assert str(refusal.value).startswith(f"AGGREGATE: given: {fault}")
    register(metric)
    with pytest.raises(MetricError, match="AGGREGATE: given"):
        evaluate(SAMPLES, metrics=["given"])
    with pytest.raises(MetricError, match="AGGREGATE: given"):
        compute(predictions=["a"] * 4, references=["a"] * 4, metrics=["given"])
    with pytest.raises(MetricError, match="AGGREGATE: given"):
        answer_scores(["a"] * 4, ["a"] * 4, metrics=["given"])


def test_a_correct_aggregate_is_unchanged() -> None:
    estimate = Estimate(0.5, np.zeros(4), bounds=Given.bounds)
    assert estimate_of(Given([], lambda rows: estimate), Rows(np.full(4, 0.5))) is estimate
    without = Estimate(0.5, estimate.influence)
    assert repr(estimate_of(Given([], lambda rows: without), Rows(np.full(4, 0.5)))) == repr(estimate)
    integers = estimate_of(Given([], lambda rows: Estimate(1, _any(np.arange(4)))), Rows(np.full(4, 0.5)))
    assert type(integers.value) is float
    assert integers.influence.dtype == np.float64


def test_a_refused_aggregate_keeps_the_scores(tmp_path: Path) -> None:
    mark = tmp_path / "mark"  # the plug-in keeps its content, as a resumed run requires
    statement = (
        f"import pathlib; return Estimate(0.5 if pathlib.Path({str(mark)!r}).exists() else 7.0, rows.values * 0)"
    )
    file = plugin(tmp_path, aggregating(statement))
    arguments = [
        "score",
        str(data_file(tmp_path)),
        "--metrics",
        "m",
        "--plugin",
        str(file),
        "-o",
        str(tmp_path / "run"),
    ]
    done = called(*arguments, "--fail-under", "m=0.1")
    assert done.returncode == 1
    assert done.stderr.startswith("error: AGGREGATE: m: the value 7.0 is outside [0, 1].")
    assert f"continue with: mmeval score --resume {tmp_path / 'run'} --plugin {file}" in done.stderr
    assert not (tmp_path / "run" / "results.json").exists()
    mark.touch()
    assert called("score", "--resume", str(tmp_path / "run"), "--plugin", str(file)).returncode == 0


class Mute(Exception):  # noqa: N818 - the name is part of the text
    """An exception without a text."""

    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("why"), "ValueError: why"),
        (Mute(), "Mute: (no message: its text raises ValueError)"),
        (ValueError("a\udc80b"), "ValueError: a\\udc80b"),
        (ValueError("x" * 5_000), "ValueError: " + "x" * 1_988 + "… (5,012 characters)"),
        (
            ExceptionGroup("g", [ValueError("a"), Mute()]),
            "ExceptionGroup: g (2 sub-exceptions): ValueError: a; Mute: (",
        ),
    ],
)
def test_exceptions_in_words(error: Exception, text: str) -> None:
    assert described(error).startswith(text)
    described(error).encode()


RAISED = {
    "raise GeneratorExit": "GeneratorExit",
    "raise BaseExceptionGroup('g', [SystemExit()])": "BaseExceptionGroup: g (1 sub-exception): SystemExit",
    "raise type('E', (Exception,), {'__str__': lambda e: 1 / 0})": "E: (no message: its text raises ZeroDivisionError)",
    "raise ValueError('a\\udc80')": "ValueError: a\\udc80",
    "return Score(None, 'error', 'a\\udc80')": "a\\udc80",
    "return Score(None, 'error', 5)": "5",
    "raise MemoryError": "MemoryError",
}


@pytest.mark.parametrize("statement", RAISED)
def test_whatever_a_metric_raises_belongs_to_its_sample(tmp_path: Path, statement: str) -> None:
    file = plugin(tmp_path, for_the_bad_sample(statement))
    run = evaluate(data_file(tmp_path), metrics=["m"], plugins=[str(file)], output=tmp_path / "run")
    assert run["m"]["n_scored"] == COUNT - 1
    place = " (plugin.py:9)" if statement.startswith("raise") else ""
    assert run["m"]["reasons"] == [{"reason": f"{RAISED[statement]}{place}", "count": 1}]
    rows = {row["id"]: row["m:status"] for row in run.scores().to_pylist()}
    assert rows[BAD] == "error"


@pytest.mark.parametrize(
    "details",
    ["{1: object()}", "{'x': '\\udc80'}", "[1]", "{'x': type('S', (), {'__str__': None})()}"],
)
def test_details_that_cannot_be_stored_do_not_lose_the_score(tmp_path: Path, details: str) -> None:
    file = plugin(tmp_path, for_the_bad_sample(f"return Score(1.0, details={details})"))
    run = evaluate(data_file(tmp_path), metrics=["m"], plugins=[str(file)])
    assert run["m"]["n_scored"] == COUNT
    stored = {row["id"]: row["m:details"] for row in run.scores().to_pylist()}
    assert stored[BAD].startswith('{"unreadable"')


def test_scores_of_status_ok_are_unchanged() -> None:
    columns = Scores(np.array([0.0, 1.0, 0.5, 0.25]), np.full(4, OK, np.uint8))
    assert _scored(columns) == [Score(0.0), Score(1.0), Score(0.5), Score(0.25)]
