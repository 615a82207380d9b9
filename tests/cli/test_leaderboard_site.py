"""`mmeval leaderboard --site` and `--from`: what is written, what is refused, and what is said."""

from __future__ import annotations

import json

import pytest

from multimodal_eval.analysis.leaderboard import read_leaderboard
from tests.cli.command_line import mmeval
from tests.cli.leaderboard import board, refused
from tests.report.site.boards import write_answers
from tests.report.site.parsed import broken_links, files_of


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """The working directory with gold.jsonl and sent/, one of whose submissions is refused."""
    monkeypatch.chdir(tmp_path)
    write_answers(tmp_path)
    return tmp_path


SCORE = ("gold.jsonl", "sent", "--metrics", "rouge_l,wer", "-o", "runs")


def test_scoring_and_publishing_in_one_step(sent):
    done = mmeval("leaderboard", *SCORE, "--workers", "1", "--site", "site", "--title", "Streets & <b>", code=1)
    assert "site: site/index.html" in done.stdout
    assert broken_links(sent / "site") == []
    page = (sent / "site" / "index.html").read_text()
    assert "<title>Streets &amp; &lt;b&gt;</title>" in page
    assert read_leaderboard("runs").command == "mmeval leaderboard gold.jsonl sent --metrics rouge_l,wer"


def test_publishing_runs_that_are_scored(sent):
    board(*SCORE, "--site", "first", code=1)
    done = mmeval("leaderboard", "--from", "runs", "--site", "second")
    assert "refused late: " in done.stdout
    assert files_of(sent / "first") == files_of(sent / "second")
    result = json.loads(mmeval("leaderboard", "--from", "runs", "--format", "json").stdout)  # without a site
    assert result["standings"] == json.loads((sent / "runs" / "leaderboard.json").read_text())["standings"]


def test_json_is_alone_on_standard_output(sent):
    result = board(*SCORE, "--site", "site", code=1)
    assert result["number"] == "rouge_l"


def test_publishing_again_replaces_the_site(sent):
    board(*SCORE, "--site", "site", code=1)
    (sent / "sent" / "alba.jsonl").unlink()
    (sent / "sent" / "late.jsonl").unlink()
    board("gold.jsonl", "sent", "--metrics", "rouge_l,wer", "-o", "more", "--site", "site")
    assert not (sent / "site" / "submissions" / "alba").exists()
    assert 'id="refused"' not in (sent / "site" / "index.html").read_text()


def test_samples_are_published_only_on_request(sent):
    board(*SCORE, code=1)
    done = mmeval("leaderboard", "--from", "runs", "--site", "site", "--site-samples")
    assert "shows samples with their references" in done.stderr
    assert any(b"okapi-3" in content for content in files_of(sent / "site").values())
    mmeval("leaderboard", "--from", "runs", "--site", "site")  # and they are gone again
    assert not any(b"okapi" in content for content in files_of(sent / "site").values())


def test_a_folder_that_is_not_a_site_is_refused_before_anything_is_scored(sent):
    (sent / "thesis").mkdir()
    (sent / "thesis" / "text.tex").write_text("mine")
    message = refused(*SCORE, "--site", "thesis")
    assert "thesis is not empty and not a site of mmeval: it has 'text.tex'" in message
    assert not (sent / "runs").exists()
    message = refused(*SCORE, "--site", "gold.jsonl")
    assert "gold.jsonl is a file, not a folder for a site" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gold.jsonl",), "Missing argument 'SUBMISSIONS'. Or name a folder of scored runs with --from"),
        ((), "Missing argument 'GOLD'"),
        ((*SCORE, "--title", "x"), "--title needs --site"),
        ((*SCORE, "--site-samples"), "--site-samples needs --site"),
        ((*SCORE, "--site", "site", "--title", " "), "--title must have 1 to 200 characters"),
        ((*SCORE, "--site", "site", "--title", "x" * 201), "--title must have 1 to 200 characters"),
        ((*SCORE, "--site", "runs"), "-o and --site name the same folder"),
        (("gold.jsonl", "sent", "--from", "runs"), "GOLD has no effect with --from"),
        (("--from", "runs", "--by", "wer"), "--by has no effect with --from"),
        (("--from", "runs", "-o", "x"), "--output has no effect with --from"),
        (("--from", "runs", "--allow-partial"), "--allow-partial has no effect with --from"),
        (("--from", "runs", "--weight", "x=1"), "--weight has no effect with --from"),
    ],
)
def test_wrong_usage(sent, arguments, message):
    assert message in mmeval("leaderboard", *arguments, code=2).stderr
    assert not (sent / "runs").exists()
    assert not (sent / "site").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "runs has no leaderboard.json. Name the folder that `mmeval leaderboard` has written (-o)"),
        ("[]", "leaderboard.json cannot be read"),
        ("{", "leaderboard.json cannot be read"),
        ('{"number": "\ud800"}', "leaderboard.json cannot be read"),
    ],
)
def test_a_folder_without_a_leaderboard(sent, content, message):
    (sent / "runs").mkdir()
    if content is not None:
        (sent / "runs" / "leaderboard.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert message in mmeval("leaderboard", "--from", "runs", "--site", "site", code=1).stderr
    assert not (sent / "site").exists()


@pytest.mark.parametrize("name", ["../gold", "/etc", "..", "", "alba/../alba", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(sent, name):
    result = board(*SCORE, code=1)
    del result["runs"]
    result["standings"][0]["name"] = name
    (sent / "runs" / "leaderboard.json").write_text(json.dumps(result))
    message = mmeval("leaderboard", "--from", "runs", "--site", "site", code=1).stderr
    assert "which is not the name of a run folder beside it" in message
    assert not (sent / "site").exists()


def test_a_name_that_occurs_twice_is_refused(sent):
    result = board(*SCORE, code=1)
    del result["runs"]
    result["standings"][1]["name"] = result["standings"][0]["name"]
    (sent / "runs" / "leaderboard.json").write_text(json.dumps(result))
    assert "twice" in mmeval("leaderboard", "--from", "runs", code=1).stderr


def test_a_run_that_is_gone_is_named(sent):
    board(*SCORE, code=1)
    (sent / "runs" / "cirrus").rename(sent / "elsewhere")
    message = mmeval("leaderboard", "--from", "runs", "--site", "site", code=1).stderr
    assert "runs/cirrus is not a run folder" in message
    assert not (sent / "site").exists()


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (("--by", "wer", "--failed-answers", "blank"), "… --by wer --failed-answers blank"),
        (("--option", "wer.rule=jiwer@4"), "… --option wer.rule=jiwer@4"),
        (("--allow-partial", "--workers", "1"), "… --allow-partial"),
    ],
)
def test_the_command_to_repeat_it(sent, options, command):
    (sent / "sent" / "late.jsonl").unlink()
    result = board(*SCORE, *options)
    assert result["command"] == command.replace("…", "mmeval leaderboard gold.jsonl sent --metrics rouge_l,wer")


def test_the_command_has_no_folders_of_this_machine_and_is_quoted(sent):
    (sent / "sent" / "late.jsonl").unlink()
    (sent / "sent").rename(sent / "sent in May")
    arguments = (str(sent / "gold.jsonl"), str(sent / "sent in May"), "--metrics=rouge_l", "-oruns")
    assert board(*arguments)["command"] == "mmeval leaderboard gold.jsonl 'sent in May' --metrics rouge_l"
