"""Human labels on the command line: --human, `judge calibrate`, `meta` on runs, comparisons and exports."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from multimodal_eval import load_run
from multimodal_eval.analysis.suite import suite
from multimodal_eval.core.judge_records import measures_the_judge
from multimodal_eval.core.score import STATISTICS
from multimodal_eval.interop.trackers.content import run_values
from tests.cli.command_line import mmeval
from tests.run.labelled_samples import judged_samples

SCORE = ("score", "data.jsonl", "--metrics", "exact_match", "--no-report")
LABELLED = (*SCORE, "--human", "exact_match=rating")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data.jsonl", judged_samples())
    return tmp_path


def write(name, records):
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def label_file(records, **columns):
    labelled = [record for record in records if record["rating"] is not None]
    write("labels.jsonl", [{"id": r["id"], "label": "yes" if r["rating"] else "no", **columns} for r in labelled])


def test_the_corrected_score_is_beside_the_score(folder):
    out = mmeval(*LABELLED, "--by", "kind", "-o", "run", "-v").stdout
    corrected = load_run("run").calibrated("exact_match")
    assert re.search(rf"\n  calibrated +{corrected.value:.4f} ", out)
    assert " 60 labels" in out
    assert f"{corrected.low:.4f} … {corrected.high:.4f}" in out
    assert f"calibrated: {corrected.signature}" in out
    assert out.count("  calibrated  ") == 3  # the run and two slices


def test_a_run_is_rescored_with_labels_alone(folder):
    mmeval(*SCORE, "-o", "run")
    mmeval("rescore", "run", "--human", "exact_match=rating", "-o", "new", "--no-report")
    mmeval(*LABELLED, "-o", "labelled")
    assert load_run("new").calibrated("exact_match") == load_run("labelled").calibrated("exact_match")
    assert (
        "--config FILE, --judge PROVIDER:NAME, --human COLUMN or --count-failures wrong"
        in mmeval("rescore", "run", code=2).stderr
    )
    assert "must be written COLUMN or METRIC=COLUMN" in mmeval("rescore", "run", "--human", "=x", code=2).stderr
    wrong = mmeval("rescore", "run", "--human", "exact_match=labels.jsonl", "-o", "no", code=1).stderr
    assert "For labels in a file: mmeval judge calibrate RUN --human labels.jsonl" in wrong


def test_calibrate_prints_tables_and_stores_a_run(folder):
    mmeval(*SCORE, "-o", "run")
    label_file(judged_samples())
    out = mmeval("judge", "calibrate", "run", "--human", "labels.jsonl", "-o", "new").stdout
    corrected = load_run("new").calibrated("exact_match")
    assert "exact_match: 60 of 200 samples labelled in labels.jsonl" in out
    assert f"both: PPI++              {corrected.value:.4f}" in out
    for text in (
        "labels alone",
        "both: PPI (lambda = 1)",
        "both: Rogan-Gladen",
        "equal labels",
        "Cohen's kappa",
        "sensitivity",
        "mean label",
    ):
        assert text in out
    assert out.rstrip().endswith("run folder: new")
    again = json.loads(mmeval("judge", "calibrate", "run", "--human", "rating", "--format", "json").stdout)
    assert again["runs"]["run"]["exact_match"]["corrected"]["value"] == corrected.value
    assert again["differences"] == []


def test_calibrate_two_runs(folder):
    mmeval(*SCORE, "-o", "a")
    write("data.jsonl", judged_samples(sensitivity=0.5))
    mmeval(*SCORE, "-o", "b")
    out = mmeval("judge", "calibrate", "a", "b", "--human", "rating").stdout
    assert "differences, calibrated by human labels" in out
    label_file(judged_samples())
    missing = mmeval("judge", "calibrate", "a", "b", "--human", "labels.jsonl", code=1).stderr
    assert "labels.jsonl:1: the label does not say which run its answer is from" in missing
    assert "-o stores one run" in mmeval("judge", "calibrate", "a", "b", "--human", "rating", "-o", "x", code=2).stderr


def test_compare_shows_corrected_differences(folder):
    mmeval(*LABELLED, "-o", "a")
    write("data.jsonl", judged_samples(sensitivity=0.5))
    mmeval(*LABELLED, "-o", "b")
    mmeval(*SCORE, "-o", "c")
    out = mmeval("compare", "a", "b", "--rounds", "100").stdout
    assert "exact_match, corrected by human labels" in out
    assert "not corrected by human labels" in out
    first, second = (load_run(name).calibrated("exact_match").value for name in "ab")
    (pair,) = json.loads(mmeval("compare", "a", "b", "--rounds", "100", "--format", "json").stdout)["numbers"][0][
        "pairs"
    ]
    assert abs(pair["difference"] - (second - first)) > 1e-4
    assert "exact_match: the corrected B - A is not the difference of the corrected scores" in out
    without = mmeval("compare", "a", "c", "--rounds", "100").stdout
    assert "corrected by human labels" not in without
    assert "exact_match: no human labels in c, so that the comparison is that of the judge" in without
    assert "no human labels in c" in mmeval("compare", "a", "b", "c", "--rounds", "100").stdout


def two_runs(says_so: str) -> None:
    """The runs s/a/task and s/b/task: either the judge or the people say that b is worse."""
    first, second = judged_samples(), judged_samples(sensitivity=0.5)
    if says_so == "people":
        for record, better in zip(second, first, strict=True):
            if record["rating"] is not None and record["generated_answer"] == "no":
                record["rating"] = 0
            record["generated_answer"] = better["generated_answer"]
    for name, records in (("a", first), ("b", second)):
        write("data.jsonl", records)
        mmeval(*LABELLED, "-o", f"s/{name}/task")


@pytest.mark.parametrize("says_so", ["judge", "people"])
def test_gates_marks_and_suites_follow_the_labels(folder, says_so):
    two_runs(says_so)
    is_worse = says_so == "people"
    gate = mmeval("compare", "s/a/task", "s/b/task", "--fail-if-worse", code=3 if is_worse else 0)
    assert ("in exact_match, corrected by human labels: -" in gate.stderr) == is_worse
    assert (" is worse than " in gate.stdout) == is_worse
    assert "; uncorrected, the difference is " in " ".join(gate.stdout.split())
    sliced = mmeval("compare", "s/a/task", "s/b/task", "--by", "kind").stdout
    assert "exact_match: the slices are not corrected by human labels" in sliced
    assert "Simpson" not in sliced
    mmeval("export", "s/a/task", "s/b/task", "--to", "markdown", "-o", "table.md", "--set", "names=[a, b]")
    corrected, raw = (line for line in Path("table.md").read_text().splitlines() if line.startswith("| exact"))
    assert (corrected.count("**"), raw.count("**")) == (2 if is_worse else 4, 0)
    mmeval("export", "s/a/task", "s/b/task", "--to", "markdown", "-o", "best.md", "--set", "names=[a, b]", "--set",
           "marks=best")  # fmt: skip
    corrected, raw = (line for line in Path("best.md").read_text().splitlines() if line.startswith("| exact"))
    assert (corrected.count("**"), raw.count("**")) == (2, 0)
    table = suite("s")
    assert {table[name, "task"].place for name in "ab"} == {"best", "" if is_worse else "tied"}
    assert (table.differences[0].verdict == "no difference shown") != is_worse
    stored = [load_run(f"s/{name}/task").calibrated("exact_match") for name in "ab"]
    figures = [table[name, "task"].figure for name in "ab"]
    assert [(each.value, each.low, each.high) for each in figures] == [(s.value, s.low, s.high) for s in stored]
    assert table.records()[1]["uncorrected"] == load_run("s/b/task")["exact_match"]["value"]


def test_a_limit_is_for_the_score_that_labels_correct(folder):
    mmeval(*LABELLED, "-o", "run")
    run = load_run("run")
    raw, corrected = run["exact_match"]["value"], run.calibrated("exact_match")
    assert corrected.value < raw
    between = (raw + corrected.value) / 2
    mmeval(*SCORE, "-o", "unlabelled", "--fail-under", f"exact_match={between}")
    missed = mmeval(*LABELLED, "-o", "again", "--fail-under", f"exact_match={between}", code=3).stderr
    assert f"exact_match is {corrected.value:.4f}, below {between!r}, corrected by human labels" in missed
    mmeval(*LABELLED, "-o", "low", "--fail-under", f"exact_match.low={corrected.low - 0.001}")
    mmeval(*LABELLED, "-o", "high", "--fail-under", f"exact_match.low={corrected.low + 0.001}", code=3)


def test_meta_of_a_run_has_kappa_and_a_curve(folder):
    mmeval(*LABELLED, "-o", "run")
    label_file(judged_samples())
    by_column = json.loads(mmeval("meta", "run", "--human", "rating", "--format", "json").stdout)
    by_file = json.loads(mmeval("meta", "run", "--human", "labels.jsonl", "--format", "json").stdout)
    assert by_column["metrics"] == by_file["metrics"]
    calibration = by_column["calibrations"]["exact_match"]
    assert calibration["kappa"] == by_file["calibrations"]["exact_match"]["kappa"]
    assert calibration["correlation"]["value"] == pytest.approx(by_column["metrics"]["exact_match"]["pearson"]["value"])
    assert [point["judge"] for point in calibration["curve"]] == [0, 1]
    assert "labels by score" in mmeval("meta", "run", "--human", "rating").stdout


def test_meta_of_a_metric_that_no_labels_correct_is_as_before(folder):
    mmeval(*SCORE, "-o", "run")
    assert "calibrations" not in json.loads(mmeval("meta", "run", "--human", "rating", "--format", "json").stdout)


def test_exports_have_the_corrected_score(folder):
    mmeval(*LABELLED, "-o", "run")
    corrected = load_run("run").calibrated("exact_match")
    mmeval("export", "run", "--to", "csv", "--set", "rows=metrics", "-o", "scores.csv")
    with Path("scores.csv").open(newline="") as file:
        rows = {row["metric"]: row for row in csv.DictReader(file)}
    assert float(rows["exact_match"]["value"]) == corrected.value
    assert rows["exact_match"]["method"] == f"{corrected.method} (statistics {STATISTICS})"
    assert rows["exact_match"]["note"] == f"60 human labels: {corrected.signature}"
    assert float(rows["exact_match.uncorrected"]["value"]) == 0.6
    hub = mmeval("export", "run", "--to", "hf-eval-results", "--set", "dataset=a/b", "--set", "task=t").stdout
    assert f"value: {corrected.value!r}" in hub
    assert "corrected by 60 human labels; without them: 0.6" in " ".join(hub.split())
    index = mmeval("export", "run", "--to", "model-index").stdout
    assert index.index(f"value: {corrected.value!r}") < index.index("type: exact_match.uncorrected")
    assert run_values(load_run("run"))["exact_match"] == corrected.value
    assert run_values(load_run("run"))["exact_match.uncorrected"] == 0.6
    mmeval("export", "run", "--to", "inspect", "-o", "log.json")
    (score,) = json.loads(Path("log.json").read_text())["results"]["scores"]
    assert score["metrics"]["mean"]["value"] == corrected.value
    assert score["metrics"]["uncorrected"]["value"] == 0.6
    mmeval("export", "run", "--to", "eee", "-o", "collection", "--set", "model=acme/parrot-7b")
    (file,) = [path for path in folder.glob("collection/**/*.json") if "corrected_by" in path.read_text()]
    (result,) = json.loads(file.read_text())["evaluation_results"]
    assert result["score_details"]["score"] == corrected.value
    stored = json.loads(result["score_details"]["details"]["corrected_by_human_labels"])
    assert stored["value"] == corrected.value


def test_the_target_of_a_corrected_score_is_chosen_and_named(folder):
    mmeval(*LABELLED, "-o", "run")
    mmeval("rescore", "run", "--human", "exact_match=rating", "--human-target", "file", "-o", "new", "--no-report")
    population, file = (load_run(name).calibrated("exact_match") for name in ("run", "new"))
    assert population.value == file.value
    assert population.method.endswith(", for the mean over the population")
    assert file.method.endswith(", for the mean over these 200 samples")
    assert file.high - file.low < population.high - population.low
    assert "|target:file" in file.signature


def test_without_labels_the_run_says_what_it_measures():
    assert measures_the_judge(["helpful"]).startswith(
        "helpful: no human labels, so this score measures what the judge says, not the quality of the answers."
    )
    assert "a, b: no human labels, so these scores measure" in measures_the_judge(["a", "b"])


def test_a_leaderboard_marks_corrected_scores(folder):
    gold = judged_samples()
    write("gold.jsonl", [{key: r[key] for key in ("id", "references", "kind", "rating")} for r in gold])
    Path("submissions").mkdir()
    for name, answers in (("a", gold), ("b", judged_samples(seed=1))):
        write(f"submissions/{name}.jsonl", [{key: r[key] for key in ("id", "generated_answer")} for r in answers])
    Path("config.yaml").write_text("metrics: [exact_match]\nhuman: {exact_match: rating}\n")
    command = ("leaderboard", "gold.jsonl", "submissions", "--config", "config.yaml", "--by", "exact_match")
    out = mmeval(*command, "-o", "board").stdout
    corrected = load_run("board/a").calibrated("exact_match")
    (row,) = [line for line in out.splitlines() if f"{corrected.value:.4f}" in line and "calibrated" in line]
    assert f"{corrected.stderr:.4f}" in row
    assert "places are by the metric alone" in " ".join(out.split())
    stored = json.loads(Path("board/leaderboard.json").read_text())["standings"]
    assert {row["name"]: row["calibrated"]["labels"] for row in stored} == {"a": 60, "b": 60}
