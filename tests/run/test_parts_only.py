"""Metrics that return several numbers and no headline: every number is aggregated, and the metric has no value."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate, metric
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.cli.finish import print_result
from multimodal_eval.display.run_findings import run_findings
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS, evaluate_sample
from multimodal_eval.report.build import report_html
from tests.parts import set_part_size

REASON = "the result has no headline: one of composite_score, score, value, shape must be a key. Its parts are kept"


@pytest.fixture
def shape():
    @metric("shape", needs=("generated_answer",))
    def shape(sample):
        text = sample.generated_answer
        numbers = {"words": len(text.split()), "letters": float(len(text)), "first": text[:1]}
        return numbers | ({"commas": text.count(",")} if "," in text else {})

    return shape


def rows(*answers):
    return [
        Sample(id=str(n), generated_answer=text, group=f"g{n}", references=["x"], metadata={"kind": "ab"[n % 2]})
        for n, text in enumerate(answers)
    ]


ANSWERS = ("a", "a b", "a b c", None, "a, b", "[ERROR] x")


def test_every_part_has_an_aggregate_with_an_interval(shape):
    run = evaluate(rows(*ANSWERS), metrics=["shape"])
    entry = run["shape"]
    assert (entry["value"], entry["low"], entry["method"]) == (None, None, f"no value: {REASON}")
    assert (entry["n_scored"], entry["n_total"], entry["unscored"]) == (4, 6, {"error": 1, "missing_input": 1})
    # words: 1, 2, 3, 2; letters: 1, 3, 5, 4; commas: 1 in one sample, absent in the others
    assert entry["parts"]["words"]["value"] == 2.0
    assert entry["parts"]["letters"]["value"] == 3.25
    assert entry["parts"]["commas"]["value"] == 1.0
    # The standard error of 1, 2, 3, 2 is sqrt(2/3 / 4); Student's t with 3 degrees of freedom: 3.1824.
    assert entry["parts"]["words"]["stderr"] == pytest.approx((2 / 3 / 4) ** 0.5)
    assert entry["parts"]["words"]["high"] == pytest.approx(2 + 3.182446 * (2 / 3 / 4) ** 0.5)
    scores = run.scores().to_pylist()
    assert scores[1]["shape"] is None
    assert (scores[1]["shape:status"], scores[1]["shape:reason"]) == ("degenerate", REASON)
    assert (scores[1]["shape.words"], scores[1]["shape:details"]) == (2.0, '{"first":"a"}')
    assert scores[3]["shape.words"] is None
    assert f"shape: no value: {REASON}" in [each.sentence for each in run_findings(run)]


def test_parts_of_any_size_and_slices(shape, monkeypatch):
    whole = evaluate(rows(*ANSWERS), metrics=["shape"], by=["kind"])
    set_part_size(monkeypatch, 2)
    assert evaluate(rows(*ANSWERS), metrics=["shape"], by=["kind"], workers=2).results == whole.results
    slices = whole.results["slices"]["kind"]
    assert slices["a"]["metrics"]["shape"]["parts"]["letters"]["value"] == 10 / 3  # 1, 5, 4
    assert slices["b"]["metrics"]["shape"]["parts"]["letters"]["value"] == 3.0
    assert slices["b"]["metrics"]["shape"]["n_scored"] == 1


def test_the_table_lint_and_report_show_the_parts(shape, tmp_path, capsys):
    run = evaluate(rows(*ANSWERS), metrics=["shape"], by=["kind"], output=tmp_path / "run")
    print_result(run, "table")
    out = capsys.readouterr().out
    assert out.count(".words") >= 3  # all samples, and two slices
    by_code = {(finding["code"], finding["metric"]) for finding in run.lint()["findings"]}
    assert ("NO_VARIANCE", "shape") not in by_code
    assert ("UNSCORED_SHARE", "shape.words") in by_code
    assert "words" in report_html([run], ["run"], version="0")


def test_runs_are_compared_by_the_parts(shape):
    first = evaluate(rows("a", "a b", "a b c", "a b"), metrics=["shape"])
    second = evaluate(rows("a b", "a b c", "a b c d", "a b c d"), metrics=["shape"])
    comparison = compare_runs([first, second])
    assert [metric.name for metric in comparison.numbers] == ["shape.words", "shape.letters"]
    assert comparison.numbers[0].pairs[0].difference == 1.25  # 1, 1, 1, 2


def test_one_sample(shape):
    TASK_METRICS["shapes"] = ["shape"]
    try:
        result = evaluate_sample(rows("a b")[0], "shapes")
    finally:
        del TASK_METRICS["shapes"]
    assert (result["shape"], result["shape.words"], result["status"]["shape"]) == (None, 2.0, REASON)


def test_a_headline_in_some_results_only(shape):
    @metric("mixed")
    def mixed(sample):
        return {"score": 0.5, "a": 1.0} if sample.id == "0" else {"a": 2.0}

    entry = evaluate(rows("x", "y", "z"), metrics=["mixed"])["mixed"]
    assert (entry["value"], entry["n_scored"], entry["unscored"]) == (0.5, 1, {"degenerate": 2})
    assert entry["parts"]["a"]["value"] == 5 / 3
