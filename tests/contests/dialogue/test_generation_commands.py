"""`mmeval dialogue generate` and `mmeval dialogue run`, with a model in this process and with a server."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from math import log
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import InputError, RetryableError
from multimodal_eval.generate import registry
from multimodal_eval.generate.protocol import EndpointError, RejectedError
from tests.contests.dialogue.contest import write_json
from tests.contests.dialogue.counting_model import GOLD, REFUSED, Counting, read
from tests.generate.server import Behaviour, Reply, Server

EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


@pytest.fixture
def command(monkeypatch, tmp_path, questions):
    """Runs a command whose model `test:x` is the given one."""
    gold = write_json(tmp_path / "gold.json", GOLD)
    folder = str(tmp_path / "submission")

    def invoked(name, *options, model):
        monkeypatch.setattr(registry, "find_generator", lambda config: model)
        inputs = [str(questions)] if name == "generate" else [str(gold), str(questions), "--present-types-only"]
        inputs += [] if name == "generate" else ["--synonyms", "ru=none", "--synonyms", "en=none"]
        arguments = ["dialogue", name, *inputs, "--model", "test:x", "-o", folder, "--no-cache", "--retries", "0"]
        return CliRunner().invoke(cli, [*arguments, *options])

    return invoked


def test_the_command_writes_a_submission(command, tmp_path):
    result = command("generate", "--system", "Кратко.", model=(model := Counting()))
    assert result.exit_code == 0, result.output
    assert "6 replies of 3 dialogues: " in result.stderr
    assert f"mmeval dialogue GOLD {tmp_path}/submission" in result.stderr
    assert model.requests[0].system == "Кратко."
    assert read(tmp_path / "submission" / "ppl_output.json")["one"] == [pytest.approx(4)]


def test_the_command_names_failed_replies_and_exits_1(command):
    result = command("generate", model=Counting(fail={"столицы/2": REFUSED}))
    assert result.exit_code == 1
    assert "столицы/2: refused: the model refused" in str(result.exception)
    assert "Score them" not in result.stderr


def test_the_command_explains_an_endpoint_without_log_probabilities(command):
    failure = {"one/1": RejectedError("HTTP 400: too long")}
    assert "--no-logprobs" not in str(command("generate", model=Counting(fail=failure)).exception)
    failure = {"one/1": RejectedError("HTTP 400: logprobs are not supported")}
    result = command("generate", "--overwrite", model=Counting(fail=failure))
    assert "If the endpoint offers no log-probabilities: --no-logprobs" in str(result.exception)
    model = Counting(logprobs=False)
    result = command("generate", "--overwrite", "--no-logprobs", model=model)
    assert result.exit_code == 0
    assert "! no ppl_output.json: log-probabilities were not asked for" in result.stderr
    assert not model.requests[0].parameters.logprobs


def test_a_stopped_command_says_that_it_continues(command):
    open_ = command("generate", model=Counting(fail={"one/1": RetryableError("busy")}))
    assert open_.exit_code == 1
    assert "the same command" in str(open_.exception)
    assert "mmeval run --resume" not in str(open_.exception)
    stopped = command("generate", model=Counting(fail={"one/1": EndpointError("no such model")}))
    assert "Continue with: the same command" in str(stopped.exception)
    assert command("generate", model=Counting()).exit_code == 0


def test_one_command_asks_and_scores(command, tmp_path):
    result = command("run", model=Counting())
    assert result.exit_code == 0, result.output + str(result.exception)
    assert "integral score" in result.stdout
    assert (tmp_path / "submission" / "run" / "report.html").is_file()
    again = command("run", model=Counting())
    assert "submission/run already exists" in str(again.exception)
    replaced = command("run", "--overwrite", "--format", "json", model=Counting())
    assert replaced.exit_code == 0, str(replaced.exception)
    assert json.loads(replaced.stdout)["metrics"]["hidden_metric"]["value"] == pytest.approx(1 / 4)


def test_scoring_needs_all_replies_and_perplexities(command, tmp_path):
    failed = command("run", model=Counting(fail={"one/1": REFUSED}))
    assert "one/1: refused" in str(failed.exception)
    without = command("run", "--overwrite", model=Counting(logprobs=False))
    assert "then score with: mmeval dialogue" in str(without.exception)
    assert not (tmp_path / "submission" / "run").exists()


def test_a_wrong_gold_file_is_refused_before_anything_is_asked(command, tmp_path):
    model = Counting()
    write_json(tmp_path / "gold.json", {"one": GOLD["one"], "two": GOLD["animals"]})
    result = command("run", model=model)
    assert isinstance(result.exception, InputError)
    assert model.requests == []


@pytest.mark.parametrize("gate", ["--fail-over composite=0.5", "--fail-under cider=0.5"])
def test_a_wrong_gate_is_refused_before_anything_is_asked(command, gate):
    model = Counting()
    result = command("run", *gate.split(), model=model)
    assert (result.exit_code, gate in result.stderr) == (2, True)
    assert model.requests == []


def test_a_model_is_required(questions, tmp_path):
    result = CliRunner().invoke(cli, ["dialogue", "generate", str(questions), "-o", str(tmp_path / "out")])
    assert (result.exit_code, "--model" in result.stderr) == (2, True)


# With a server


def conversation(messages):
    """What a server has received: roles, texts, and the kinds of media."""
    kinds = {"image_url": "image", "input_audio": "audio", "audio_url": "audio"}
    turns = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        turns.append((message["role"], [part.get("text", kinds.get(part["type"])) for part in parts]))
    return turns


def replied(turns):
    """A reply that depends on every turn before it, in the language of the question."""
    russian = any("а" <= letter.lower() <= "я" for text in turns[-1][1] for letter in text)
    digest = hashlib.sha256(json.dumps(turns, ensure_ascii=False).encode()).hexdigest()[:8]
    return f"{'ответ' if russian else 'answer'} {len(turns)} {digest}"


def expected(asked):
    """The replies of a dialogue, one after another."""
    turns, replies = [], []
    for parts in asked:
        turns.append(("user", [part["content"] if part["type"] == "text" else part["type"] for part in parts]))
        replies.append(replied(turns))
        turns.append(("assistant", [replies[-1]]))
    return replies


def scripted(body, attempts):
    assert body["logprobs"] is True
    return Reply(replied(conversation(body["messages"])), logprobs=[("a", -log(2)), ("b", -log(8))])


def test_the_example_goes_end_to_end_over_http(tmp_path):
    questions = json.loads((EXAMPLE / "questions.json").read_text(encoding="utf-8"))
    with Server(Behaviour(script=scripted, models=("talker",))) as server:
        options = ["--model", "vllm:talker", "--base-url", server.url, "-o", str(tmp_path / "out"), "--no-cache"]
        contest = [str(EXAMPLE / "gold.json"), str(EXAMPLE / "questions.json"), "--synonyms", "ru=none"]
        result = CliRunner().invoke(cli, ["dialogue", "run", *contest, *options, "--no-probe"])
        asked = sum(server.counts.values())
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert read(tmp_path / "out" / "output.json") == {name: expected(turns) for name, turns in questions.items()}
    assert asked == sum(map(len, questions.values())) == 56
    for values in read(tmp_path / "out" / "ppl_output.json").values():
        assert values == [pytest.approx(4)] * len(values)  # exp((ln 2 + ln 8) / 2)
    assert "24 dialogues, 56 replies" in result.stdout


def test_a_refusal_over_http_blocks_the_rest_of_its_dialogue(tmp_path, questions):
    def script(body, attempts):
        if conversation(body["messages"])[-1][1] == ["А Италии?"]:
            return Reply(None, refusal="не скажу")
        return scripted(body, attempts)

    with Server(Behaviour(script=script)) as server:
        options = ["--model", "openai:tiny", "--base-url", server.url, "-o", str(tmp_path / "out"), "--no-cache"]
        result = CliRunner().invoke(cli, ["dialogue", "generate", str(questions), *options, "--no-probe"])
        assert sum(server.counts.values()) == 5  # of 6: the third turn of the dialogue is not asked
    assert result.exit_code == 1
    assert "столицы/2: refused: the model refused: 'не скажу'" in str(result.exception)
    answers = read(tmp_path / "out" / "output.json")
    assert [type(answer) for answer in answers["столицы"]] == [str, dict, dict]
    assert "не скажу" in answers["столицы"][1]["error"]
