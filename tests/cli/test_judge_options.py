"""The options of `mmeval score`, `run` and `rescore` for judges, against a scripted judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval import load_run
from tests.cli.command_line import mmeval
from tests.judges.server import Leanings, judge_server

N = 30
KEY = "sk-judge/0123456789abcdef"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    rows = [
        {"id": f"s{n}", "question": f"q {n}", "generated_answer": f"answer {n}", "references": ["x"]} for n in range(N)
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("good.yaml").write_text("question: Is it right?\nuse_probe: false\nparameters: {max_tokens: 100}\n")
    Path("prices.yaml").write_text('"*": {input: 1000000, output: 10000000}\n')  # 1 and 10 per token
    return tmp_path


@pytest.fixture
def server():
    with judge_server(models=("tiny", "other")) as server:
        yield server


SCORE = ("score", "data.jsonl", "--metrics", "judge:good.yaml", "--no-report")

RUN = ("run", "data.jsonl", "--model", "echo:x", "--metrics", "judge:good.yaml")


def test_a_panel_by_options(folder, server):
    judges = ("--judge", "openai:tiny", "--judge", "openai:other", "--judge-url", server.url)
    mmeval(*SCORE, *judges, "--judge-repeats", "2", "--judge-concurrency", "3", "-o", "run")
    assert server.requests == N * 2 * 2
    assert server.most_at_once <= 6
    config = load_run("run").info.config.judges["good"]
    assert [model.model for model in config.models] == ["openai:tiny", "openai:other"]
    assert [model.base_url for model in config.models] == [server.url] * 2
    assert (config.repeats, config.concurrency, config.question) == (2, 3, "Is it right?")
    assert config.parameters.temperature == 0  # stays, although the file has other parameters


def test_one_address_for_each_judge(folder, server):
    judges = ("--judge", "openai:tiny", "--judge", "openai:other")
    urls = ("--judge-url", server.url, "--judge-url", server.url + "/")
    mmeval(*SCORE, *judges, *urls, "-o", "run")
    done = mmeval(*SCORE, *judges, *urls, "--judge-url", "http://localhost:1/v1", code=1)
    assert "--judge-url must be given once, or once for each of the 2 judges" in done.stderr


def test_without_the_cache_everything_is_asked_again(folder, server):
    judge = ("--judge", "openai:tiny", "--judge-url", server.url)
    mmeval(*SCORE, *judge, "-o", "first")
    mmeval(*SCORE, *judge, "-o", "second")
    assert server.requests == N
    mmeval(*SCORE, *judge, "--no-judge-cache", "-o", "third")
    assert server.requests == 2 * N


def test_a_budget_stops_the_run_and_a_larger_one_continues_it(folder, server):
    judge = ("--judge", "openai:tiny", "--judge-url", server.url, "--judge-prices", "prices.yaml")
    done = mmeval(*SCORE, *judge, "--judge-budget", "1500", "-o", "run", code=1)
    assert "good: the budget of 1,500.00 USD does not allow another request" in done.stderr
    larger = "mmeval score --resume run --config FILE with `judges: {good: {budget: AMOUNT}}`"
    assert f"Continue with a larger one: {larger}" in done.stderr
    assert 0 < server.requests < N
    (folder / "larger.yaml").write_text("judges: {good: {budget: 100000}}")
    mmeval("score", "--resume", "run", "--config", "larger.yaml", "--no-report")
    assert server.requests == N
    assert load_run("run").info.judging["good"].cost == N * 27  # 7 tokens of input and 2 of output per request


def test_what_changes_a_verdict_cannot_change_with_resume(folder, server):
    for option in (("--judge", "openai:other"), ("--judge-repeats", "2")):
        done = mmeval("score", "--resume", "run", *option, code=2)
        assert f"does not accept {option[0]}" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("metrics: [bleu]", "may have only the sections `generation` and `judges`"),
        ("judges: 3", "`judges` must be a section with keys"),
    ],
)
def test_what_a_file_cannot_change_with_resume(folder, server, content, message):
    mmeval(*SCORE, "--judge", "openai:tiny", "--judge-url", server.url, "-o", "run")
    (folder / "run" / "results.json").unlink()
    (folder / "changes.yaml").write_text(content)
    assert message in mmeval("score", "--resume", "run", "--config", "changes.yaml", code=1).stderr


def test_the_configuration_changes_a_judge_of_a_file(folder, server):
    (folder / "more.yaml").write_text("judges: {good: {repeats: 2}}")
    mmeval(*SCORE, "--judge", "openai:tiny", "--judge-url", server.url, "--config", "more.yaml", "-o", "run")
    assert server.requests == 2 * N


def test_answers_and_verdicts_in_one_command(folder, server):
    model = ("--model", "echo:x", "--prices", "prices.yaml", "--budget", "50000", "--max-tokens", "10")
    judge = ("--judge", "openai:tiny", "--judge-url", server.url, "--judge-prices", "prices.yaml")
    command = ("run", "data.jsonl", *model, *judge, "--metrics", "judge:good.yaml", "--no-report", "-o", "run")
    done = mmeval(*command, "--judge-budget", "1500", code=1)
    command = "mmeval run --resume run --config FILE with `judges: {good: {budget: AMOUNT}}`"
    assert f"The verdicts so far are kept. Continue with a larger one: {command}" in done.stderr
    mmeval("run", "--resume", "run", "--judge-budget", "100000", "--no-report")
    run = load_run("run")
    assert run.info.generation is not None
    assert run["good"]["n_scored"] == N
    assert server.requests == N


def test_another_judge_by_rescoring(folder, server):
    judge = ("--judge-url", server.url)
    mmeval(*SCORE, *judge, "--judge", "openai:tiny", "-o", "run")
    mmeval("rescore", "run", "--judge", "openai:other", *judge, "--no-report", "-o", "again")
    assert server.requests == 2 * N
    assert "models:openai:other" in load_run("again")["good"]["signature"]
    done = mmeval("rescore", "run", code=2)
    assert "name what changes: --config FILE, --judge PROVIDER:NAME, --human COLUMN or --count" in done.stderr


def test_a_judge_without_a_metric(folder):
    done = mmeval("score", "data.jsonl", "--metrics", "exact_match", "--judge", "openai:tiny", code=1)
    assert "no metric of this run asks one" in done.stderr


def test_a_dry_run_tells_the_questions_and_their_cost(folder, server):
    judge = ("--judge", "openai:tiny", "--judge-url", server.url, "--judge-prices", "prices.yaml")
    shown = mmeval(*SCORE, *judge, "--judge-repeats", "3", "--dry-run").stdout
    assert "requests       90" in shown
    assert "output tokens  at most 9,000" in shown  # 90 * 100
    assert "Nothing was sent." in shown
    assert not server.requests
    assert not Path("runs").exists()
    mmeval(*SCORE, *judge, "-o", "run")
    assert "requests       30, 30 of them answered from the cache" in mmeval(*SCORE, *judge, "--dry-run").stdout
    both = mmeval(
        "run",
        "data.jsonl",
        "--model",
        "echo:x",
        "--metrics",
        "judge:good.yaml",
        *judge,
        "--dry-run",
        "--format",
        "json",
    )
    content = json.loads(both.stdout)
    assert content["requests"] == N
    assert content["judges"]["good"][0]["requests"] == N


def test_a_dry_run_counts_only_the_samples_that_are_judged(folder, server):
    rows = [json.loads(line) for line in Path("data.jsonl").read_text().splitlines()]
    for row in rows[:4]:
        row["baseline"] = "another answer"
    rows[0] |= {"generated_answer": None, "error": "timed out"}
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = ("--metrics", "judge:preference", "--judge", "openai:tiny", "--judge-url", server.url)
    assert "requests       6" in mmeval("score", "pairs.jsonl", *judge, "--dry-run").stdout  # 3 pairs in both orders
    mmeval("score", "pairs.jsonl", *judge, "-o", "run")
    assert load_run("run").info.judging["preference"].statuses == {"ok": 6}


def test_the_question_about_one_sample_is_shown(folder, server):
    judge = ("--judge", "openai:tiny", "--judge-url", server.url)
    shown = mmeval(*SCORE, *judge, "--show-request", "s7").stdout
    assert "good: 1 question\n" in shown
    assert "answer 7\n" in shown
    both = mmeval(
        "run", "data.jsonl", "--model", "echo:x", "--metrics", "judge:good.yaml", *judge, "--show-request", "s7"
    )
    assert "(the model's answer)" in both.stdout
    assert "no sample is named 's99'" in mmeval(*SCORE, *judge, "--show-request", "s99", code=1).stderr
    none = mmeval("score", "data.jsonl", "--metrics", "exact_match", "--dry-run", code=2)
    assert "no metric of this run asks a judge" in none.stderr
    assert not server.requests


def test_the_key_of_a_judge_is_in_no_file(folder, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with judge_server(Leanings(refusals=0.3), key=KEY, echoes_key=True, faults={"error": 0.2}) as server:
        judge = ("--judge", "openai:tiny", "--judge-url", server.url, "--judge-key-env", "JUDGE_KEY")
        done = mmeval(*SCORE, *judge, "-o", "run")
        refused = mmeval(*SCORE, *judge[:-1], "OTHER_KEY", "--no-judge-cache", "-o", "other", code=1)
        Path("leaking.yaml").write_text(f"question: Is {KEY} right?\n")
        leaking = mmeval("score", "data.jsonl", "--metrics", "judge:leaking.yaml", *judge, code=1)
    assert "the settings of the judge 'leaking' contain the value of $JUDGE_KEY" in leaking.stderr
    assert not Path("other").exists()
    texts = [done.stdout, done.stderr, refused.stderr]
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "leaking.yaml"]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert not [text for text in texts if KEY in text]


def test_a_dry_run_leaves_out_what_the_run_leaves_out(folder, server):
    # Of three pairs, one has no other answer: it will be unscored, and there are two pairs in two orders.
    rows = [{"id": f"p{n}", "generated_answer": f"answer {n}", "baseline": "other"} for n in range(3)]
    del rows[1]["baseline"]
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("score", "pairs.jsonl", "--metrics", "judge:preference", "--judge", "openai:tiny")
    shown = mmeval(*command, "--judge-url", server.url, "--dry-run").stdout
    assert "requests       4" in shown
    assert not server.requests
