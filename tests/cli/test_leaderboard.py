"""`mmeval leaderboard`: submissions of every kind, ranked with ties; refused ones have no place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.evaluation.metrics import hidden_metric
from tests.cli.leaderboard import board, places, refused
from tests.cli.test_cli import mmeval
from tests.contests.clarity.make_data import FOLDER
from tests.contests.dialogue.contest import system, write_contest, write_json

QUALITIES = {"alba": 0.9, "boreas": 0.5, "cirrus": 0.1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A contest with three submissions, the first the best by far."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, quality in QUALITIES.items():
        gold, *_ = write_contest(tmp_path / "sent" / name, system(ord(name[0]), quality))
        gold.rename(tmp_path / "gold.json")
    return tmp_path


NO_SYNONYMS = ("--synonyms", "en=none")


# the dialogue contest


def test_submissions_to_the_dialogue_contest(folder):
    found = board("gold.json", "sent", *NO_SYNONYMS, "-o", "runs")
    assert (found["number"], found["direction"], found["samples"]) == ("composite_score", "higher", 59)
    assert places(found) == [("alba", 1), ("boreas", 2), ("cirrus", 3)]
    first, second, _ = found["standings"]
    for own in found["standings"]:
        run = load_run(Path("runs") / own["name"])
        wanted = run.results["composite"]
        assert (own["value"], own["stderr"], own["low"], own["high"]) == tuple(
            wanted[key] for key in ("value", "stderr", "low", "high")
        )
        assert own["numbers"] == {name: entry.value for name, entry in run.entries.items()}
    assert (first["behind"], first["p_value"]) == (0, None)
    assert second["behind"] == first["value"] - second["value"]
    assert 0 < second["p_value"] < 0.05
    assert "within strata" in found["method"]
    assert found["signature"].startswith("composite_score|")
    assert json.loads((folder / "runs" / "leaderboard.json").read_text()) == {
        key: value for key, value in found.items() if key != "runs"
    }
    compare_runs([Path("runs/alba"), Path("runs/boreas")])  # they are runs like others


def test_submissions_that_cannot_be_told_apart_share_a_rank(folder):
    write_contest(folder / "sent" / "almost", system(77, 0.9))
    shutil.copytree("sent/alba", "sent/twin")
    found = board("gold.json", "sent", *NO_SYNONYMS, "-o", "runs")
    by_name = dict(places(found))
    assert by_name["alba"] == by_name["twin"] == by_name["almost"] == 1
    assert (by_name["boreas"], by_name["cirrus"]) == (4, 5)
    values = {own["name"]: own for own in found["standings"]}
    assert values["alba"]["value"] == values["twin"]["value"]
    assert {values["alba"]["p_value"], values["twin"]["p_value"]} <= {None, 1.0}
    names = [own["name"] for own in found["standings"]]
    assert names.index("alba") + 1 == names.index("twin")  # equal values stand by name


def test_by_another_number(folder):
    found = board("gold.json", "sent", *NO_SYNONYMS, "--by", "meteor", "-o", "runs")
    assert found["number"] == "meteor"
    assert found["signature"].startswith("meteor|v:1|variant:fmean")
    assert [own["value"] for own in found["standings"]] == [
        load_run(f"runs/{name}")["meteor"]["value"] for name in ("alba", "boreas", "cirrus")
    ]
    told = refused("gold.json", "sent", "--by", "cider", "-o", "other")
    assert (
        "name the number to rank by (--by). The runs have meteor, hidden_metric, composite_score. Got 'cider'" in told
    )


def test_options_of_the_contest(folder):
    weights = ("--weight", "Text2Text=0.5", "--weight", "Audio2Text=0.5")
    found = board("gold.json", "sent", *NO_SYNONYMS, *weights, "-o", "runs")
    assert "0.5*Text2Text" in found["signature"]
    told = refused("gold.json", "sent", "--metrics", "bleu", code=2)
    assert "--metrics does not go with gold.json: it is scored as dialogues" in told
    told = refused("gold.json", "sent", "--option", "meteor.variant=2005", code=2)
    assert "--option does not go with gold.json: it is scored as dialogues" in told
    told = refused("gold.json", "sent", *weights, "--weight", "Text2Text=0.25", code=2)
    assert "--weight names a type twice: Text2Text" in told


def test_a_refused_submission_is_listed_and_the_others_are_ranked(folder):
    ppl = json.loads((folder / "sent" / "boreas" / "ppl_output.json").read_text())
    write_json(folder / "sent" / "boreas" / "ppl_output.json", ppl | {"d3": [0.5] * len(ppl["d3"]), "d4": "x"})
    (folder / "sent" / "empty").mkdir()
    done = mmeval("leaderboard", "gold.json", "sent", *NO_SYNONYMS, "-o", "runs", "--workers", "1", code=1)
    assert "refused boreas: " in done.stdout
    assert "Is the minus sign missing?" in done.stdout
    assert "refused empty: " in done.stdout
    found = json.loads((folder / "runs" / "leaderboard.json").read_text())
    assert places(found) == [("alba", 1), ("cirrus", 2)]
    assert [own["name"] for own in found["refused"]] == ["boreas", "empty"]
    assert "NOT_FOUND" in found["refused"][1]["reason"]
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["alba", "cirrus", "leaderboard.json"]


def test_all_refused(folder):
    for name in QUALITIES:
        (folder / "sent" / name / "output.json").write_text("{}")
    told = refused("gold.json", "sent", "-o", "runs")
    assert "no submission could be scored" in told
    assert "boreas: sent/boreas/output.json: EMPTY" in told
    assert not (folder / "runs" / "leaderboard.json").exists()


def test_one_submission(folder):
    for name in ("boreas", "cirrus"):
        shutil.rmtree(folder / "sent" / name)
    assert places(board("gold.json", "sent", "-o", "runs")) == [("alba", 1)]


def test_the_number_of_workers_changes_no_byte_and_plug_ins_reach_them(folder, monkeypatch):
    (folder / "rule.py").write_text(
        "from multimodal_eval.dialogue import hidden_rule\n\n\n"
        "@hidden_rule('squared')\ndef squared(sample):\n    return 1 / sample.perplexity ** 2\n"
    )
    rule = ("--plugin", "rule.py", "--rule", "squared", *NO_SYNONYMS)
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))
    board("gold.json", "sent", *rule, "-o", "runs1")
    mmeval("leaderboard", "gold.json", "sent", *rule, "--workers", "2", "-o", "runs2")
    one, two = ((folder / f"runs{workers}" / "leaderboard.json").read_bytes() for workers in "12")
    assert one == two
    assert len(json.loads(one)["standings"]) == 3


def test_the_table(folder):
    arguments = ["leaderboard", "gold.json", "sent", *NO_SYNONYMS, "-o", "runs", "--workers", "1"]
    out = CliRunner().invoke(cli, arguments, catch_exceptions=False).stdout
    assert "composite_score, 3 submissions, 59 samples" in out
    rows = [
        line.replace("│", " ").split() for line in out.splitlines() if any(f" {name} " in line for name in QUALITIES)
    ]
    assert [row[:2] for row in rows] == [["1", "alba"], ["2", "boreas"], ["3", "cirrus"]]
    assert "< .0001" in out
    assert "Holm-corrected" in out
    assert "runs: runs" in out


# CLARITY


def test_submissions_to_clarity(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sent").mkdir()
    shutil.copy(FOLDER / "test.csv", tmp_path / "test.csv")
    shutil.copy(FOLDER / "alba.evasion.zip", tmp_path / "sent" / "alba.evasion.zip")
    shutil.copy(FOLDER / "boreas.csv", tmp_path / "sent" / "boreas.csv")
    (tmp_path / "sent" / "notes.md").write_text("no submission")
    found = board("test.csv", "sent", "-o", "runs")
    assert found["number"] == "composite_score"
    assert sorted(own["name"] for own in found["standings"]) == ["alba", "boreas"]
    for own in found["standings"]:
        run = load_run(tmp_path / "runs" / own["name"])
        assert own["value"] == run.results["composite"]["value"] == run["f1_any_match"]["value"]
    shutil.copy(FOLDER / "boreas.clarity.zip", tmp_path / "sent" / "late.zip")
    found = board("test.csv", "sent", "-o", "again", code=1)  # clarity labels say nothing of evasion
    assert ([own["name"] for own in found["refused"]], len(found["standings"])) == (["late"], 2)
    found = board("test.csv", "sent", "--task", "clarity", "-o", "clarity")
    assert {own["name"] for own in found["standings"]} == {"alba", "boreas", "late"}
    assert found["standings"][0]["value"] == load_run("clarity/alba")["f1_strict"]["value"]
    told = refused("test.csv", "sent", "--questions", "q.json", code=2)
    assert "--questions does not go with test.csv: it is scored as CLARITY's data" in told
    told = refused("test.csv", "sent", "--config", "mine.yaml", code=2)
    assert "--config does not go with test.csv: it is scored as CLARITY's data" in told


# folders and kinds


def test_a_submission_named_as_the_result_is_refused_before_anything_is_scored(folder):
    (folder / "sent" / "cirrus").rename(folder / "sent" / "leaderboard.json")
    assert "'leaderboard.json', where the leaderboard goes: rename it" in refused("gold.json", "sent", "-o", "runs")
    assert not (folder / "runs").exists()


def test_one_dialogue_a_type_gives_no_ranks(folder):
    for name, quality in QUALITIES.items():
        gold, *_ = write_contest(folder / "few" / name, system(ord(name[0]), quality, each=1))
        gold.rename(folder / "few.json")
    found = board("few.json", "few", *NO_SYNONYMS, "-o", "runs")
    assert [own["rank"] for own in found["standings"]] == [None, None, None]
    told = mmeval("leaderboard", "few.json", "few", *NO_SYNONYMS, "-o", "again").stdout
    assert "No ranks: chance cannot be judged" in told
    assert "none is better beyond chance" not in told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"d1": ', "broken.json:1: TRUNCATED"),
        ('{"d1": {"type": "Text2Text", "reply": [["a"]]}}', "must be an object with `type` and `replies`"),
        ("{}", "EMPTY: the file has no dialogues"),
    ],
)
def test_what_is_wrong_with_the_gold_is_said(folder, content, told):
    (folder / "broken.json").write_text(content)
    assert told in refused("broken.json", "sent", "-o", "runs")


def test_runs_are_not_written_over(folder):
    (folder / "runs").mkdir()
    (folder / "runs" / "mine.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="runs exists already"):
        board("gold.json", "sent", "-o", "runs")
    assert [path.name for path in (folder / "runs").iterdir()] == ["mine.txt"]


def test_a_gold_that_is_not_there(folder):
    assert "absent.json" in refused("absent.json", "sent", "-o", "runs")
    assert not (folder / "runs").exists()


def test_a_number_that_no_run_will_have_is_refused_before_anything_is_scored(folder):
    said = refused("gold.json", "sent", "--by", "bleu", "-o", "out")
    assert "meteor, hidden_metric, composite_score" in said
    assert not (folder / "out").exists()


def test_what_is_no_submission_is_named(folder):
    (folder / "sent" / "late.zip").write_bytes(b"")
    done = mmeval("leaderboard", "gold.json", "sent", "-o", "out", "--workers", "1")
    assert "passed over, since it is no submission of this kind: late.zip" in done.stderr
