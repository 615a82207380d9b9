"""Nothing of a single sample is in a site: no id, no reference, no answer, and no path of the organiser's machine."""

from __future__ import annotations

import json
import re
import shutil
from itertools import chain

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.leaderboard import leaderboard
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.judge_records import JudgesReport
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.site.build import write_site
from multimodal_eval.report.site.content import published_run, without_folders
from tests.cli.leaderboard import board
from tests.contests.clarity.make_data import FOLDER
from tests.contests.dialogue.contest import system, write_contest, write_json
from tests.report.site.boards import CONFIG, FULL_REASON, samples, secrets, write_answers
from tests.report.site.parsed import files_of


def leaks(site, words):
    """The words that a file of the site or its name contains, in any letter case."""
    return [
        (name, word)
        for name, content in files_of(site).items()
        for word in words
        if word.encode().lower() in content.lower() or word.lower() in name.lower()
    ]


def test_a_site_of_runs_has_nothing_of_a_sample(site):
    assert leaks(site, secrets()) == []


def test_with_samples_they_are_shown(board_runs, tmp_path):
    write_site(tmp_path / "site", *board_runs, with_samples=True)
    shown = {word for _, word in leaks(tmp_path / "site", secrets())}
    assert shown == {"okapi", "quagga", "tapir", "bongo", "gnu0", "gnu1", "/srv/secret"}
    index = (tmp_path / "site" / "index.html").read_text()
    assert FULL_REASON.replace("'", "&#39;") in index
    assert "The organiser has the full reasons" not in index


def test_submissions_to_any_data(tmp_path):
    gold, sent = write_answers(tmp_path)
    result = board(str(gold), str(sent), "--metrics", "rouge_l", "-o", str(tmp_path / "runs"), *_site(tmp_path), code=1)
    assert "okapi" in result["refused"][0]["reason"]
    assert leaks(tmp_path / "site", [*secrets(), str(tmp_path), tmp_path.name]) == []
    published = json.loads((tmp_path / "site" / "leaderboard.json").read_text())
    assert published["refused"][0]["reason"] == (
        "MISSING: ids without an answer; UNKNOWN: answers to ids that the data do not have"
    )
    assert published["command"] == "mmeval leaderboard gold.jsonl sent --metrics rouge_l"
    assert "gold.jsonl" in (tmp_path / "site" / "methods.html").read_text()


def _site(folder):
    return ("--site", str(folder / "site"))


def test_dialogues(tmp_path):
    for name, quality in {"alba": 0.9, "boreas": 0.4, "caecias": 0.4}.items():
        files = write_contest(tmp_path / "sent" / name, system(ord(name[0]), quality))
        for file in files:  # ids that are found nowhere else
            file.write_text(re.sub(r'"d(\d+)"', r'"okapi-\1"', file.read_text()))
        files[0].rename(tmp_path / "gold.json")
    perplexities = json.loads((tmp_path / "sent" / "caecias" / "ppl_output.json").read_text())
    first = next(iter(perplexities))
    assert first.startswith("okapi-")
    write_json(tmp_path / "sent" / "caecias" / "ppl_output.json", perplexities | {first: "x"})
    arguments = ("--synonyms", "en=none", "-o", str(tmp_path / "runs"), *_site(tmp_path))
    result = board(str(tmp_path / "gold.json"), str(tmp_path / "sent"), *arguments, code=1)
    assert "okapi" in result["refused"][0]["reason"]
    gold = json.loads((tmp_path / "gold.json").read_text())
    answers = json.loads((tmp_path / "sent" / "alba" / "output.json").read_text())
    variants = {text for dialogue in gold.values() for reply in dialogue["replies"] for text in reply}
    texts = {text for text in {*variants, *chain(*answers.values())} if len(text) > 12}
    assert len(texts) > 20
    assert leaks(tmp_path / "site", ["okapi", str(tmp_path), *texts]) == []


def test_clarity(tmp_path):
    (tmp_path / "sent").mkdir()
    shutil.copy(FOLDER / "test.csv", tmp_path / "test.csv")
    for name in ("alba.evasion.zip", "boreas.csv"):
        shutil.copy(FOLDER / name, tmp_path / "sent" / name)
    board(str(tmp_path / "test.csv"), str(tmp_path / "sent"), "-o", str(tmp_path / "runs"), *_site(tmp_path))
    notes = [note for name in ("alba", "boreas") for note in Run(tmp_path / "runs" / name).info.input_notes]
    assert any("Contradictory" in note for note in notes)  # a label of an annotator, in a note
    words = ["Contradictory", "harbour bridge", "tram line", "flood wall", str(tmp_path)]
    assert leaks(tmp_path / "site", words) == []


# Records


def test_settings_have_names_instead_of_paths_and_addresses():
    config = {
        "labels": "/home/ada/labels.yaml",
        "plugins": ["/home/ada/rule.py", "C:\\Users\\ada\\rule.py", "rule.py", "~/rule.py"],
        "options": {"meteor": {"table": "/data/words.db", "alpha": 0.5}},
        "error_patterns": ["/error/.*"],
        "generation": {"model": "a:b", "base_url": "http://10.0.0.7/v1"},
    }
    published = without_folders(config)
    assert published["labels"] == "labels.yaml"
    assert published["plugins"] == ["rule.py"] * 4
    assert published["options"] == {"meteor": {"table": "words.db", "alpha": 0.5}}
    assert published["error_patterns"] == ["/error/.*"]
    assert published["generation"] == {"model": "a:b", "base_url": None}
    msgspec.convert(published, RunConfig)


def test_judges_are_published_without_quotations_of_replies(board_runs, tmp_path):
    runs, _ = board_runs
    run = Run(runs / "alba").save(tmp_path / "alba")
    judging = {"wer": {"settings": {}, "addresses": ["http://10.0.0.7/v1"]}}
    info = msgspec.convert({**msgspec.to_builtins(run.info), "judging": judging}, type(run.info))
    findings = {"form": "scale", "models": ["a:b"], "questions": 4, "unreadable": {"no number in 'quagga'": 2}}
    run.folder.write_judges(msgspec.convert({"metrics": {"wer": findings}}, JudgesReport))
    public = published_run(Run(run.folder, None, info, run.outcome))
    report = public.folder.read_judges()
    assert report is not None
    assert report.metrics["wer"].unreadable == {"not readable": 2}
    assert public.info.judging["wer"].addresses == []
    assert public.folder.label == "alba"


def test_verdicts_without_a_stored_summary_are_not_summarised_again(board_runs):
    """The summary would quote replies of the judge."""
    run = Run(board_runs[0] / "alba")
    info = msgspec.convert({**msgspec.to_builtins(run.info), "judging": {"wer": {"settings": {}}}}, type(run.info))
    assert published_run(Run(run.folder, None, info, run.outcome)).info.judging == {}


@pytest.mark.parametrize("with_samples", [False, True])
def test_reasons_and_notes_are_only_in_the_run(board_runs, with_samples):
    run = Run(board_runs[0] / "cirrus")
    info = msgspec.structs.replace(run.info, input_notes=["okapi"])
    public = published_run(Run(run.folder, None, info, run.outcome), with_samples=with_samples)
    reasons = [reason.reason for entry in public.entries.values() for reason in entry.reasons]
    assert any("bongo" in reason for reason in reasons) == with_samples
    assert public.info.input_notes == (["okapi"] if with_samples else [])
    assert any("bongo" in reason.reason for entry in run.entries.values() for reason in entry.reasons)


def test_a_leaderboard_with_slices(tmp_path):
    config = {**CONFIG, "by": ["place"]}
    for name in ("alba", "cirrus"):
        evaluate(samples(name, 5), config=config, output=tmp_path / "runs" / name)
    ranked = leaderboard(tmp_path / "runs", ["alba", "cirrus"], allow_partial=True)
    write_site(tmp_path / "site", tmp_path / "runs", ranked)
    # The organiser asked for these slices: their values are published, and still nothing of a sample.
    assert {word for _, word in leaks(tmp_path / "site", secrets())} == {"gnu0", "gnu1"}
