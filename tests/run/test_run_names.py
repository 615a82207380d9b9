"""How a run is called without -o: after its model, or the file of its answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval.run.start import file_name, new_folder
from tests.cli.command_line import mmeval

SAMPLE = {"id": "1", "question": "?", "generated_answer": "a dog", "references": ["a dog"]}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alba.v2.jsonl").write_text(json.dumps(SAMPLE) + "\n")
    (tmp_path / "gold.jsonl").write_text(json.dumps({"id": "1", "question": "?", "references": ["a dog"]}) + "\n")
    return tmp_path


def test_a_number_follows_if_the_folder_exists(folder):
    for name in ("board", "board-2", "board-3"):
        assert new_folder("board", folder) == folder / name
        (folder / name).mkdir()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("out/alba.jsonl.gz", "alba"),
        ("alba.v2.json", "alba.v2"),
        ("captions/", "captions"),
        ("submission.zip", "submission"),
        ("logs/20261117_000817_samples_toy_pope.jsonl", "samples_toy_pope"),
        ("samples_toy_sum_2026-11-16T16-40-07.137010.jsonl", "samples_toy_sum"),
        ("2026-11-16T16-24-16+00-00_colours_h3Yx.eval", "colours_h3Yx"),
        ("20261117_000817_.jsonl", "20261117_000817_"),
        ("Qwen/Qwen3-VL-8B-Instruct", "Qwen3-VL-8B-Instruct"),
    ],
)
def test_the_name_of_a_file(path, name):
    assert file_name(path) == name


@pytest.mark.parametrize(
    ("name", "folder_name"), [("part-*", "part"), ("ответы 1", "ответы-1"), ("con", "run-con"), ("../*", "run")]
)
def test_a_name_becomes_a_folder(folder, name, folder_name):
    assert new_folder(name) == Path("runs") / folder_name


def test_runs_are_named_after_what_is_scored(folder):
    score = ("--metrics", "anls", "--no-report")
    mmeval("score", "alba.v2.jsonl", *score)
    mmeval("score", "gold.jsonl", "alba.v2.jsonl", *score)
    mmeval("run", "gold.jsonl", "--model", "echo:some/parrot-7b", *score)
    mmeval("crosswalk", "alba.v2.jsonl", "--metrics", "anls", "--no-report")
    (folder / "other.yaml").write_text("metrics: [exact_match]")
    mmeval("rescore", "runs/alba.v2", "--config", "other.yaml", "--no-report")
    names = sorted(path.name for path in (folder / "runs").iterdir())
    assert names == ["alba.v2", "alba.v2-2", "alba.v2-3", "anls-rules", "parrot-7b"]
