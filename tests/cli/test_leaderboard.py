"""`mmeval leaderboard`: submissions of every kind, ranked with ties; refused ones have no place."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.cli.main import cli
from multimodal_eval.contests.submissions import kind_of, submissions_in
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RunFolderError
from multimodal_eval.evaluation.metrics import hidden_metric
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


def board(*arguments, code=0):
    done = CliRunner().invoke(
        cli, ["leaderboard", *arguments, "--format", "json", "--workers", "1"], catch_exceptions=False
    )
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def refused(*arguments, code=1):
    """What the command says where it fails in our own way, or for wrong usage."""
    done = CliRunner().invoke(cli, ["leaderboard", *arguments, "--workers", "1"])
    error = done.exception
    if isinstance(error, MultimodalEvalError):
        assert error.exit_code == code
        return str(error)
    assert done.exit_code == code == 2, (done.output, error)
    return done.output


def places(found):
    return [(own["name"], own["rank"]) for own in found["standings"]]


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
        assert own["numbers"] == {name: entry["value"] for name, entry in run.entries.items()}
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


# other data

CAPTIONS = ["a dog runs on the beach", "a cat sleeps on a chair", "two birds fly over the sea", "a red car in the snow"]


def captions(folder, count=12):
    """A COCO pair of files and the same as JSONL; `good` repeats the references, `poor` does so at times."""
    folder.mkdir(exist_ok=True)
    references = [f"{CAPTIONS[n % 4]} number {n}" for n in range(count)]
    coco = {
        "images": [{"id": n} for n in range(count)],
        "annotations": [{"id": n, "image_id": n, "caption": text} for n, text in enumerate(references)],
    }
    write_json(folder / "coco.json", coco)
    rows = [{"id": str(n), "references": [text]} for n, text in enumerate(references)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = {"good": references, "poor": [text if n % 4 == 0 else "a man" for n, text in enumerate(references)]}
    for name, said in answers.items():
        (folder / "coco").mkdir(exist_ok=True)
        write_json(folder / "coco" / f"{name}.json", [{"image_id": n, "caption": text} for n, text in enumerate(said)])
        sent(folder / "jsonl", name, said)
    return references


def sent(folder, name, answers):
    folder.mkdir(exist_ok=True)
    rows = [{"id": str(n), "generated_answer": text} for n, text in enumerate(answers)]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def captioned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    captions(tmp_path)
    return tmp_path


def test_coco_files_are_ranked_by_cider_d(captioned):
    found = board("coco.json", "coco", "-o", "runs")
    assert found["number"] == "cider_d"
    assert places(found) == [("good", 1), ("poor", 2)]
    assert found["samples"] == 12
    assert set(found["standings"][0]["numbers"]) >= {"bleu", "rouge_l", "cider_d"}
    assert found["standings"][0]["value"] == load_run("runs/good")["cider_d"]["value"]


def test_samples_with_metrics_of_ones_choice(captioned):
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "runs")
    assert (found["number"], places(found)) == ("rouge_l", [("good", 1), ("poor", 2)])
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l,bleu", "--by", "bleu", "-o", "more")
    assert (found["number"], places(found)) == ("bleu", [("good", 1), ("poor", 2)])
    assert found["standings"][0]["value"] == load_run("more/good")["bleu"]["value"]
    found = board("data.jsonl", "jsonl", "--metrics", "bleu", "--by", "bleu.bleu_1", "-o", "parts")
    assert found["standings"][0]["value"] == load_run("parts/good")["bleu"]["parts"]["bleu_1"]["value"]


def test_a_lower_number_can_be_better(captioned):
    said = {"good": [1.5, 1.25, 2.0, 1.5], "poor": [9.0, 8.0, 9.5, 7.0]}
    for name, values in said.items():
        rows = [{"id": str(n), "generated_answer": "x", "perplexity": values[n % 4] + n / 100} for n in range(12)]
        (captioned / "jsonl" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = board("data.jsonl", "jsonl", "--metrics", "perplexity", "-o", "runs")
    assert (found["direction"], places(found)) == ("lower", [("good", 1), ("poor", 2)])
    assert found["standings"][1]["behind"] == pytest.approx(6.8125)  # 8.375 - 1.5625
    assert [own["rank"] for own in found["standings"]] == [1, 2]


def test_a_submission_without_many_answers_is_refused_unless_told(captioned):
    references = captions(captioned)
    sent(captioned / "jsonl", "half", ["[ERROR] timeout" if n < 6 else text for n, text in enumerate(references)])
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "runs", code=1)
    assert places(found) == [("good", 1), ("poor", 2)]
    assert found["refused"] == [
        {"name": "half", "reason": "rouge_l is scored for 6 of the 12 samples that others have"}
    ]
    assert (found["samples"], found["left_out"]) == (12, 0)
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "--allow-partial", "-o", "all")
    assert sorted(own["name"] for own in found["standings"]) == ["good", "half", "poor"]
    assert (found["samples"], found["left_out"]) == (12, 6)
    # All on the six that all have.
    assert {own["name"]: own["value"] for own in found["standings"]}["half"] == pytest.approx(1)


def test_up_to_1_percent_of_unscored_samples_is_left_out_for_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    references = captions(tmp_path, 200)
    sent(tmp_path / "jsonl", "nearly", ["[ERROR] x" if n < 2 else text for n, text in enumerate(references)])
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "runs")
    assert (found["samples"], found["left_out"], len(found["standings"])) == (200, 2, 3)
    sent(tmp_path / "jsonl", "nearly", ["[ERROR] x" if n < 3 else text for n, text in enumerate(references)])
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "more", code=1)
    assert [own["name"] for own in found["refused"]] == ["nearly"]


def test_a_submission_for_other_data_is_refused_alone(captioned):
    sent(captioned / "jsonl", "other", ["x"] * 5)
    found = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "runs", code=1)
    assert [own["name"] for own in found["refused"]] == ["other"]
    assert "UNMATCHED" in found["refused"][0]["reason"]


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        (("--weight", "Text2Text=1"), "--weight"),
        (("--synonyms", "en=none"), "--synonyms"),
        (("--questions", "q.json"), "--questions"),
        (("--rule", "choice"), "--rule"),
        (("--present-types-only",), "--present-types-only"),
    ],
)
def test_options_of_the_contest_do_not_go_with_other_data(captioned, option, shown):
    told = refused("data.jsonl", "jsonl", *option, "-o", "runs", code=2)
    assert f"Error: {shown} does not go with data.jsonl: it is scored as samples" in told
    assert not Path("runs").exists()


# folders and kinds


def test_what_a_folder_of_submissions_is(tmp_path):
    def any_file(path):
        return path.is_file()

    with pytest.raises(ConfigError, match="must be a folder"):
        submissions_in(tmp_path / "absent", any_file)
    with pytest.raises(ConfigError, match="holds no submission"):
        submissions_in(tmp_path, any_file)
    for name in ("b.json", "a.jsonl.gz", ".hidden.json", "_notes.json"):
        (tmp_path / name).write_text("")
    assert [own.name for own in submissions_in(tmp_path, any_file)] == ["a", "b"]
    (tmp_path / "b.csv").write_text("")
    with pytest.raises(ConfigError, match="holds two submissions named 'b'"):
        submissions_in(tmp_path, any_file)


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


def test_kinds_of_gold(tmp_path):
    gold = {"d1": {"type": "Text2Text", "replies": [["a"]]}}
    contents = {
        "dialogue.json": json.dumps(gold).encode(),
        "bom.json": b"\xef\xbb\xbf \n" + json.dumps(gold).encode(),
        "dialogue.json.gz": gzip.compress(json.dumps(gold).encode()),
        "coco.json": b'{"info": {"year": 2014}, "images": [], "annotations": []}',
        "array.json": b'[{"id": "1", "references": ["a"]}]',
        "rows.jsonl": b'{"id": "1", "replies": ["a"]}\n',
        "evasion.csv": b"index,evasion_label\n1,Explicit\n",
        "clarity.csv": b"index,clarity_label\n1,Clear Reply\n",
        "samples.csv": b"id,references\n1,a\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert {name: kind_of(tmp_path / name) for name in contents} == {
        "dialogue.json": "dialogue",
        "bom.json": "dialogue",
        "dialogue.json.gz": "dialogue",
        "coco.json": "samples",
        "array.json": "samples",
        "rows.jsonl": "samples",
        "evasion.csv": "clarity",
        "clarity.csv": "clarity",
        "samples.csv": "samples",
    }


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
