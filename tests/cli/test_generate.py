"""`mmeval run --metrics none` stops after the answers; `mmeval score RUN` scores them in the same folder."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import load_run
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.cli.command_line import mmeval
from tests.cli.test_run import PRICES, ROWS, write
from tests.generate.counting_model import CountingModel, offered


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(PRICES)
    return write(ROWS)


@pytest.fixture
def model():
    with offered(CountingModel()) as model:
        yield model


def generate(*arguments, code=0):
    return mmeval("run", *arguments, "--metrics", "none", "--model", "counting:x", "--no-cache", code=code)


def test_the_answers_are_stored_and_not_scored(data, model):
    done = generate(data, "-o", "run")
    info = RunFolder("run").read_info()
    assert (info.state, info.metrics, info.signatures) == ("generated", [], {})
    assert done.stdout == (
        "answers of counting: 2 ok, 1 rejected, 1 truncated\n"
        "  rejected (1): HTTP 400: the prompt is too long\n"
        "  truncated (1): the answer was cut off after 10 tokens at the limit of tokens\n"
        "tokens: 300 in, 30 out\n"
        "answers: run/answers\n"
        "Score them: mmeval score run --task TASK\n"
    )


def test_as_json(data, model):
    content = json.loads(generate(data, "-o", "run", "--format", "json").stdout)
    assert (content["run"], content["samples"]) == ("run", 4)
    assert content["generation"]["statuses"] == {"ok": 2, "rejected": 1, "truncated": 1}


def test_scores_in_two_steps_are_those_of_one_step(data, model):
    generate(data, "-o", "two")
    mmeval("score", "two", "--metrics", "exact_match", "--no-report")
    mmeval("run", data, "--model", "counting:x", "--no-cache", "--metrics", "exact_match", "-o", "one", "--no-report")
    for name in ("results.json", "lint.json", "manifest.json"):
        ours, theirs = (json.loads(RunFolder(run).storage.read_bytes(name)) for run in ("one", "two"))
        for content in (ours, theirs):
            content.get("files", {}).pop("exchanges/part-00000.parquet", None)  # has times
            for checksum in ("sha256", "manifest", "manifest_sha256"):
                content.pop(checksum, None)
        assert ours == theirs, name
    assert model.calls == ["a", "b", "c", "d"] * 2


def test_the_task_of_generation_is_the_default(data, model):
    done = generate(data, "--task", "captioning", "-o", "run")
    assert "Score them: mmeval score run\n" in done.stdout
    done = mmeval("score", "run", "--no-report", "--metrics", "rouge_l,exact_match", "--by", "group", code=1)
    assert "group" in done.stderr  # no sample has a value
    assert RunFolder("run").read_info().state == "generated"
    mmeval("score", "run", "--no-report", "--metrics", "rouge_l,exact_match")
    assert load_run("run").info.task == "captioning"


def test_a_refused_metric_leaves_the_answers(data, model):
    generate(data, "-o", "run")
    assert "name a task (--task captioning) or metrics" in mmeval("score", "run", code=2).stderr
    assert "no metric is named 'exact'" in mmeval("score", "run", "--metrics", "exact", code=1).stderr
    done = mmeval("score", "run", "--metrics", "iou", code=1)
    assert "iou cannot score any sample" in done.stderr
    assert RunFolder("run").read_info().metrics == []
    mmeval("score", "run", "--metrics", "exact_match", "--no-report")


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [(("--limit", "1"), "--limit"), (("-o", "other"), "--output"), (("--image-root", "."), "--image-root")],
)
def test_settings_of_the_input_are_refused(data, model, arguments, flag):
    generate(data, "-o", "run")
    done = mmeval("score", "run", "--metrics", "exact_match", *arguments, code=2)
    assert f"the answers are scored in the folder of the run, without {flag}" in done.stderr


def test_a_scored_run_is_not_scored_again(data, model):
    mmeval("run", data, "--model", "counting:x", "--metrics", "exact_match", "-o", "run", "--no-report")
    done = mmeval("score", "run", "--metrics", "rouge_l", code=1)
    assert "run is scored already. For other metrics: mmeval rescore run --config FILE" in done.stderr


def test_an_interrupted_generation_continues(data, model):
    path = write([("a", "say red", "red"), ("b", "say interrupt", "x"), ("c", "say blue", "blue")])
    done = generate(path, "-o", "run", "--concurrency", "1", code=130)
    assert "interrupted. Continue with: mmeval run --resume run" in done.stderr
    done = mmeval("score", "run", "--metrics", "exact_match", code=1)
    assert "run has samples without an answer. Continue with: mmeval run --resume run" in done.stderr
    with offered(CountingModel(is_up=True)) as second:
        done = mmeval("run", "--resume", "run")
    assert second.calls == ["b", "c"]
    assert "answers of counting: 3 ok" in done.stdout


def test_a_run_with_metrics_is_not_continued_without_them(data, model):
    path = write([("a", "say red", "red"), ("b", "say down", "red")])
    options = ("--metrics", "exact_match", "-o", "run", "--concurrency", "1")
    mmeval("run", path, "--model", "counting:x", *options, code=1)
    done = mmeval("run", "--resume", "run", "--metrics", "none", code=1)
    assert "run also computes scores. Continue it with: mmeval run --resume run" in done.stderr


def test_without_a_task_and_metrics_only_the_answers_are_stored(data, model):
    done = mmeval("run", data, "--model", "counting:x", "-o", "run")
    assert "Score them: mmeval score run --task TASK" in done.stdout
    done = mmeval("run", data, "--model", "counting:x", "--metrics", "none", "--by", "source", "-o", "other", code=2)
    assert "--metrics none scores nothing, so it takes no --by" in done.stderr
    done = mmeval("run", data, "--model", "counting:x", "--fail-under", "exact_match=1", "-o", "other", code=2)
    assert "this run does not compute it" in done.stderr


def test_a_dry_run(data, model):
    done = generate(data, "--dry-run")
    assert "requests       4\n" in done.stdout
    assert model.calls == []


def test_a_budget_names_the_command_that_continues(data, model):
    done = generate(data, "-o", "run", "--prices", "prices.yaml", "--budget", "0.1", "--max-tokens", "10", code=1)
    assert "mmeval run --resume run --budget AMOUNT" in done.stderr
