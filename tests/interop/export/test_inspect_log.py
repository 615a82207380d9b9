"""A run as a log of inspect_ai: what is written is read back, by us and by inspect_ai itself."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from math import isnan
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import evaluate, import_log
from multimodal_eval.cli.main import cli
from multimodal_eval.core.sample import Sample
from multimodal_eval.interop.export.registry import export

LOGS = Path(__file__).parents[2] / "data" / "logs" / "fixtures" / "inspect"
INSPECT = os.environ.get("MMEVAL_INSPECT_PYTHON")  # a Python with inspect_ai; set by `.ci/long inspect`
PNG = b"\x89PNG\r\n\x1a\n"
SAMPLES = [
    Sample(id="a", question="Colour?", image="red.png", references=["red", "crimson"], generated_answer="red"),
    Sample(id="b", question="Colour?", image=PNG, expected_answer="blue", generated_answer="green", group="g"),
    Sample(id="c", question="Ünï?", images=["x.png", PNG], expected_answer="x", error="time-out"),
    Sample(id="d/1", prompt="Say", expected_answer="y", generated_answer="", metadata={"level": 2, "tags": ["p"]}),
    Sample(id="e", question="Which?", choices={"A": "one", "B": "two"}, expected_answer="B", generated_answer="B"),
]


def scores_of(run, metrics):
    rows = run.scores().to_pylist()
    return {row["id"]: [row[metric] for metric in metrics] for row in rows}


@pytest.fixture
def run(tmp_path):
    return evaluate(SAMPLES, metrics=["exact_match", "bleu", "rouge_l"], output=tmp_path / "run")


@pytest.mark.parametrize("form", ["eval", "json"])
def test_scores_survive_the_way_there_and_back(run, tmp_path, form):
    export(run, "inspect", tmp_path / f"log.{form}")
    imported = import_log(tmp_path / f"log.{form}", output=tmp_path / "again")
    names = ["exact_match", "rouge_l"]
    assert scores_of(imported.run, [f"inspect.{name}" for name in names]) == scores_of(run, names)
    assert all(mean.is_equal for mean in imported.means)
    assert {mean.metric: mean.stated for mean in imported.means}["inspect.rouge_l"] == run["rouge_l"]["value"]
    before, after = (
        {sample.id: sample for part in range(len(each.info.parts)) for sample in each.folder.read_samples(part)}
        for each in (run, imported.run)
    )
    assert sorted(before) == sorted(after)  # inspect_ai has an order of its own
    for name, sample in before.items():
        read = after[name]
        assert read.generated_answer == sample.generated_answer
        assert read.error == sample.error
        assert read.reference_texts == sample.reference_texts
        assert (read.question or read.prompt) == (sample.question or sample.prompt)
    assert after["a"].image == "red.png"
    assert after["b"].image == "data:image/png;base64,iVBORw0KGgo="
    assert after["c"].images == ["x.png", "data:image/png;base64,iVBORw0KGgo="]
    assert after["d/1"].metadata["level"] == 2
    assert after["e"].choices == ["one", "two"]


@pytest.mark.parametrize("name", ["epochs.eval", "choices.eval", "images.eval"])
def test_an_imported_log_is_exported_as_it_was(tmp_path, name):
    first = import_log(LOGS / name, output=tmp_path / "run").run
    export(first, "inspect", tmp_path / "again.eval")
    second = import_log(tmp_path / "again.eval", output=tmp_path / "again").run
    assert second.metrics == first.metrics
    assert second.info.imported.model == first.info.imported.model
    assert scores_of(second, second.metrics) == scores_of(first, first.metrics)
    for before, after in zip(first.folder.read_samples(0), second.folder.read_samples(0), strict=True):
        assert (before.id, before.epoch, before.question, before.image) == (
            after.id,
            after.epoch,
            after.question,
            after.image,
        )
        assert (before.generated_answer, before.error, before.choices) == (
            after.generated_answer,
            after.error,
            after.choices,
        )
        assert before.metadata == after.metadata or before.error is not None
    if name == "epochs.eval":  # a score that is NaN, with the reason that inspect_ai's scorer gave
        assert second["inspect.graded"]["n_scored"] == first["inspect.graded"]["n_scored"] == 13
        with zipfile.ZipFile(tmp_path / "again.eval") as archive:
            score = json.loads(archive.read("samples/4_epoch_1.json"))["scores"]["graded"]
        assert isnan(score.pop("value"))
        assert score == {"reason": "parse_error"}


def test_results_have_the_interval_and_the_kind(run, tmp_path):
    export(run, "inspect", tmp_path / "log.eval")
    with zipfile.ZipFile(tmp_path / "log.eval") as archive:
        header = json.loads(archive.read("header.json"))
        failed = json.loads(archive.read("samples/c_epoch_1.json"))
    results = {score["name"]: score for score in header["results"]["scores"]}
    entry = run["exact_match"]
    values = {name: metric["value"] for name, metric in results["exact_match"]["metrics"].items()}
    assert values == {"mean": entry["value"], "stderr": entry["stderr"], "low": entry["low"], "high": entry["high"]}
    assert (results["exact_match"]["scored_samples"], results["exact_match"]["unscored_samples"]) == (4, 1)
    assert "corpus" in results["bleu"]["metrics"]
    assert isnan(failed["scores"]["exact_match"]["value"])
    assert failed["scores"]["exact_match"]["explanation"].startswith("error: the generator failed")
    assert failed["error"]["message"] == "time-out"


def test_some_metrics_and_the_name_of_the_model(run, tmp_path):
    export(run, "inspect", tmp_path / "log.json", metrics=["rouge_l"], model="openai/gpt")
    log = json.loads((tmp_path / "log.json").read_text())
    assert log["eval"]["model"] == "openai/gpt"
    assert [score["name"] for score in log["results"]["scores"]] == ["rouge_l"]


def test_the_command(run, tmp_path):
    result = CliRunner().invoke(cli, ["export", str(run.path), "--to", "inspect", "-o", str(tmp_path / "log.eval")])
    assert result.exit_code == 0, result.output
    again = CliRunner().invoke(cli, ["export", str(run.path), "--to", "inspect"])
    assert "the format inspect needs a path: -o FILE" in str(again.exception)


READ = """
import json, math, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
log = read_eval_log(sys.argv[1])
scores = {f"{s.id} {s.epoch}": {n: None if isinstance(x.value, float) and math.isnan(x.value) else x.value
          for n, x in s.scores.items()} for s in log.samples}
summaries = len(read_eval_log_sample_summaries(sys.argv[1]))
results = {s.name: {n: m.value for n, m in s.metrics.items()} for s in log.results.scores}
print(json.dumps([log.status, scores, summaries, results]))
"""


@pytest.mark.slow
@pytest.mark.skipif(INSPECT is None, reason="MMEVAL_INSPECT_PYTHON names no Python with inspect_ai")
@pytest.mark.parametrize("form", ["eval", "json"])
def test_inspect_ai_reads_the_log(run, tmp_path, form):
    path = tmp_path / f"log.{form}"
    export(run, "inspect", path)
    assert INSPECT is not None
    called = subprocess.run([INSPECT, "-c", READ, path], check=True, capture_output=True, text=True)
    status, scores, summaries, results = json.loads(called.stdout.splitlines()[-1])
    assert status == "success"
    assert summaries == len(SAMPLES)
    ours = scores_of(run, ["exact_match", "rouge_l"])
    assert {key.partition(" ")[0]: [each["exact_match"], each["rouge_l"]] for key, each in scores.items()} == ours
    assert results["rouge_l"]["mean"] == run["rouge_l"]["value"]
