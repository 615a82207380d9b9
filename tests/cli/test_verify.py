"""`mmeval verify`: quick and deep, for several runs, in 80 columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from multimodal_eval import evaluate
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.cli.command_line import called
from tests.edited_runs import accept_changes, rewrite_json, without_checksums
from tests.parts import set_part_size
from tests.registry_state import restored_registries

PLUGIN = """
from multimodal_eval import Estimate, metric
import numpy as np
open({marker!r}, "a").close()

@metric("words", bounds=(0, None), version="1")
def words(sample):
    return float(len(sample.generated_answer.split()))

def most(rows):
    return Estimate(float(rows.values.max()), np.zeros(len(rows.values)))

@metric("most_words", bounds=(0, None), version="1", aggregate=most)
def most_words(sample):
    return float(len(sample.generated_answer.split()))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    set_part_size(monkeypatch, 10)
    rows = [
        {"id": str(n), "references": [f"a dog {n}", "two cats"], "generated_answer": f"a dog {n}", "side": n % 2}
        for n in range(25)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings: dict[str, Any] = {"metrics": ["cider", "rouge_l", "bleu"], "by": ["side"], "progress": False}
    for name in ("first", "second"):
        evaluate("data.jsonl", output=f"runs/{name}", **settings)
    return tmp_path


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_intact_runs(folder):
    done = called("verify", "runs/first", "runs/second")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "runs/first: 7 data files intact\nruns/second: 7 data files intact\n"


def test_every_damaged_file_is_named(folder):
    flip(Path("runs/first/scores/part-00001.parquet"))
    flip(Path("runs/first/state/cider.bin"))
    Path("runs/first/samples/part-00002.parquet").unlink()
    flip(Path("runs/first/lint.json"))
    done = called("verify", "runs/first", "runs/second")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "runs/first/lint.json is damaged and cannot be read: its checksum differs",
        "runs/first/samples/part-00002.parquet is missing",
        "runs/first/scores/part-00001.parquet is damaged and cannot be read: its checksum differs",
        "runs/first/state/cider.bin is damaged and cannot be read: its checksum differs",
        "runs/first: 4 faults. Recompute with: mmeval score --resume runs/first",
        "runs/second: 7 data files intact",
    ]
    again = called("score", "--resume", "runs/first")
    assert again.returncode == 0
    assert "scores/part-00001.parquet is damaged and cannot be read: its checksum differs. It is c" in again.stderr
    assert called("verify", "runs/first", "--deep").returncode == 0


def test_a_damaged_description(folder):
    flip(Path("runs/first/run.json"))
    done = called("verify", "runs/first")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "runs/first: 1 fault. Restore run.json from a copy, or score the samples again"
    )


def test_deep_recomputes_the_results(folder):
    done = called("verify", "runs/first", "--deep")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "runs/first: 7 data files intact, and the results are those of its scores\n"


def other_value(results):
    results["metrics"]["rouge_l"]["value"] = 0.5


def other_slice(results):
    results["slices"]["side"]["1"]["metrics"]["cider"]["n_scored"] = 3


def other_part(results):
    results["metrics"]["bleu"]["parts"]["bleu_1"]["low"] = 0.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_value, "rouge_l.value is 0.5, but the scores give "),
        (other_slice, "cider of side=1.n_scored is 3, but the scores give 12"),
        (other_part, "bleu.bleu_1.low is 0.25, but the scores give "),
        (
            lambda results: results.update(n=24),
            "cannot be recomputed: runs/first/results.json is damaged: 'cider' has 25 samples instead of 24",
        ),
        (lambda results: results["metrics"]["cider"].update(signature="x"), "cider has another signature than in"),
        (lambda results: results["slices"].clear(), "has other slices than run.json"),
    ],
)
def test_deep_names_what_differs(folder, change, message):
    rewrite_json(Path("runs/first/results.json"), change)
    assert called("verify", "runs/first").returncode == 0  # the checksums fit
    done = called("verify", "runs/first", "--deep")
    assert done.returncode == 1
    assert f"runs/first/results.json {message}" in done.stdout


def test_deep_compares_the_rows(folder):
    run = RunFolder("runs/first")
    table = run.read_part("scores", 1)
    shifted = table.set_column(0, "row", pa.array(range(11, 21)))
    run.write_part("scores", 1, shifted)
    accept_changes(Path("runs/first"))
    done = called("verify", "runs/first", "--deep")
    assert done.returncode == 1
    assert "runs/first/scores/part-00001.parquet must have the rows 10 to 19" in done.stdout


def test_deep_imports_nothing_that_the_run_names(folder):
    marker = folder / "imported"
    Path("mine.py").write_text(PLUGIN.format(marker=str(marker)))
    with restored_registries():
        evaluate("data.jsonl", metrics=["words", "most_words"], plugins=["mine.py"], output="runs/own", progress=False)
    marker.unlink()
    done = called("verify", "runs/own", "--deep")
    assert done.returncode == 0
    assert "most_words is not recomputed: most_words is not a mean" in done.stdout
    assert not marker.exists()
    named = called("verify", "runs/own", "--deep", "--plugin", "mine.py")
    assert "not recomputed" not in named.stdout
    assert named.returncode == 0


def test_a_run_of_an_earlier_version(folder):
    for name in ("first", "second"):
        without_checksums(Path("runs") / name)
    done = called("verify", "runs/first")
    assert (done.returncode, done.stdout) == (0, "runs/first: it is from a version without checksums\n")
    report = called("compare", "runs/first", "runs/second", "--metrics", "rouge_l")
    assert report.returncode == 0
    assert report.stderr.count("warning: ") == 1
    assert report.stderr.startswith("warning: runs/first is from a version without checksums")


def test_not_a_run(folder):
    done = called("verify", "nowhere")
    assert done.returncode == 1
    assert "nowhere is not a run folder" in done.stderr
