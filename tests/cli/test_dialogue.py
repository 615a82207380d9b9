"""`mmeval dialogue`: the table, the JSON output, and errors."""

from __future__ import annotations

import json
import re
import zipfile

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run, resume
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import InputError, MultimodalEvalError
from multimodal_eval.dialogue import integral_score
from multimodal_eval.evaluation.metrics import hidden_metric
from tests.cli.command_line import mmeval
from tests.contests.dialogue.contest import TYPES, WORKED, system, write_contest, write_json
from tests.parts import interrupt

FILES = ("gold.json", "output.json", "ppl_output.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_contest(tmp_path, WORKED)
    return tmp_path


def dialogue(*arguments):
    done = CliRunner().invoke(cli, ["dialogue", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments, code=1):
    """The message of the command's error, or of wrong usage."""
    done = CliRunner().invoke(cli, ["dialogue", *arguments])
    error = done.exception
    if isinstance(error, MultimodalEvalError):
        assert error.exit_code == code
        return str(error)
    assert done.exit_code == code == 2, (done.output, error)
    return done.output


def as_json(*arguments):
    return json.loads(dialogue(*arguments, "--format", "json"))


def cells(out, start):
    """The cells of the first table row with this start."""
    line = next(line for line in out.splitlines() if line.strip(" │┃|").startswith(start))
    return [cell.strip() for cell in re.split(r"[│┃|]|\s{2,}", line) if cell.strip()]


def test_the_table_shows_every_part_of_the_score(folder):
    out = dialogue(*FILES, "--synonyms", "en=none", "-o", "run", "-v")
    score = integral_score(WORKED, synonyms="none")
    assert cells(out, "type") == [
        "type",
        "N",
        "METEOR",
        "HM",
        "mean",
        "std. error",
        "95% interval",
        "replies",
        "weight",
        "part",
    ]
    replies = {name: sum(len(worked["replies"]) for worked in WORKED if worked["type"] == name) for name in TYPES}
    for stratum in score.types:
        row = cells(out, stratum.type)
        values = [f"{value:.4f}" for value in (stratum.meteor.value, stratum.hidden.value, stratum.mean.value)]
        assert row[:5] == [stratum.type, str(stratum.n), *values]
        assert row[-3:] == [str(replies[stratum.type]), f"{stratum.weight:g}", f"{stratum.part:.4f}"]
    total = cells(out, "integral score")
    assert total[:4] == ["integral score", "11", f"{score.meteor.value:.4f}", f"{score.hidden.value:.4f}"]
    assert total[-1] == f"{score.value:.4f}"
    assert f"{score.low:.4f} … {score.high:.4f}" in total
    assert "11 clusters in 4 strata" in " ".join(out.split())
    assert "each dialogue is a cluster, each type a stratum" in " ".join(out.split())
    assert "rule:confidence|errors:none|strata:0.1*Text2Text+0.2*Image2Text" in out
    assert "run folder: run" in out


def test_the_worst_replies_are_shown_and_counted(folder):
    report = as_json(*FILES, "--synonyms", "en=none", "-o", "a", "--worst", "3")["dialogue"]
    # METEOR 0 for t2/1, a1/2, a4/1, b1/2: HM 1/4, 1/2, 1/2, 1/2
    assert [reply["id"] for reply in report["worst"]] == ["t2/1", "a1/2", "a4/1"]
    assert report["worst"][0] | {"question": None} == {
        "id": "t2/1",
        "type": "Text2Text",
        "question": None,
        "answer": "yes",
        "variants": ["no", "never"],
        "perplexity": 4,
        "composite_score": 0.125,
        "meteor": 0,
        "hidden_metric": 0.25,
    }
    out = dialogue(*FILES, "--synonyms", "en=none", "-o", "b")
    assert "(blank)" in out
    assert "the worst replies" not in dialogue(*FILES, "--worst", "0", "-o", "c")


def test_json_and_the_weighted_parts_sum_to_the_integral(folder):
    results = as_json(*FILES, "--synonyms", "en=none", "-o", "run")
    report = results["dialogue"]
    expected = integral_score(WORKED, synonyms="none")
    assert report["integral"]["value"] == results["composite"]["value"] == expected.value
    assert sum(stratum["part"] for stratum in report["types"]) == pytest.approx(expected.value, abs=1e-15)
    assert [stratum["n"] for stratum in report["types"]] == [3, 2, 4, 2]
    assert results["run"] == "run"
    assert load_run("run").results["composite"] == results["composite"]


def test_score_is_the_default_command(folder):
    assert as_json(*FILES, "-o", "a")["composite"] == as_json("score", *FILES, "-o", "b")["composite"]


def test_options_change_the_score_and_its_signature(folder):
    weights = {"Text2Text": 0.25, "Audio2Text": 0.75}
    options = [part for name, weight in weights.items() for part in ("--weight", f"{name}={weight}")]
    results = as_json(*FILES, *options, "--synonyms", "en=none", "--language", "ru", "-o", "run")
    expected = integral_score(WORKED, weights=weights, synonyms="none", language="ru")
    assert results["composite"]["value"] == expected.value
    assert "language:ru" in results["metrics"]["meteor"]["signature"]
    (folder / "contest.yaml").write_text("strata: {by: dialogue_type, weights: {Text2Text: 0.25, Audio2Text: 0.75}}\n")
    again = as_json(*FILES, "--config", "contest.yaml", "--synonyms", "en=none", "--language", "ru", "-o", "again")
    assert again["composite"] == results["composite"]


def test_a_rule_from_a_plug_in(folder, monkeypatch):
    (folder / "rule.py").write_text(
        "from multimodal_eval.dialogue import hidden_rule\n\n\n"
        "@hidden_rule('squared')\ndef squared(sample):\n    return 1 / sample.perplexity ** 2\n"
    )
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))
    assert "no hidden rule is named 'squared'" in refused(*FILES, "--rule", "squared", "-o", "other")
    assert not (folder / "other").exists()
    results = as_json(*FILES, "--plugin", "rule.py", "--rule", "squared", "-o", "run")
    assert re.search(r"rule:squared:[0-9a-f]+", results["metrics"]["hidden_metric"]["signature"])
    # b2: 1; b1: (1/4 + 1/4 + 1/4 + 1/16) / 4 = 13/64
    assert results["dialogue"]["types"][3]["hidden_metric"]["value"] == pytest.approx((1 + 13 / 64) / 2)


def test_a_missed_threshold(folder):
    done = mmeval("dialogue", *FILES, "-o", "a", "--fail-under", "composite=0.99", code=3)
    assert "composite is 0.6" in done.stderr
    assert "below 0.99" in done.stderr
    assert "integral score" in done.stdout  # the scores are shown and kept
    assert load_run("a").results["n"] == 19
    dialogue(*FILES, "-o", "b", "--fail-under", "composite=0.5", "--fail-under", "meteor=0.1")
    assert "meteor is 0." in refused(*FILES, "-o", "d", "--fail-under", "meteor=0.99", code=3)
    assert "this run does not compute it" in refused(*FILES, "-o", "c", "--fail-under", "cider=0.5", code=2)
    assert not (folder / "c").exists()


def test_wrong_arguments(folder):
    assert "WEIGHTS" in refused(*FILES, "--weight", "Text2Text=0.5", "-o", "x")
    assert "Did you mean 'choice'" in refused(*FILES, "--rule", "choise", "-o", "x")
    assert "NOT_FOUND" in refused("gold.json", "output.json", "absent.json", "-o", "x")
    assert "PPL is missing. Name ppl_output.json too" in refused("gold.json", "output.json", code=2)
    assert not (folder / "x").exists()


def test_a_folder_or_a_zip_with_both_files(folder):
    plain = dialogue(*FILES, "-o", "plain")
    (folder / "mine").mkdir()
    with zipfile.ZipFile(folder / "mine.zip", "w") as archive:
        for name in ("output.json", "ppl_output.json"):
            archive.write(folder / name, name)
            (folder / name).rename(folder / "mine" / name)
    for submission in ("mine", "mine.zip"):
        out = dialogue("gold.json", submission, "-o", f"run-{submission}")
        assert out.replace(f"run-{submission}", "plain") == plain
    assert "none.zip: NOT_FOUND: no such file" in refused("gold.json", "none.zip", "-o", "x")
    with zipfile.ZipFile(folder / "half.zip", "w") as archive:
        archive.write(folder / "mine" / "output.json", "output.json")
    message = refused("gold.json", "half.zip", "-o", "x")
    assert (
        "half.zip: MEMBER: the archive must contain one file 'ppl_output.json'. Got no file with that name" in message
    )
    assert not (folder / "x").exists()


def test_types_without_dialogues(folder):
    write_contest(folder, [worked for worked in WORKED if worked["type"] != "Audio2Text"])
    assert "no dialogue has the type Audio2Text" in refused(*FILES, "-o", "run")
    out = dialogue(*FILES, "-o", "run", "--present-types-only")
    assert "no dialogue has the type Audio2Text; the other weights are scaled up" in out
    assert "Text2Text 0.142857" in out


def test_a_type_with_a_single_dialogue_has_no_interval(folder):
    write_contest(folder, [worked for worked in WORKED if worked["id"] != "b1"])
    out = dialogue(*FILES, "-o", "run")
    assert "no interval: 10 clusters in 4 strata, one of which has a single cluster" in out


def test_two_submissions_are_compared_within_their_types(folder):
    for name, quality in (("alba", 0.8), ("boreas", 0.3)):
        write_contest(folder / name, system(ord(name[0]), quality))
        files = [f"{name}/{file}" for file in FILES]
        dialogue(*files, "-o", f"runs/{name}", "--synonyms", "en=none")
    done = CliRunner().invoke(
        cli,
        ["compare", "runs/alba", "runs/boreas", "--metrics", "composite", "--format", "json"],
        catch_exceptions=False,
    )
    (number,) = json.loads(done.stdout)["numbers"]
    runs = [load_run(f"runs/{name}").results["composite"]["value"] for name in ("alba", "boreas")]
    assert [entry["value"] for entry in number["systems"]] == runs
    assert number["pairs"][0]["verdict"] == "worse"
    assert number["clusters"] == 32
    assert "within strata" in number["pairs"][0]["method"]


def test_a_run_can_be_rescored_with_other_weights(folder):
    dialogue(*FILES, "-o", "run", "--synonyms", "en=none")
    config = "strata: {by: dialogue_type, weights: {Text2Text: 1, Image2Text: 0, Audio2Text: 0, Image-Audio2Text: 0}}\n"
    (folder / "other.yaml").write_text(config)
    CliRunner().invoke(cli, ["rescore", "run", "--config", "other.yaml", "-o", "new"], catch_exceptions=False)
    assert load_run("new").results["composite"]["value"] == pytest.approx(743 / 1386, abs=1e-12)


def test_a_killed_run_is_resumed(folder, monkeypatch):
    dialogue(*FILES, "-o", "whole")
    with monkeypatch.context() as patch:
        interrupt(patch, "Score")
        CliRunner().invoke(cli, ["dialogue", *FILES, "-o", "broken"])
    assert resume("broken").results == load_run("whole").results


def test_a_resumed_run_is_refused_too_if_the_rule_fails(folder, monkeypatch):
    (folder / "rule.py").write_text(
        "from multimodal_eval.dialogue import hidden_rule\n\n\n"
        "@hidden_rule('linear')\ndef linear(sample):\n    return sample.perplexity / 9\n"  # 10 is above 9
    )
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))
    with monkeypatch.context() as patch:
        interrupt(patch, "Score")
        CliRunner().invoke(cli, ["dialogue", *FILES, "--rule", "linear", "--plugin", "rule.py", "-o", "broken"])
    done = CliRunner().invoke(cli, ["score", "--resume", "broken", "--plugin", "rule.py"])
    assert "UNSCORED: hidden_metric must score every sample: RANGE: the value 1.11" in str(done.exception)
    assert "(id 'i2/1')" in str(done.exception)
    assert (folder / "broken").exists()  # a resumed folder is never deleted
    assert not (folder / "broken" / "results.json").exists()  # and is not finished
    with pytest.raises(InputError, match="must score every sample"):
        resume("broken", plugins=["rule.py"])


def test_questions_are_shown_with_the_worst_replies(folder):
    questions = {
        worked["id"]: [[{"type": "text", "content": f"What is {worked['id']}?"}] for _ in worked["replies"]]
        for worked in WORKED
    }
    write_json(folder / "questions.json", questions)
    results = as_json(*FILES, "--questions", "questions.json", "-o", "run")
    assert results["dialogue"]["worst"][0]["question"] == "What is t2?"
    assert "8 dialogues have parts that do not match their type" in str(load_run("run").info.input_notes)
