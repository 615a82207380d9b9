"""`mmeval import`, and every command that takes the run it makes."""

from __future__ import annotations

import json
import shutil

import pytest

from multimodal_eval.data.runs.run import Run
from tests.cli.command_line import mmeval
from tests.data.logs.fixture_logs import LM_EVAL, LMMS_EVAL, log_of

SUM, POPE = log_of(LM_EVAL, "toy_sum"), log_of(LMMS_EVAL, "toy_pope")
STRICT, FLEXIBLE = "lm-eval.exact_match_strict-match", "lm-eval.exact_match_flexible-extract"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported") / "run"
    mmeval("import", str(SUM), "-o", str(folder), "--no-report")
    return folder


def test_the_table_then_the_origin(tmp_path):
    out = mmeval("import", str(POPE), "-o", str(tmp_path / "run")).stdout
    table, origin = out.split("imported from ")
    assert "lmms-eval.pope_accuracy" in table
    lines = origin.splitlines()
    assert lines[0] == "lmms-eval, model dummy, task toy_pope"
    assert lines[1] == "  lmms-eval.pope_accuracy: mean as in its results"
    assert lines[2].startswith("! lmms-eval.pope_precision: its results have 0.666667 by 'precision'")
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_origin_as_json(tmp_path):
    out = mmeval("import", str(POPE), "-o", str(tmp_path / "run"), "--no-report", "--format", "json").stdout
    imported = json.loads(out)["imported"]
    assert (imported["harness"], imported["model"]) == ("lmms-eval", "dummy")
    assert imported["reported"][0] == {
        "metric": "lmms-eval.pope_accuracy",
        "log": None,
        "reported": 0.6,
        "mean": 0.6,
        "note": "mean as in its results",
    }


def test_a_folder_of_logs_is_a_run_per_task_and_their_table(tmp_path):
    suite = tmp_path / "suite"
    out = mmeval("import", str(LM_EVAL), "-o", str(suite)).stdout
    assert "1 model, 6 tasks" in out
    assert "! toy_word: lm-eval.loglikelihood: its results have 4.87117, which is exp(-mean)" in out
    assert f"suite: {suite}" in out
    entry = Run(suite / "toys_scripted" / "toy_choice").entries["lm-eval.acc"]
    assert (entry.value, entry.n_total) == (0.5, 4)  # as in the results of lm-eval, for the samples of this task alone
    assert len([*suite.glob("*/*/run.json")]) == 6


def test_another_harness_joins_a_suite(tmp_path):
    suite = tmp_path / "suite"
    mmeval("import", str(SUM), "-o", str(tmp_path / "run"), "--no-report")
    mmeval("import", str(LM_EVAL), "-o", str(suite))
    out = mmeval("import", str(LMMS_EVAL), "-o", str(suite)).stdout
    assert "samples_toy_captions.jsonl is left out: it has no scores of samples" in out
    record = json.loads((suite / "suite.json").read_text())
    assert [model["name"] for model in record["models"]] == ["toys/scripted", "dummy"]
    assert {"path": "dummy/toy_pope", "model": "dummy", "task": "toy_pope"} in record["runs"]
    again = mmeval("import", str(LMMS_EVAL), "-o", str(suite), code=1)
    assert "already exists" in again.stderr


def test_further_logs_of_a_model_and_a_task_are_rows(tmp_path):
    """Seeds of one model have its name: each log is a row, and a pattern joins them."""
    for name in ("results", "samples_toy_sum"):
        (log,) = LM_EVAL.glob(f"{name}_*")
        for day in ("2026-11-16", "2026-11-17"):
            (tmp_path / "logs").mkdir(exist_ok=True)
            shutil.copy(log, tmp_path / "logs" / log.name.replace("2026-11-16", day))
    suite = tmp_path / "suite"
    assert "2 models, 1 task" in mmeval("import", str(tmp_path / "logs"), "-o", str(suite)).stdout
    assert sorted(path.name for path in suite.glob("toys*")) == ["toys_scripted", "toys_scripted-2"]
    assert "all (2 runs)" in mmeval("table", str(suite), "--join", "all=toys*").stdout
    again = mmeval("import", str(tmp_path / "logs"), "-o", str(suite), code=1)  # the same logs again are refused
    assert again.stderr.count("already exists") == 2


def test_a_link_that_leads_out_of_a_suite_is_refused(tmp_path):
    suite, outside = tmp_path / "suite", tmp_path / "outside"
    suite.mkdir()
    outside.mkdir()
    (suite / "toys_scripted").symlink_to(outside)
    done = mmeval("import", str(LM_EVAL), "-o", str(suite), "--overwrite", code=1)
    assert f"{suite / 'toys_scripted'} leads out of the suite" in done.stderr
    assert not [*outside.iterdir()]


def test_a_threshold_is_for_one_log(tmp_path):
    done = mmeval("import", str(LM_EVAL), "-o", str(tmp_path / "s"), "--fail-under", "lm-eval.acc=0.5", code=2)
    assert "a threshold is for one log" in done.stderr
    assert not (tmp_path / "s").exists()


def test_thresholds_and_slices(tmp_path):
    run = tmp_path / "run"
    done = mmeval("import", str(SUM), "-o", str(run), "--by", "doc.sum", "--fail-under", f"{STRICT}=0.9", code=3)
    assert f"{STRICT} is 0.3333, below 0.9" in done.stderr
    assert set(Run(run).outcome.slices["doc.sum"]) == {"5", "17", "16", "10", "42"}


def test_compare(run, tmp_path):
    again = tmp_path / "again"
    mmeval("import", str(SUM), "-o", str(again), "--no-report")
    assert STRICT in mmeval("compare", str(run), str(again)).stdout
    assert FLEXIBLE in mmeval("compare", str(run), str(again), "--metrics", FLEXIBLE).stdout


def test_lint(run):
    assert "samples" in mmeval("lint", str(run)).stdout


def test_verify(run):
    mmeval("verify", str(run), "--deep")


def test_report(run, tmp_path):
    mmeval("report", str(run), "-o", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert FLEXIBLE in page


def test_crosswalk(run, tmp_path):
    out = mmeval("crosswalk", str(run), "--metrics", "exact_match", "-o", str(tmp_path / "rules"), "--no-report").stdout
    assert "exact_match by rule, 6 samples" in out


def test_rescore_keeps_the_recorded_scores_and_the_origin(run, tmp_path):
    config = tmp_path / "more.yaml"
    config.write_text(f"metrics: [{STRICT}, contains]\n")
    out = mmeval("rescore", str(run), "--config", str(config), "-o", str(tmp_path / "new"), "--no-report").stdout
    assert f"  {STRICT}: mean as in its results" in out
    new = Run(tmp_path / "new")
    # "5", "17" and "42" are in the replies, and "5" in the last; not 16 in "The answer is 15" nor 10 in "no idea"
    assert new.entries["contains"].value == pytest.approx(4 / 6)
    assert new.info.imported == Run(run).info.imported


def test_meta_compares_with_recorded_scores(run):
    assert "contains" in mmeval("meta", str(SUM), "--human", STRICT, "--metrics", "contains").stdout


def test_score_takes_the_answers_of_a_log(tmp_path):
    out = mmeval("score", str(SUM), "--metrics", "contains", "-o", str(tmp_path / "run"), "--no-report").stdout
    assert "0.6667" in out


def test_score_takes_what_a_filter_took(tmp_path):
    mapped = ("--map", "generated_answer=answer.flexible-extract")
    mmeval("score", str(SUM), "--metrics", "exact_match", *mapped, "-o", str(tmp_path / "run"), "--no-report")
    assert Run(tmp_path / "run").entries["exact_match"].value == pytest.approx(4 / 6)  # as the harness itself


def test_validate_reads_a_log():
    out = mmeval("validate", str(LM_EVAL)).stdout
    assert "21 samples in 6 files, no problems" in out


def test_a_format_can_be_forced(tmp_path):
    # The first line is not recognised, since it has no `doc`.
    path = tmp_path / "log.jsonl"
    first, *others = SUM.read_text().splitlines()
    record = json.loads(first)
    del record["doc"]
    path.write_text("\n".join([json.dumps(record), *others]) + "\n")
    assert "not recognised as a log" in mmeval("import", str(path), code=1).stderr
    forced = ("--as", "lm-eval")
    mmeval("import", str(path), *forced, "-o", str(tmp_path / "run"), "--no-report")
    assert Run(tmp_path / "run").info.config.format == "lm-eval"
    assert "6 samples, no problems" in mmeval("validate", str(path), *forced).stdout
    out = mmeval(
        *("score", str(path), *forced, "--format", "json", "--metrics", "contains"),
        *("-o", str(tmp_path / "scored"), "--no-report"),
    ).stdout
    assert json.loads(out)["n"] == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--as", "lmeval"), "no format is named 'lmeval'. Did you mean 'lm-eval'?"),
        (("--format", "lm-eval", "--format", "lmms-eval"), "DATA has one format. Got lm-eval and lmms-eval"),
        (("--overwrite",), "--overwrite needs -o"),
    ],
)
def test_wrong_options(options, message):
    assert message in mmeval("import", str(SUM), *options, code=2).stderr


def test_resume_refuses_the_format_of_a_log(run):
    done = mmeval("score", "--resume", str(run), "--as", "lm-eval", code=2)
    assert "does not accept --as" in done.stderr


def test_missing_and_wrong_files(tmp_path):
    assert "no such file" in mmeval("import", str(tmp_path / "none.jsonl"), code=1).stderr
    assert "this is a run folder" in mmeval("import", str(_run(tmp_path)), code=1).stderr


def _run(tmp_path):
    mmeval("import", str(SUM), "-o", str(tmp_path / "run"), "--no-report")
    return tmp_path / "run"


def test_a_half_written_log_leaves_no_run(tmp_path):
    path = tmp_path / SUM.name
    path.write_bytes(SUM.read_bytes()[:-30])
    done = mmeval("import", str(path), "-o", str(tmp_path / "run"), code=1)
    assert "the last good record is on line 11" in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_formats_are_listed():
    out = mmeval("ls", "formats").stdout
    assert "lm-eval" in out
    assert "samples_TASK_DATE.jsonl" in out
