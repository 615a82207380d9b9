"""A run by batch files gives what a run gives that asks the endpoint."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from multimodal_eval import evaluate, load_run, resume
from multimodal_eval.core.config import GenerationConfig, Parameters, UntilConfig
from multimodal_eval.core.errors import ConfigError, InputError, OpenSamplesError
from multimodal_eval.generate.providers.openai_chat import ChatGenerator
from multimodal_eval.run.generation.batch import BatchIn, BatchOut, BatchWrittenError
from tests.cli.command_line import mmeval
from tests.generate.server import Behaviour, Reply, Server, user_text
from tests.run.generation.batch_server import BatchServer

MODEL = "openai:tiny"
SAMPLES = [{"id": f"s{number}", "question": f"question {number}", "references": ["yes"]} for number in range(12)]
SPECIAL = {
    2: Reply("half an", finish="length"),
    3: Reply(refusal="I cannot"),
    4: Reply("", finish="stop"),
    5: Reply(raw=b'{"error": {"message": "too long"}}', status=400),
    6: Reply("yes", reasoning="because"),
    7: Reply("x", finish="content_filter"),
    8: Reply(raw=b'{"error": {"message": "no", "code": "content_filter"}}', status=400),
}


def scripted(body, attempt):
    number = int(user_text(body).split()[1])
    return SPECIAL.get(number, Reply("yes" if number % 2 else "no"))


@pytest.fixture
def server():
    with Server(Behaviour(script=scripted)) as opened:
        yield opened


def config(server, **settings):
    parameters = Parameters(temperature=0.5, max_tokens=9, seed=3, stop=["\n"], extra={"user": "é"})
    return GenerationConfig(model=MODEL, base_url=server.url, parameters=parameters, use_probe=False, **settings)


def started(server, folder, **settings):
    """Start a run by batch files. Returns the lines of the file."""
    path = folder / "requests.jsonl"
    with pytest.raises(BatchWrittenError) as ending:
        evaluate(
            SAMPLES,
            metrics=["exact_match"],
            model=BatchOut(path),
            generation=config(server, **settings),
            output=folder / "batched",
        )
    assert f"mmeval run --resume {folder / 'batched'} --batch-in" in str(ending.value)
    return [json.loads(line) for line in path.read_text().splitlines()]


def answered(server, path, lines):
    """Have the requests answered, and write the results in another order."""
    results = []
    for line in lines:
        body = json.dumps(line["body"]).encode()
        asked = Request(f"{server.url}/chat/completions", body, {"Content-Type": "application/json"})
        try:
            with urlopen(asked) as reply:
                status, content = reply.status, json.load(reply)
        except HTTPError as refusal:
            status, content = refusal.code, json.load(refusal)
        response = {"status_code": status, "request_id": "r", "body": content}
        results.append({"id": "b", "custom_id": line["custom_id"], "response": response, "error": None})
    path.write_text("".join(json.dumps(result) + "\n" for result in reversed(results)))
    return results


def outcomes(run):
    table = run.folder.read_part("answers", 0)
    return table.drop_columns(["request"]).to_pylist(), table.column("request").to_pylist()


def test_both_ways_send_the_same_bytes_and_give_the_same_answers(server, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    direct = evaluate(
        SAMPLES, metrics=["exact_match"], model=MODEL, generation=config(server), output=tmp_path / "direct"
    )
    sent = set(server.bodies.values())
    lines = started(server, tmp_path)
    start = b'"body":'
    written = (tmp_path / "requests.jsonl").read_bytes().splitlines()
    assert {line[line.index(start) + len(start) : -1] for line in written} == sent
    answered(server, tmp_path / "results.jsonl", lines)
    batched = resume(tmp_path / "batched", model=BatchIn([tmp_path / "results.jsonl"]))
    assert outcomes(batched) == outcomes(direct)
    assert batched.info.generation == direct.info.generation
    assert batched.info.generation.statuses == {
        "ok": 6,
        "truncated": 1,
        "refused": 1,
        "empty": 1,
        "rejected": 1,
        "filtered": 2,
    }
    assert batched.entries == direct.entries


def test_missing_and_expired_results_leave_their_samples_open(server, tmp_path):
    lines = started(server, tmp_path)
    results = answered(server, tmp_path / "some.jsonl", lines[:10])
    expired = {"custom_id": lines[10]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    limited = {"custom_id": lines[1]["custom_id"], "response": {"status_code": 429, "body": {}}, "error": None}
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(r) + "\n" for r in (results[0], *results[2:])))
    (tmp_path / "errors.jsonl").write_text(f"{json.dumps(expired)}\n{json.dumps(limited)}\n")
    with pytest.raises(OpenSamplesError) as refusal:
        resume(tmp_path / "batched", model=BatchIn([tmp_path / "errors.jsonl", tmp_path / "some.jsonl"]))
    assert "samples without a usable result: 3. 's1': " in str(refusal.value)
    assert "errors.jsonl:2: HTTP 429" in str(refusal.value)
    assert "Also 's10', 's11'\n" in str(refusal.value)
    # Only these are written again.
    with pytest.raises(BatchWrittenError, match="requests: 3"):
        resume(tmp_path / "batched", model=BatchOut(tmp_path / "again.jsonl"))
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    assert again == [lines[1], lines[10], lines[11]]
    answered(server, tmp_path / "rest.jsonl", again)
    finished = resume(tmp_path / "batched", model=BatchIn([tmp_path / "rest.jsonl"]))
    assert sum(finished.info.generation.statuses.values()) == 12


def test_open_samples_can_be_accepted_as_errors(server, tmp_path):
    lines = started(server, tmp_path)
    answered(server, tmp_path / "results.jsonl", lines[:11])
    run = resume(tmp_path / "batched", model=BatchIn([tmp_path / "results.jsonl"]), accept_open=True)
    assert run.info.generation.statuses["unanswered"] == 1
    assert run.entries["exact_match"].n_scored == 6 - 1  # row 11 is one of the good ones


def test_results_of_other_requests_are_refused_and_nothing_is_lost(server, tmp_path):
    lines = started(server, tmp_path)
    results = answered(server, tmp_path / "results.jsonl", lines)
    digest = "0" * 24
    changed = [{**results[0], "custom_id": f"0-{digest}"}, *results[1:]]
    (tmp_path / "changed.jsonl").write_text("".join(json.dumps(result) + "\n" for result in changed))
    with pytest.raises(InputError, match=r"that of another request .*\(id 's0'\)"):
        resume(tmp_path / "batched", model=BatchIn([tmp_path / "changed.jsonl"]))
    run = resume(tmp_path / "batched", model=BatchIn([tmp_path / "results.jsonl"]))
    assert sum(run.info.generation.statuses.values()) == 12


def test_cached_answers_are_not_written(server, tmp_path):
    evaluate(SAMPLES[:8], metrics=["exact_match"], model=MODEL, generation=config(server), output=tmp_path / "direct")
    lines = started(server, tmp_path)
    # Of the first eight, row 5 got no answer. The failures of rows 2, 3, 4 and 7 are outcomes.
    assert [int(line["custom_id"].split("-")[0]) for line in lines] == [5, 8, 9, 10, 11]


def test_failures_are_drawn_again_only_if_wanted_and_the_result_says_so(server, tmp_path):
    def note(name: str, **settings: object) -> list[str]:
        generation = config(server, **settings)
        run = evaluate(SAMPLES[:8], metrics=["exact_match"], model=MODEL, generation=generation, output=tmp_path / name)
        return [note for note in run.outcome.notes if "draws" in note]

    assert note("first") == []
    assert note("second") == []
    drawn = "4 of 8 answers are second draws: the first was empty, cut off or refused"
    assert note("third", retry_failures=True) == [drawn]
    assert note("fourth") == [drawn]  # from the cache


def test_the_files_get_the_generator_itself_and_not_the_one_that_counts(server, tmp_path):
    # A wrapper is not an instance of the class, and a protocol does not see its attributes from Python 3.12 on.
    class Noting(BatchOut):
        def asker(self, folder, info, generator, *, accept_truncated):
            kinds.append(type(generator))
            return super().asker(folder, info, generator, accept_truncated=accept_truncated)

    kinds = []
    with pytest.raises(BatchWrittenError):
        evaluate(
            SAMPLES,
            metrics=["exact_match"],
            model=Noting(tmp_path / "requests.jsonl"),
            generation=config(server),
            output=tmp_path / "run",
        )
    assert kinds == [ChatGenerator]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": UntilConfig(metric="exact_match", width=0.1)}, "`until` does not go with batch files"),
        ({"model": "echo:x"}, "batch files are those of OpenAI's API"),
        ({"model": "anthropic:x"}, "batch files are those of OpenAI's API"),
        ({"model": "gemini:x"}, "batch files are those of OpenAI's API"),
        ({"model": "openai-responses:x"}, "batch files are those of OpenAI's API"),
    ],
)
def test_what_does_not_go_with_batch_files_is_refused_first(tmp_path, settings, message):
    generation = GenerationConfig(**{"model": MODEL, **settings})
    with pytest.raises(ConfigError, match=message):
        evaluate(
            SAMPLES,
            metrics=["exact_match"],
            model=BatchOut(tmp_path / "requests.jsonl"),
            generation=generation,
            output=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()


def test_the_commands(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    run = ("run", "data.jsonl", "--model", MODEL, "--metrics", "exact_match", "-o", "run")
    out = mmeval(*run, "--batch-out", "requests.jsonl").stdout
    assert out.splitlines()[0] == "requests: 12, in requests.jsonl"
    assert "mmeval run --resume run --batch-in RESULTS.jsonl" in out
    lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    answered(server, tmp_path / "results.jsonl", lines)
    assert "exact_match" in mmeval("run", "--resume", "run", "--batch-in", "results.jsonl").stdout
    again = mmeval(*run[:-1], "other", "--batch-out", "requests.jsonl", "--no-cache", code=1).stderr
    assert "requests.jsonl already exists" in again
    assert not (tmp_path / "other").exists()
    both = mmeval(*run[:-1], "other", "--batch-out", "a", "--batch-in", "results.jsonl", code=2).stderr
    assert "give one of them" in both
    generated = mmeval(
        "run", *run[1:4], "--metrics", "none", "--batch-out", "b.jsonl", "-o", "answers", "--no-cache"
    ).stdout
    assert "mmeval run --resume answers --batch-in" in generated
    answers = mmeval("run", "--resume", "answers", "--batch-in", "results.jsonl").stdout
    assert "6 ok" in answers


def test_the_api_is_submitted_to_and_waited_for_by_another_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.setattr("multimodal_eval.run.generation.batch.FIRST_PAUSE", 0.01)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    (tmp_path / "prices.yaml").write_text("tiny: {input: 2, output: 4}")
    with BatchServer(Behaviour(script=scripted)) as server:
        run = ("run", "data.jsonl", "--model", MODEL, "--base-url", server.url, "--metrics", "exact_match", "-o", "run")
        run += ("--prices", "prices.yaml", "--max-tokens", "9", "--no-report")
        whole = mmeval(*run, "--dry-run", "--format", "json").stdout
        half = mmeval(*run, "--dry-run", "--format", "json", "--batch-out", "api").stdout
        assert json.loads(half)["input_cost"] == json.loads(whole)["input_cost"] / 2
        out = mmeval(*run, "--batch-out", "api").stdout
        assert (
            "submitted: b0\nWait for the answers, now or later, with:\n  mmeval run --resume run --batch-in api" in out
        )
        assert server.requests == 0
        twice = mmeval("run", "--resume", "run", "--batch-out", "api", code=1).stderr
        assert "run.batches.json names batches that are not read yet" in twice
        assert len(server.batches) == 1
        scored = mmeval("run", "--resume", "run", "--batch-in", "api", "--no-report").stdout
        assert server.looks == 3  # twice in progress
    assert "answers of openai:tiny: 6 ok, 2 filtered" in scored
    assert "2 filtered" in scored
    generation = load_run("run").info.config.generation
    assert (generation.price.input, generation.price.output) == (1, 2)
    assert sorted(path.name for path in tmp_path.glob("run.*")) == [
        "run.batch_b0.errors.jsonl",
        "run.batch_b0.output.jsonl",
    ]


def test_a_batch_that_fails_or_was_never_submitted_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text(json.dumps(SAMPLES[0]))
    with BatchServer(Behaviour(script=scripted)) as server:
        run = ("run", "data.jsonl", "--model", MODEL, "--base-url", server.url, "--metrics", "exact_match", "-o", "run")
        mmeval(*run, "--batch-out", "out.jsonl", "--no-cache")
        none = mmeval("run", "--resume", "run", "--batch-in", "api", code=1).stderr
        assert "run has no batch. Submit it with: mmeval run --resume run --batch-out api" in none
        mmeval("run", "--resume", "run", "--batch-out", "api")
        server.batches["b0"] |= {"status": "failed", "errors": {"data": [{"message": "token limit"}]}}
        failed = mmeval("run", "--resume", "run", "--batch-in", "api", code=1).stderr
    assert "the batch b0 has failed" in failed
    assert "token limit" in failed
