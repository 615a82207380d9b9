"""A log of another harness becomes a run with the harness' own scores."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate, import_log
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.leaderboard import leaderboard
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import ReportedScore
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.run_findings import run_findings
from multimodal_eval.run.import_log import OwnMean, own_means
from multimodal_eval.run.verify import verify_run
from tests.data.logs import inspect_log
from tests.data.logs.fixture_logs import LM_EVAL, LMMS_EVAL, OPENAI_BATCH, log_of, pooled_run
from tests.edited_runs import rewrite_json


def own_mean(stated, mean, *, scored=10, total=10, **reported):
    figure = {"stderr": None, "low": None, "high": None, "method": "", "unscored": {}, "reasons": [], "warnings": {}}
    entry = Figure(value=mean, n_scored=scored, n_total=total, **figure)
    return OwnMean(ReportedScore(metric="x.acc", value=stated, **reported), entry)


def test_the_scores_of_a_log_are_those_of_its_results():
    imported = import_log(log_of(LM_EVAL, "toy_sum"), progress=False)
    entries = imported.run.entries
    assert entries["lm-eval.exact_match_strict-match"].value == pytest.approx(2 / 6)
    assert entries["lm-eval.exact_match_flexible-extract"].value == pytest.approx(4 / 6)
    assert [mean.is_equal for mean in imported.means] == [True, True]


def test_where_it_is_from_is_in_the_run(tmp_path):
    path = log_of(LM_EVAL, "toy_word")
    import_log(path, output=tmp_path / "run", progress=False)
    info = Run(tmp_path / "run").info.imported
    assert (info.harness, info.version, info.model, info.task) == ("lm-eval", "0.4.13", "toys/scripted", "toy_word")
    assert info.files == [str(path)]
    assert [reported.metric for reported in info.reported] == ["lm-eval.loglikelihood", "lm-eval.acc"]


def test_several_logs_of_an_older_run_are_compared_one_by_one(tmp_path):
    run = pooled_run(LM_EVAL, tmp_path / "run")
    assert len(run) == 6 + 4 + 3 + 3 + 2 + 3
    assert run.outcome.slices["log_name"]["toy_choice"].metrics["lm-eval.acc"].value == 0.5
    differing = [mean for mean in own_means(run) if not mean.is_equal]
    # exp(-(-0.25 - 1.5 - 3) / 3) = exp(1.58333) = 4.8712
    assert [(mean.log, mean.metric, round(mean.stated, 4)) for mean in differing] == [
        ("toy_word", "lm-eval.loglikelihood", 4.8712)
    ]
    assert "exp(-mean)" in differing[0].explanation
    assert len(own_means(run)) == 9  # two each of toy_sum, toy_choice and toy_word, one of the others


def test_an_aggregate_that_is_not_a_mean_is_named():
    accuracy, precision = import_log(log_of(LMMS_EVAL, "toy_pope"), progress=False).means
    assert (accuracy.explanation, precision.is_equal) == ("mean as in its results", False)
    assert "0.666667 by 'precision', which is not the mean" in precision.explanation


@pytest.mark.parametrize(
    ("mean", "explanation"),
    [
        (own_mean(0.5, 0.5), "mean as in its results"),
        (own_mean(0.1 + 0.2, 0.3), "mean as in its results"),
        (own_mean(50.0, 0.5), "its results have 50, the same mean in percent"),
        (own_mean(0.33, 1 / 3), "its results have 0.33, which is rounded"),
        (own_mean(33.33, 1 / 3), "its results have 33.33, which is rounded"),
        (
            own_mean(0.3, 1 / 3),
            "its results have 0.3: it does not aggregate by the mean of the values per sample, or the files do not "
            "belong together",
        ),
        (own_mean(0.4, 0.5, scored=8), "its results have 0.4, which counts 2 samples without a score as 0"),
        (own_mean(0.45, 0.5, scored=8), "its results have 0.45; 2 failed samples are left out here"),
        (own_mean(0.25, 0.3, samples=20), "its results have 0.25 for 20 samples; the log has 10"),
        (own_mean(0.25, None, scored=0), "its results have 0.25; here no sample has a score"),
    ],
)
def test_a_difference_is_explained(mean, explanation):
    assert mean.explanation == explanation


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_every_difference_has_an_explanation(stated, value):
    mean = own_mean(stated, value)
    assert (mean.explanation == "mean as in its results") == mean.is_equal


def test_the_interval_of_grades_ends_at_their_bounds(tmp_path):
    path = inspect_log.log(tmp_path, *({"scores": {"grade": {"value": value}}} for value in "CPI"))
    run = import_log(path, output=tmp_path / "run", progress=False).run
    entry = run.entries["inspect.grade"]
    assert (entry.value, entry.low, entry.high) == (0.5, 0, 1)  # 0.5 ± 4.303 * 0.2887 without them
    assert run.info.bounds_of("inspect.grade") == (0, 1)
    assert verify_run(tmp_path / "run", deep=True).faults == ()
    earlier = {"low": -0.7421, "high": 1.7421}  # as stored before
    rewrite_json(tmp_path / "run" / "results.json", lambda results: results["metrics"]["inspect.grade"].update(earlier))
    assert verify_run(tmp_path / "run", deep=True).faults == ()


def test_a_range_that_the_values_show_is_verified(tmp_path):
    import_log(log_of(LM_EVAL, "toy_word"), output=tmp_path / "run", progress=False)
    assert verify_run(tmp_path / "run", deep=True).faults == ()


def test_a_log_without_scores_says_what_to_do():
    with pytest.raises(ConfigError, match=r"has no scores of samples\. Its answers can be scored: mmeval score"):
        import_log(log_of(LMMS_EVAL, "toy_captions"), progress=False)


def test_data_that_are_not_a_log(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "a", "generated_answer": "x"}\n')
    with pytest.raises(ConfigError, match=r"not recognised as a log\. Known formats: lm-eval, "):
        import_log(path, progress=False)


def test_several_logs_are_for_import_logs():
    with pytest.raises(ConfigError, match=r"has 6 logs: samples_toy_captions.*`import_log` reads one"):
        import_log(LM_EVAL, progress=False)


def test_a_failed_answer_is_unscored_whatever_the_harness_gave(tmp_path):
    path = tmp_path / "samples_toy_2026-11-16T10-00-00.000000.jsonl"
    lines = [json.loads(line) for line in log_of(LM_EVAL, "toy_captions").read_text().splitlines()]
    lines[1]["resps"] = [["[ERROR] out of memory"]]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    entry = import_log(path, progress=False).run.entries["lm-eval.exact_match"]
    assert (entry.n_scored, entry.unscored) == (2, {"error": 1})


def test_imports_are_ranked_by_a_score_of_the_harness(tmp_path):
    for name in ("first", "second"):
        import_log(log_of(LM_EVAL, "toy_sum"), output=tmp_path / name, progress=False)
    score = "lm-eval.exact_match_strict-match"
    board = leaderboard(tmp_path, ["first", "second"], by=score)
    assert (board.number, board.direction, len(board.standings)) == (score, "higher", 2)


def test_samples_without_a_score_in_the_log_are_not_failures():
    counts = {"error": 1, "missing_input": 2}
    figure = {"stderr": None, "low": None, "high": None, "method": "", "reasons": [], "warnings": {}}
    entry = Figure(value=0.5, n_scored=4, n_total=7, unscored=counts, **figure)
    mean = OwnMean(ReportedScore(metric="x.acc", value=0.9), entry)
    assert mean.explanation == "its results have 0.9; 1 failed sample is left out here"
    # 2 right of 4, and the failure counts as 0: 2 / 5
    counted = OwnMean(ReportedScore(metric="x.acc", value=0.4), entry)
    assert counted.explanation == "its results have 0.4, which counts 1 sample without a score as 0"


def test_imports_are_compared_by_scores_that_apply_to_some_samples(tmp_path):
    runs = [pooled_run(LM_EVAL, tmp_path / name) for name in ("a", "b")]
    by_name = {metric.name: metric for metric in compare_runs(runs).numbers}
    # Only toy_choice and toy_word, with 4 and 3 of the 21 samples, have `acc`.
    assert (by_name["lm-eval.acc"].samples, by_name["lm-eval.acc"].left_out) == (7, 0)


def test_a_score_that_one_run_lacks_is_counted(tmp_path):
    log = tmp_path / log_of(LM_EVAL, "toy_sum").name
    lines = log_of(LM_EVAL, "toy_sum").read_text().splitlines()
    log.write_text("\n".join(line.replace('"exact_match": 1.0', '"exact_match": NaN') for line in lines) + "\n")
    runs = [
        import_log(path, output=tmp_path / name, progress=False).run
        for name, path in (("a", log_of(LM_EVAL, "toy_sum")), ("b", log))
    ]
    with pytest.raises(ConfigError, match="samples are unscored in at least one run"):
        compare_runs(runs)


def test_a_score_that_applies_to_some_samples_is_one_remark(tmp_path):
    run = pooled_run(LM_EVAL, tmp_path / "run")
    remarks = [line for line in [each.sentence for each in run_findings(run)] if "lm-eval.acc:" in line]
    assert remarks == ["lm-eval.acc: 14 of 21 (66.7%): samples without such a score in the log"]
    assert "UNSCORED_SHARE" not in {finding.code for finding in run.lint_report().findings}


def test_results_without_samples_point_to_the_samples():
    (results,) = LM_EVAL.glob("results_*.json")
    with pytest.raises(ConfigError, match=r"has the results of lm-eval or lmms-eval, without samples") as refused:
        import_log(results)
    assert f"mmeval import {LM_EVAL} -o RUN" in str(refused.value)


def test_a_log_without_scores_and_references_says_what_is_needed(tmp_path):
    with pytest.raises(ConfigError, match=r"It has no references either.*mmeval score REFERENCES "):
        import_log(OPENAI_BATCH)
    data = tmp_path / "references.jsonl"
    data.write_text("".join(json.dumps({"id": name, "references": ["5"]}) + "\n" for name in ("sum", "colour")))
    run = evaluate(data, OPENAI_BATCH / "results.jsonl", metrics=["exact_match"], allow_partial=True)
    assert run["exact_match"]["n_scored"] == 2
