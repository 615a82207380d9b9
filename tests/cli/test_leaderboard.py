"""`mmeval leaderboard`: submissions of every kind, ranked with ties; refused ones have no rank."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.evaluation.metrics import hidden_metric
from tests.cli.command_line import mmeval
from tests.cli.leaderboard import board, ranks, refused
from tests.contests.clarity.make_data import FOLDER
from tests.contests.dialogue.contest import system, write_contest, write_json

QUALITIES = {"alba": 0.9, "boreas": 0.5, "cirrus": 0.1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A contest with three submissions; the first is by far the best."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, quality in QUALITIES.items():
        gold, *_ = write_contest(tmp_path / "sent" / name, system(ord(name[0]), quality))
        gold.rename(tmp_path / "gold.json")
    return tmp_path


NO_SYNONYMS = ("--synonyms", "en=none")


# the dialogue contest


def test_submissions_to_the_dialogue_contest(folder):
    result = board("gold.json", "sent", *NO_SYNONYMS, "-o", "runs")
    assert (result["number"], result["direction"], result["samples"]) == ("composite_score", "higher", 59)
    assert ranks(result) == [("alba", 1), ("boreas", 2), ("cirrus", 3)]
    first, second, _ = result["standings"]
    for row in result["standings"]:
        run = load_run(Path("runs") / row["name"])
        composite = run.results["composite"]
        assert (row["value"], row["stderr"], row["low"], row["high"]) == tuple(
            composite[key] for key in ("value", "stderr", "low", "high")
        )
        assert row["numbers"] == {name: entry.value for name, entry in run.entries.items()}
    assert (first["behind"], first["p_value"]) == (0, None)
    assert second["behind"] == first["value"] - second["value"]
    assert 0 < second["p_value"] < 0.05
    assert "within strata" in result["method"]
    assert result["signature"].startswith("composite_score|")
    assert json.loads((folder / "runs" / "leaderboard.json").read_text()) == {
        key: value for key, value in result.items() if key != "runs"
    }
    compare_runs([Path("runs/alba"), Path("runs/boreas")])  # ordinary runs


def test_indistinguishable_submissions_are_tied(folder):
    write_contest(folder / "sent" / "almost", system(77, 0.9))
    shutil.copytree("sent/alba", "sent/twin")
    result = board("gold.json", "sent", *NO_SYNONYMS, "-o", "runs")
    by_name = dict(ranks(result))
    assert by_name["alba"] == by_name["twin"] == by_name["almost"] == 1
    assert (by_name["boreas"], by_name["cirrus"]) == (4, 5)
    values = {row["name"]: row for row in result["standings"]}
    assert values["alba"]["value"] == values["twin"]["value"]
    assert {values[name]["p_value"] or 1.0 for name in ("alba", "twin", "almost")} <= {1.0, values["alba"]["p_value"]}
    assert values["alba"]["ranks"] == values["twin"]["ranks"] == [1, 3]
    names = [row["name"] for row in result["standings"]]
    assert names.index("alba") + 1 == names.index("twin")  # equal values are sorted by name
    # By the value alone, with equal places for equal values.
    order = sorted((row["value"] for row in result["standings"]), reverse=True)
    assert [row["place"] for row in result["standings"]] == [order.index(value) + 1 for value in order]
    assert values["alba"]["place"] == values["twin"]["place"]
    assert set(values["alba"]["tied_with"]) == {"twin", "almost"}
    assert set(values["almost"]["tied_with"]) == {"alba", "twin"}
    assert values["boreas"]["tied_with"] == values["cirrus"]["tied_with"] == []


def test_by_another_metric(folder):
    result = board("gold.json", "sent", *NO_SYNONYMS, "--by", "meteor", "-o", "runs")
    assert result["number"] == "meteor"
    assert result["signature"].startswith("meteor|v:1|variant:fmean")
    assert [row["value"] for row in result["standings"]] == [
        load_run(f"runs/{name}")["meteor"]["value"] for name in ("alba", "boreas", "cirrus")
    ]
    message = refused("gold.json", "sent", "--by", "cider", "-o", "other")
    assert (
        "name the metric to rank by (--by). The runs have meteor, hidden_metric, composite_score. Got 'cider'"
        in message
    )


def test_options_of_the_contest(folder):
    weights = ("--weight", "Text2Text=0.5", "--weight", "Audio2Text=0.5")
    result = board("gold.json", "sent", *NO_SYNONYMS, *weights, "-o", "runs")
    assert "0.5*Text2Text" in result["signature"]
    message = refused("gold.json", "sent", "--metrics", "bleu", code=2)
    assert "--metrics has no effect on gold.json, which is scored as dialogues" in message
    message = refused("gold.json", "sent", "--option", "meteor.variant=2005", code=2)
    assert "--option has no effect on gold.json, which is scored as dialogues" in message
    message = refused("gold.json", "sent", *weights, "--weight", "Text2Text=0.25", code=2)
    assert "--weight names a type twice: Text2Text" in message


def test_a_refused_submission_is_listed_and_the_others_are_ranked(folder):
    ppl = json.loads((folder / "sent" / "boreas" / "ppl_output.json").read_text())
    write_json(folder / "sent" / "boreas" / "ppl_output.json", ppl | {"d3": [0.5] * len(ppl["d3"]), "d4": "x"})
    (folder / "sent" / "empty").mkdir()
    done = mmeval("leaderboard", "gold.json", "sent", *NO_SYNONYMS, "-o", "runs", "--workers", "1", code=1)
    assert "refused boreas: " in done.stdout
    assert "Is the minus sign missing?" in done.stdout
    assert "refused empty: " in done.stdout
    result = json.loads((folder / "runs" / "leaderboard.json").read_text())
    assert ranks(result) == [("alba", 1), ("cirrus", 2)]
    assert [row["name"] for row in result["refused"]] == ["boreas", "empty"]
    assert "NOT_FOUND" in result["refused"][1]["reason"]
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["alba", "cirrus", "leaderboard.json"]


def test_all_refused(folder):
    for name in QUALITIES:
        (folder / "sent" / name / "output.json").write_text("{}")
    message = refused("gold.json", "sent", "-o", "runs")
    assert "no submission could be scored" in message
    assert "boreas: sent/boreas/output.json: EMPTY" in message
    assert not (folder / "runs" / "leaderboard.json").exists()


def test_one_submission(folder):
    for name in ("boreas", "cirrus"):
        shutil.rmtree(folder / "sent" / name)
    assert ranks(board("gold.json", "sent", "-o", "runs")) == [("alba", 1)]


def test_the_number_of_workers_changes_no_byte_and_workers_load_plug_ins(folder, monkeypatch):
    (folder / "rule.py").write_text(
        "from multimodal_eval.dialogue import hidden_rule\n\n\n"
        "@hidden_rule('squared')\ndef squared(sample):\n    return 1 / sample.perplexity ** 2\n"
    )
    rule = ("--plugin", "rule.py", "--rule", "squared", *NO_SYNONYMS)
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))
    board("gold.json", "sent", *rule, "-o", "runs1")
    mmeval("leaderboard", "gold.json", "sent", *rule, "--workers", "2", "-o", "runs2")
    single, parallel = ((folder / f"runs{workers}" / "leaderboard.json").read_bytes() for workers in "12")
    assert single == parallel
    assert len(json.loads(single)["standings"]) == 3


def test_the_table(folder):
    arguments = ["leaderboard", "gold.json", "sent", *NO_SYNONYMS, "-o", "runs", "--workers", "1"]
    out = CliRunner().invoke(cli, arguments, catch_exceptions=False).stdout
    assert "composite_score, 3 submissions, 59 samples" in out
    rows = [line.split() for line in out.splitlines() if any(f"  {name} " in line for name in QUALITIES)]
    assert [row[:2] for row in rows] == [["1", "alba"], ["2", "boreas"], ["3", "cirrus"]]
    assert "< 0.0001" in out
    assert "max-T randomization of all pairs" in out
    assert "runs: runs" in out


def test_the_table_fits_a_terminal_of_80_columns(folder, monkeypatch):
    write_contest(folder / "sent" / "almost", system(77, 0.9))
    monkeypatch.setenv("COLUMNS", "80")
    out = mmeval("leaderboard", "gold.json", "sent", *NO_SYNONYMS, "-o", "runs", "--workers", "1").stdout
    tables = [line for line in out.splitlines() if re.match(r" *(place|\d) ", line)]
    assert max(map(len, tables)) <= 80
    assert re.search(r"place +submission +score +95% interval +ranks +tied with +behind +p\b", out)  # no name is cut
    assert re.search(r"1 +\w+ +[\d.]+ +[\d. …]+ +1 … 2 +2 ", out)  # tied with the second place
    assert "other metrics" in out
    assert "METEOR   hidden_metric" in out


def test_a_zip_of_both_files(folder):
    expected = board("gold.json", "sent", *NO_SYNONYMS, "-o", "folders")
    for name in QUALITIES:
        with zipfile.ZipFile(folder / "sent" / f"{name}.zip", "w") as archive:
            inside = {"alba": "", "boreas": "mine/", "cirrus": ""}[name]
            archive.writestr("__MACOSX/._output.json", b"x")
            for file in ("output.json", "ppl_output.json"):
                archive.write(folder / "sent" / name / file, inside + file)
        shutil.rmtree(folder / "sent" / name)
    result = board("gold.json", "sent", *NO_SYNONYMS, "-o", "zips")
    assert result["standings"] == expected["standings"]
    sources = json.loads((folder / "zips" / "alba" / "run.json").read_text())["input"]
    assert [Path(entry["path"]).name for entry in sources] == ["gold.json", "alba.zip"]
    with zipfile.ZipFile(folder / "sent" / "alba.zip", "a") as archive:
        archive.writestr("old/output.json", b"{}")
    result = board("gold.json", "sent", *NO_SYNONYMS, "-o", "again", code=1)
    (refusal,) = result["refused"]
    assert "MEMBER: the archive must contain one file 'output.json'. Got 2 files with that name" in refusal["reason"]
    assert "zip submission.zip output.json ppl_output.json" in refusal["reason"]


def as_list(content, key):
    """A contest file as a list of objects with ids; `key` None for gold, whose objects are extended."""
    items = content.items()
    return [{"id": name, **value} if key is None else {"id": name, key: value} for name, value in items]


def test_files_with_lists(folder):
    expected = board("gold.json", "sent", *NO_SYNONYMS, "-o", "objects")
    gold = json.loads((folder / "gold.json").read_text())
    for name in QUALITIES:
        for file, key in (("output.json", "answers"), ("ppl_output.json", "perplexities")):
            path = folder / "sent" / name / file
            content = json.loads(path.read_text())
            write_json(path, list(content.values()) if name == "boreas" else as_list(content, key)[::-1])
    write_json(folder / "gold.json", as_list(gold, None))
    assert board("gold.json", "sent", *NO_SYNONYMS, "-o", "lists")["standings"] == expected["standings"]
    write_json(folder / "gold.json", list(gold.values()))  # without ids, so submissions need the order
    result = board("gold.json", "sent", *NO_SYNONYMS, "-o", "numbers", code=1)
    assert [row["name"] for row in result["refused"]] == ["alba", "cirrus"]
    assert result["standings"][0]["value"] == expected["standings"][1]["value"]


# CLARITY


def test_columns_of_clarity_can_be_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sent").mkdir()
    text = (FOLDER / "test.csv").read_text()
    (tmp_path / "test.csv").write_text(text.replace("index,", "row,", 1).replace("evasion_label", "gold", 1))
    (tmp_path / "original.csv").write_text(text)
    shutil.copy(FOLDER / "boreas.csv", tmp_path / "sent" / "boreas.csv")
    expected = board("original.csv", "sent", "-o", "original")["standings"]
    options = ("--map", "id=row", "--map", "evasion_label=gold", "--annotators", "annotator*")
    assert board("test.csv", "sent", "-o", "runs", *options)["standings"] == expected
    message = refused("gold.json", "sent", "--map", "id=row", code=1)
    assert "gold.json" in message


def test_submissions_to_clarity(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sent").mkdir()
    shutil.copy(FOLDER / "test.csv", tmp_path / "test.csv")
    shutil.copy(FOLDER / "alba.evasion.zip", tmp_path / "sent" / "alba.evasion.zip")
    shutil.copy(FOLDER / "boreas.csv", tmp_path / "sent" / "boreas.csv")
    (tmp_path / "sent" / "notes.md").write_text("no submission")
    result = board("test.csv", "sent", "-o", "runs")
    assert result["number"] == "composite_score"
    assert sorted(row["name"] for row in result["standings"]) == ["alba", "boreas"]
    for row in result["standings"]:
        run = load_run(tmp_path / "runs" / row["name"])
        assert row["value"] == run.results["composite"]["value"] == run["f1_any_match"]["value"]
    shutil.copy(FOLDER / "boreas.clarity.zip", tmp_path / "sent" / "late.zip")
    result = board("test.csv", "sent", "-o", "again", code=1)  # clarity labels do not determine evasion
    assert ([row["name"] for row in result["refused"]], len(result["standings"])) == (["late"], 2)
    result = board("test.csv", "sent", "--task", "clarity", "-o", "clarity")
    assert {row["name"] for row in result["standings"]} == {"alba", "boreas", "late"}
    assert result["standings"][0]["value"] == load_run("clarity/alba")["f1_strict"]["value"]
    message = refused("test.csv", "sent", "--questions", "q.json", code=2)
    assert "--questions has no effect on test.csv, which is scored as CLARITY's data" in message
    message = refused("test.csv", "sent", "--config", "mine.yaml", code=2)
    assert "--config has no effect on test.csv, which is scored as CLARITY's data" in message


# folders and kinds


def test_a_submission_named_as_the_result_is_refused_before_anything_is_scored(folder):
    (folder / "sent" / "cirrus").rename(folder / "sent" / "leaderboard.json")
    assert "'leaderboard.json', the name of the leaderboard. Rename it" in refused("gold.json", "sent", "-o", "runs")
    assert not (folder / "runs").exists()


def test_one_dialogue_per_type_gives_places_without_tests(folder):
    for name, quality in QUALITIES.items():
        gold, *_ = write_contest(folder / "few" / name, system(ord(name[0]), quality, each=1))
        gold.rename(folder / "few.json")
    result = board("few.json", "few", *NO_SYNONYMS, "-o", "runs")
    assert [row["rank"] for row in result["standings"]] == [None, None, None]
    assert [(row["place"], row["tied_with"]) for row in result["standings"]] == [(1, None), (2, None), (3, None)]
    message = mmeval("leaderboard", "few.json", "few", *NO_SYNONYMS, "-o", "again").stdout
    assert "Ties are not tested: chance cannot be estimated" in message
    assert re.search(r"1 +alba .*\n2 +boreas .*\n3 +cirrus ", message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"d1": ', "broken.json:1: TRUNCATED"),
        ('{"d1": {"type": "Text2Text", "reply": [["a"]]}}', "must be an object with `type` and `replies`"),
        ("{}", "EMPTY: the file has no dialogues"),
    ],
)
def test_bad_gold_files(folder, content, message):
    (folder / "broken.json").write_text(content)
    assert message in refused("broken.json", "sent", "-o", "runs")


def test_runs_are_not_overwritten(folder):
    (folder / "runs").mkdir()
    (folder / "runs" / "mine.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="runs already exists"):
        board("gold.json", "sent", "-o", "runs")
    assert [path.name for path in (folder / "runs").iterdir()] == ["mine.txt"]


def test_a_missing_gold_file(folder):
    assert "absent.json" in refused("absent.json", "sent", "-o", "runs")
    assert not (folder / "runs").exists()


def test_a_metric_that_no_run_has_is_refused_before_anything_is_scored(folder):
    message = refused("gold.json", "sent", "--by", "bleu", "-o", "out")
    assert "meteor, hidden_metric, composite_score" in message
    assert not (folder / "out").exists()


def test_files_that_are_not_submissions_are_named(folder):
    (folder / "sent" / "late.json").write_bytes(b"")
    done = mmeval("leaderboard", "gold.json", "sent", "-o", "out", "--workers", "1")
    assert "skipped, not a submission of this kind: late.json" in done.stderr


def test_a_leaderboard_is_overwritten(folder):
    scored = ("leaderboard", "gold.json", "sent", *NO_SYNONYMS, "-o", "runs", "--workers", "1", "--format", "json")
    first = json.loads(mmeval(*scored).stdout)
    assert "runs already exists. Name another folder with -o, or add --overwrite" in mmeval(*scored, code=1).stderr
    assert json.loads(mmeval(*scored, "--overwrite").stdout) == first
    (folder / "runs" / "mine.txt").write_text("mine")
    message = mmeval(*scored, "--overwrite", code=1).stderr
    assert "only the folder of a leaderboard can be overwritten" in message
    assert "runs is not one. It has mine.txt" in message
