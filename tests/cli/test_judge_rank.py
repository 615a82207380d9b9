"""`mmeval judge rank` and `mmeval judge ratings`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from multimodal_eval import load_run
from multimodal_eval.analysis.judge_ratings import rate
from tests.cli.command_line import mmeval
from tests.docs.terminal import run_in_terminal
from tests.judges.ranked_systems import draw, runs_of

SYSTEMS = {"owl": 1.0, "finch": 0.5, "crow": 0.0}
SAMPLES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, and a file with a verdict for each comparison."""
    folder = tmp_path_factory.mktemp("ranked")
    runs_of(folder, SYSTEMS, SAMPLES)
    verdicts = {
        f"s{number}|{pair}": json.dumps({"verdict": "1" if draw(f"{number}{pair}") < share else "2"})
        for number in range(SAMPLES)
        for pair, share in {"1-2": 0.7, "1-3": 0.9, "2-3": 0.6}.items()
    }
    (folder / "replies.json").write_text(json.dumps(verdicts))
    return folder


def rank(folder: Path, *options: str, output: str | None = None, code: int = 0) -> str:
    runs = [str(folder / name) for name in SYSTEMS]
    judge = ["--judge", f"script:{folder / 'replies.json'}", "--orders", "given"]
    target = ["-o", str(folder / output)] if output else []
    done = mmeval("judge", "rank", *runs, *judge, *target, *options, code=code)
    return done.stdout if code == 0 else done.stderr


def test_a_ranking_and_its_ratings(folder):
    shown = rank(folder, output="ranking")
    assert "preference, 3 systems, 120 comparisons" in shown
    lines = [line.split() for line in shown.splitlines() if re.match(r"\d", line)]
    assert [line[1] for line in lines[:3]] == ["owl", "finch", "crow"]
    report = folder / "ranking" / "report.html"
    assert shown.rstrip().endswith(f"run folder: {folder / 'ranking'}\nreport: {report}")
    assert report.is_file()
    again = mmeval("judge", "ratings", str(folder / "ranking")).stdout
    assert shown.startswith(again.rstrip("\n"))


def test_what_is_known_about_the_judge_is_shown(folder):
    shown = rank(folder, output="known")
    assert "! preference: the ratings measure what the judge says, not the quality of the answers" in shown
    assert "preference: 120 verdicts of script:" in shown
    assert "verdicts for the answer shown first: " in shown
    assert "pairs that the longer answer wins: " in shown


def test_the_report_of_a_ranking_has_ratings_and_no_mean_as_its_headline(folder):
    rank(folder, output="reported")
    run = load_run(str(folder / "reported"))
    page = (folder / "reported" / "report.html").read_text()
    verdict = re.search(r'<section aria-labelledby="verdict".*?</section>', page, re.DOTALL)
    assert verdict is not None
    assert f"{run['preference']['value']:.4f}" not in verdict[0]
    assert "owl is first of 3 systems" in verdict[0]
    section = re.search(r'<section aria-labelledby="ratings">.*?</section>', page, re.DOTALL)
    assert section is not None
    for system in rate([run]).systems:
        assert re.search(rf"<bdi>{system.name}</bdi>.*?<bdi>{system.rating:.0f}</bdi>", section[0])
    assert "not the score of any of them" in page


def test_without_a_report(folder):
    assert "report:" not in rank(folder, "--no-report", output="unreported")
    assert not (folder / "unreported" / "report.html").exists()


def test_json(folder):
    table = json.loads(rank(folder, "--format", "json", "--until-ranked", output="until"))
    assert [system["name"] for system in table["systems"]] == ["owl", "finch", "crow"]
    assert table["runs"] == [str(folder / "until")]
    assert {pair["outcome"] for pair in table["pairs"]} <= {"better", "worse", "open"}
    assert table["skipped"] == sum(pair["population"] - pair["compared"] for pair in table["pairs"])
    shown = mmeval("judge", "ratings", str(folder / "until")).stdout
    assert "pairs, with intervals that are right at any stopping time" in shown
    assert "A is better" in shown


def test_tables_fit_a_terminal(folder):
    if not (folder / "until").exists():
        rank(folder, "--until-ranked", output="until")
    shown = run_in_terminal(f"judge ratings {folder / 'until'}", folder)
    tables = [line for line in shown.splitlines() if re.match(r"[\d─]|rank", line)]
    assert tables
    assert max(map(len, tables)) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "0.1", "--until-ranked"], "exclude each other"),
        (["--margin", "0.1"], "--margin belongs to --until-ranked"),
        (["--until", "0.6"], "0.6 is not in the range"),
        (["--pairs", "some"], "all, baseline or random:N"),
        (["--metrics", "judge:helpfulness"], "needs the form 'pairwise'"),
    ],
)
def test_wrong_options(folder, options, message):
    code = 1 if "some" in options or "--metrics" in options else 2
    assert message in rank(folder, *options, output="wrong", code=code)
    assert not os.path.lexists(folder / "wrong")


def test_one_run_is_not_a_ranking(folder):
    done = mmeval("judge", "rank", str(folder / "owl"), "--judge", "script:x.json", code=2)
    assert "name at least two runs" in done.stderr


def test_ratings_of_a_run_without_comparisons(folder):
    done = mmeval("judge", "ratings", str(folder / "owl"), code=1)
    assert "no judge compares systems" in done.stderr
    assert "mmeval judge rank" in done.stderr


def test_an_unknown_anchor(folder):
    if not (folder / "until").exists():
        rank(folder, "--until-ranked", output="until")
    done = mmeval("judge", "ratings", str(folder / "until"), "--anchor", "owls", code=1)
    assert "no system is named 'owls'. Did you mean 'owl'?" in done.stderr
