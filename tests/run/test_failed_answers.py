"""A run whose model gives no answer at all says what happened to the samples, and what to do."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import ConfigError, NothingScoredError
from multimodal_eval.generate.protocol import Answer
from tests.cli.command_line import mmeval
from tests.generate.server import Behaviour, Reply, Server

ROWS = [{"id": str(number), "question": f"question {number}", "references": ["yes"]} for number in range(3)]


def refusal_of(model, **settings):
    with pytest.raises(NothingScoredError) as refusal:
        evaluate(ROWS, model=model, metrics=["exact_match"], **settings)
    return str(refusal.value)


def test_every_refusal_of_an_endpoint_is_counted_and_the_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    with Server(Behaviour(script=lambda *_: Reply(refusal="I cannot"))) as server:
        arguments = ("--model", "openai:tiny", "--base-url", server.url, "--metrics", "exact_match", "-o", "run")
        done = mmeval("run", "data.jsonl", *arguments, code=1)
        assert done.stderr.splitlines() == [
            "error: NOTHING_SCORED: exact_match cannot score any sample: none of the 3 samples has an answer.",
            "answers of openai:tiny: 3 refused",
            "  refused (3): the model refused: 'I cannot'",
            "Change the prompt (--prompt, `generation: {system: …}` in the file of --config), or choose another model.",
            "The status and the reason of every sample are in run/answers. Correct it in a new run.",
            "To finish this run without scores: mmeval run --resume run --allow-empty",
        ]
        asked = server.requests
        finished = mmeval("run", "--resume", "run", "--allow-empty", "--no-report")
        assert server.requests == asked
    assert "3 refused" in finished.stdout
    assert "is replaced by" not in finished.stderr


def test_the_exception_of_a_function_is_shown():
    def model(request):
        raise ValueError(f"no weights in {'memory'}")

    words = refusal_of(model)
    assert "raised (3): ValueError: no weights in memory" in words
    assert "@batched(SIZE)" in words
    assert "allow_empty=True" in words
    assert "columns" not in words


def test_a_function_without_text_and_a_script_without_the_ids(tmp_path):
    assert "empty (3): the model answered without text" in refusal_of(lambda request: None)
    (tmp_path / "script.json").write_text("{}")
    assert "rejected (1): the script has no answer for '0'" in refusal_of(f"script:{tmp_path / 'script.json'}")


def test_one_answer_is_enough():
    run = evaluate(ROWS, model=lambda request: "yes" if request.id == "1" else None, metrics=["exact_match"])
    assert run.entries["exact_match"].n_scored == 1


class Synchronous:
    label = "mine"

    def answer(self, request):
        return Answer("yes")


class Text:
    label = "mine"

    async def answer(self, request):
        return "yes"


@pytest.mark.parametrize(
    ("model", "words"), [(Synchronous(), "async def answer"), (Text(), "must return an Answer. Got 'yes' instead")]
)
def test_a_generator_of_another_kind_stops_at_once_and_leaves_no_folder(tmp_path, model, words):
    with pytest.raises(ConfigError, match=words):
        evaluate(ROWS, model=model, metrics=["exact_match"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
