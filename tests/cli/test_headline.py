"""The headline on the command line: every display uses the same metric."""

from __future__ import annotations

import json
import re

import pytest

from multimodal_eval.core.display import printed
from multimodal_eval.report.viewer.run_list import Summaries
from multimodal_eval.report.viewer.runs import RunsFolder
from tests.cli.command_line import mmeval

DATA = [
    {"id": str(n), "references": [f"a red dog runs {n}"], "system": "x", "answer": f"a red dog {'runs' * (n % 2)}"}
    for n in range(6)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in DATA))
    (tmp_path / "sent").mkdir()
    for name, answer in (("good", "a red dog runs"), ("bad", "a cat")):
        rows = ({"id": row["id"], "generated_answer": f"{answer} {row['id']}"} for row in DATA)
        (tmp_path / "sent" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def score(*options):
    return mmeval("score", "data.jsonl", "--map", "generated_answer=answer", "--no-lint", *options)


@pytest.mark.parametrize(
    ("options", "headline"),
    [
        (["--metrics", "rouge_l,bleu"], "rouge_l"),
        (["--metrics", "rouge_l,bleu", "--headline", "bleu"], "bleu"),
        (["--metrics", "coco"], "cider_d"),
    ],
)
def test_one_headline_everywhere(folder, options, headline):
    out = score(*options, "-o", "runs/first").stdout
    assert re.findall(r"^(\S+) ★ ", out, re.MULTILINE) == [printed(headline)]
    value = json.loads((folder / "runs" / "first" / "results.json").read_text())["metrics"][headline]["value"]
    listed = mmeval("ls", "runs").stdout
    assert re.search(rf"^first +{printed(headline)} +done +{value:.4f} [\d. ]+ … [\d.]+ *$", listed, re.MULTILINE)
    assert "6 / 6 scored; higher is better" in listed
    page = (folder / "runs" / "first" / "report.html").read_text()
    assert re.search(rf"<bdi>{printed(headline)} ★</bdi>.*?<bdi>{value:.4f}</bdi>", page)
    (row,) = Summaries(RunsFolder(folder / "runs")).all()
    assert (row.headline, row.scores[headline].value) == (headline, value)


def test_a_wrong_headline_is_refused(folder):
    done = mmeval("score", "data.jsonl", "--metrics", "bleu", "--headline", "CIDEr", code=1)
    assert done.stderr.endswith("error: `headline`: this run does not compute 'CIDEr'. It computes bleu\n")
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(("options", "headline"), [(["rouge_l,bleu"], "rouge_l"), (["coco"], "cider_d")])
def test_a_leaderboard_ranks_by_the_headline(folder, options, headline):
    arguments = ["data.jsonl", "sent", "--metrics", *options, "-o", "board", "--workers", "1", "--format", "json"]
    board = json.loads(mmeval("leaderboard", *arguments).stdout)
    assert board["number"] == headline
    assert [row["name"] for row in board["standings"]] == ["good", "bad"]


def test_a_comparison_names_the_headline(folder):
    score("--metrics", "rouge_l,bleu", "--headline", "bleu", "-o", "a")
    score("--metrics", "rouge_l,bleu", "--headline", "bleu", "-o", "b")
    assert json.loads(mmeval("compare", "a", "b", "--format", "json").stdout)["headline"] == "bleu"
    only = mmeval("compare", "a", "b", "--metrics", "rouge_l", "--format", "json").stdout
    assert json.loads(only)["headline"] is None


def test_a_folder_without_runs_is_not_an_empty_table(folder):
    assert mmeval("ls", "runs", "sent").stdout.startswith("There are no runs in sent. Create one with: mmeval score")
