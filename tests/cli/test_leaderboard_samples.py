"""`mmeval leaderboard`: answers to any data, joined by id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval import load_run
from tests.cli.leaderboard import board, places, refused
from tests.contests.dialogue.contest import write_json

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
