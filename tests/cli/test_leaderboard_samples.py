"""`mmeval leaderboard`: answers to any data, joined by id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval import load_run
from tests.cli.leaderboard import board, ranks, refused
from tests.contests.dialogue.contest import write_json

CAPTIONS = ["a dog runs on the beach", "a cat sleeps on a chair", "two birds fly over the sea", "a red car in the snow"]


def captions(folder, count=12):
    """A COCO pair of files and the same as JSONL; `good` repeats all references, `poor` some of them."""
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
    for name, texts in answers.items():
        (folder / "coco").mkdir(exist_ok=True)
        write_json(folder / "coco" / f"{name}.json", [{"image_id": n, "caption": text} for n, text in enumerate(texts)])
        sent(folder / "jsonl", name, texts)
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
    result = board("coco.json", "coco", "-o", "runs")
    assert result["number"] == "cider_d"
    assert ranks(result) == [("good", 1), ("poor", 2)]
    assert result["samples"] == 12
    assert set(result["standings"][0]["numbers"]) >= {"bleu", "rouge_l", "cider_d"}
    assert result["standings"][0]["value"] == load_run("runs/good")["cider_d"]["value"]


def test_samples_with_chosen_metrics(captioned):
    result = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "runs")
    assert (result["number"], ranks(result)) == ("rouge_l", [("good", 1), ("poor", 2)])
    result = board("data.jsonl", "jsonl", "--metrics", "rouge_l,bleu", "--by", "bleu", "-o", "more")
    assert (result["number"], ranks(result)) == ("bleu", [("good", 1), ("poor", 2)])
    assert result["standings"][0]["value"] == load_run("more/good")["bleu"]["value"]
    result = board("data.jsonl", "jsonl", "--metrics", "bleu", "--by", "bleu.bleu_1", "-o", "parts")
    assert result["standings"][0]["value"] == load_run("parts/good")["bleu"]["parts"]["bleu_1"]["value"]


def test_a_lower_value_can_be_better(captioned):
    perplexities = {"good": [1.5, 1.25, 2.0, 1.5], "poor": [9.0, 8.0, 9.5, 7.0]}
    for name, values in perplexities.items():
        rows = [{"id": str(n), "generated_answer": "x", "perplexity": values[n % 4] + n / 100} for n in range(12)]
        (captioned / "jsonl" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--metrics", "perplexity", "--map", "perplexity=perplexity", "--failed-answers", "1000")
    result = board("data.jsonl", "jsonl", *options, "-o", "runs")
    assert (result["direction"], ranks(result)) == ("lower", [("good", 1), ("poor", 2)])
    assert result["standings"][1]["behind"] == pytest.approx(6.8125)  # 8.375 - 1.5625
    assert [row["rank"] for row in result["standings"]] == [1, 2]


def test_with_failed_answers_left_out_a_submission_with_many_is_refused(captioned):
    references = captions(captioned)
    sent(captioned / "jsonl", "half", ["[ERROR] timeout" if n < 6 else text for n, text in enumerate(references)])
    options = ("--metrics", "rouge_l", "--failed-answers", "left-out")
    result = board("data.jsonl", "jsonl", *options, "-o", "runs", code=1)
    assert ranks(result) == [("good", 1), ("poor", 2)]
    reason = "rouge_l is scored for 6 of the 12 samples that other submissions have scored"
    assert result["refused"] == [{"name": "half", "reason": reason, "public_reason": reason}]
    assert (result["samples"], result["left_out"]) == (12, 0)
    assert result["signature"].endswith("|failures:left-out")
    result = board("data.jsonl", "jsonl", *options, "--allow-partial", "-o", "all")
    assert sorted(row["name"] for row in result["standings"]) == ["good", "half", "poor"]
    assert (result["samples"], result["left_out"]) == (12, 6)
    # All submissions are scored on the six samples that all of them have.
    assert {row["name"]: row["value"] for row in result["standings"]}["half"] == pytest.approx(1)


def test_only_the_submission_for_other_data_is_refused(captioned):
    sent(captioned / "jsonl", "other", ["x"] * 5)
    result = board("data.jsonl", "jsonl", "--metrics", "rouge_l", "-o", "runs", code=1)
    assert [row["name"] for row in result["refused"]] == ["other"]
    assert "MISSING: 7 of 12 ids have no answer: '5', '6', '7'" in result["refused"][0]["reason"]
    assert "MISSING" in result["refused"][0]["public_reason"]


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
def test_options_of_the_contest_are_refused_for_other_data(captioned, option, shown):
    message = refused("data.jsonl", "jsonl", *option, "-o", "runs", code=2)
    assert f"Error: {shown} has no effect on data.jsonl, which is scored as samples" in message
    assert not Path("runs").exists()


def test_vqa_annotations_are_ranked_by_vqa_accuracy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = [{"answer": "yes"}] * 8 + [{"answer": "no"}] * 2
    write_json(
        tmp_path / "annotations.json",
        {"annotations": [{"question_id": n, "image_id": n, "answers": people} for n in range(12)]},
    )
    (tmp_path / "sent").mkdir()
    for name, answer in (("good", "yes"), ("poor", "no")):
        write_json(tmp_path / "sent" / f"{name}.json", [{"question_id": n, "answer": answer} for n in range(12)])
    result = board("annotations.json", "sent", "-o", "runs")
    assert (result["number"], ranks(result)) == ("vqa_accuracy", [("good", 1), ("poor", 2)])
    assert [row["value"] for row in result["standings"]] == pytest.approx([1.0, 0.6])  # 8 and 2 of 10 people
