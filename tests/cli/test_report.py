"""`mmeval report`, and the reports that scoring commands write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import mmeval

CLARITY = Path(__file__).parents[1] / "contests" / "clarity" / "data"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = "task: mine\ntasks:\n  mine: {metrics: [rouge_l, cider], weights: {rouge_l: 0.5, cider: 0.5}}\n"
    (tmp_path / "task.yaml").write_text(task)
    for name, answer in {"good": "a red dog number {} runs on the beach", "bad": "some cats sleep"}.items():
        rows = [
            {"id": str(i), "references": [f"a red dog number {i} runs"], "generated_answer": answer.format(i)}
            for i in range(12)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def score(name, *more):
    return mmeval("score", f"{name}.jsonl", "--config", "task.yaml", "-o", name, *more).stdout


def test_scoring_writes_a_report(folder):
    assert "report: good/report.html" in score("good")
    page = (folder / "good" / "report.html").read_text(encoding="utf-8")
    assert "a red dog number 3 runs on the beach" in page.replace('<mark class="shared">', "").replace(
        '<mark class="only">', ""
    ).replace("</mark>", "")
    assert "How the composite depends on its weights" in page


def test_no_report(folder):
    assert "report" not in score("good", "--no-report")
    assert not (folder / "good" / "report.html").exists()


def test_json_output_and_a_report(folder):
    assert json.loads(score("good", "--format", "json"))["n"] == 12
    assert (folder / "good" / "report.html").exists()


def test_a_resumed_and_a_rescored_run_have_reports_too(folder):
    score("good", "--no-report")
    mmeval("score", "--resume", "good")
    assert (folder / "good" / "report.html").exists()
    mmeval("rescore", "good", "--config", "task.yaml", "-o", "again", "--no-report")
    assert not (folder / "again" / "report.html").exists()
    mmeval("rescore", "good", "--config", "task.yaml", "-o", "more")
    assert (folder / "more" / "report.html").exists()


def test_a_report_that_cannot_be_written_does_not_fail_the_command(folder):
    score("good", "--no-report")
    (folder / "good" / "report.html").mkdir()
    done = mmeval("score", "--resume", "good")
    assert "no report was written" in done.stderr
    assert "rouge_l" in done.stdout


def test_a_report_of_one_run_is_written_into_its_folder(folder):
    score("good", "--no-report")
    assert mmeval("report", "good").stdout == "report: good/report.html\n"
    assert (folder / "good" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_report_of_two_runs_compares_them(folder):
    score("good", "--no-report")
    score("bad", "--no-report")
    assert mmeval("report", "good", "bad").stdout == "report: report.html\n"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert ">▼<" in page.replace("<bdi>", "").replace("</bdi>", "")
    assert "swap ranks in 0.0% of the draws" in page
    mmeval("report", "good", "bad", "-o", "both.html", "--samples", "1")
    assert (folder / "both.html").stat().st_size < (folder / "report.html").stat().st_size


def test_a_report_for_paper_does_not_replace_the_other(folder):
    score("good")
    shown = (folder / "good" / "report.html").read_bytes()
    assert mmeval("report", "good", "--theme", "paper").stdout == "report: good/report-paper.html\n"
    assert (folder / "good" / "report.html").read_bytes() == shown
    paper = (folder / "good" / "report-paper.html").read_text(encoding="utf-8")
    assert '<body class="paper">' in paper
    assert "<script" not in paper
    score("bad", "--no-report")
    assert mmeval("report", "good", "bad", "--theme", "paper").stdout == "report: report-paper.html\n"
    assert "is not one of" in mmeval("report", "good", "--theme", "print", code=2).stderr
    mmeval("verify", "good")  # a report is not part of what a run folder promises


def test_the_report_opens_with_a_verdict(folder):
    score("good", "--no-report")
    score("bad", "--no-report")
    mmeval("report", "good", "bad")
    page = (folder / "report.html").read_text(encoding="utf-8")
    heads = [page.index(f'<h2 id="{name}"') for name in ("verdict", "numbers", "comparison", "samples", "warnings")]
    assert heads == sorted(heads)
    verdict = page[heads[0] : heads[1]]
    assert "bad is worse than good by " in verdict
    assert "12 of 12 samples are scored in both." in verdict


def test_runs_that_cannot_be_compared_are_refused(folder):
    score("good", "--no-report")
    mmeval("score", "bad.jsonl", "--metrics", "rouge_l", "--limit", "5", "-o", "bad", "--no-report")
    assert "not in the run bad" in mmeval("report", "good", "bad", code=1).stderr
    assert not (folder / "report.html").exists()


def test_an_output_that_cannot_be_written_is_an_error(folder):
    score("good", "--no-report")
    assert "cannot be written" in mmeval("report", "good", "-o", "none/report.html", code=1).stderr


def test_clarity_writes_reports(folder):
    mmeval("clarity", str(CLARITY / "test.csv"), str(CLARITY / "alba.csv"), "-o", "both")
    for task in ("clarity", "evasion"):
        page = (folder / "both" / task / "report.html").read_text(encoding="utf-8")
        assert "gold and predicted" in page
        assert "Krippendorff" in page


def test_a_leaderboard_writes_no_reports(folder):
    (folder / "sent").mkdir()
    for name in ("good", "bad"):
        (folder / f"{name}.jsonl").rename(folder / "sent" / f"{name}.jsonl")
    gold = [{"id": str(i), "references": [f"a red dog number {i} runs"]} for i in range(12)]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)))
    mmeval("leaderboard", "gold.jsonl", "sent", "--metrics", "rouge_l", "-o", "board")
    assert (folder / "board" / "good" / "results.json").exists()
    assert not list(folder.rglob("report.html"))


@pytest.mark.weights
def test_the_demos_reports_are_small(folder, weights):
    mmeval("demo", "-o", "demo")
    for task in (folder / "demo").iterdir():
        mmeval("report", *sorted(map(str, task.iterdir())), "-o", "report.html")
        assert (folder / "report.html").stat().st_size < 3_000_000
