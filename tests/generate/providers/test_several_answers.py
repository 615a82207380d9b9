"""Several answers per request: one request for the epochs of a sample, where the server supports it."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import generate
from multimodal_eval.core.errors import ConfigError
from tests.generate.server import Behaviour, Reply, Server, completion

DATA = [{"id": str(number), "question": f"Which is {number}?"} for number in range(3)]


def several(most: int | None = None):
    """A script that gives as many choices as are asked for, at most `most`: a, b, c, …"""

    def script(body, earlier):
        content = json.loads(completion(Reply("a"), "tiny"))
        (choice,) = content["choices"]
        count = min(body.get("n", 1), most or 100)
        content["choices"] = [
            {**choice, "index": place, "message": {"role": "assistant", "content": "abcd"[place]}}
            for place in range(count)
        ]
        content["usage"]["completion_tokens"] = count
        return Reply(raw=json.dumps(content).encode())

    return script


def asked(script, **generation):
    """The run of four epochs, and the bodies of its requests."""
    with Server(Behaviour(script=script, faults=generation.pop("faults", {}))) as server:
        settings = {"model": "vllm:tiny", "base_url": server.url, "use_probe": False, "use_cache": False, "epochs": 4}
        run = generate(DATA, generation={**settings, **generation}, seed=7)
        bodies = [json.loads(body) for body in server.bodies.values()]
        return run, bodies, server.requests


def test_the_epochs_of_a_sample_are_one_request():
    run, bodies, requests = asked(several(), answers_per_request=4)
    assert requests == 3
    assert [(body["n"], body["seed"]) for body in bodies] == [(4, 7)] * 3
    assert run.answers().column("text").to_pylist() == list("abcd") * 3
    assert run.generation.output_tokens == 12
    assert run.generation.settings["answers_per_request"] == 4


def test_two_requests_of_two_answers_have_two_seeds():
    run, bodies, requests = asked(several(), answers_per_request=2)
    assert requests == 6
    assert sorted(body["seed"] for body in bodies) == [7, 7, 7, 9, 9, 9]
    assert run.answers().column("text").to_pylist() == list("abab") * 3


def test_failed_requests_are_retried_for_all_answers():
    run, _, _ = asked(several(), answers_per_request=4, faults={"error": 0.3, "reset": 0.3})
    assert run.answers().column("text").to_pylist() == list("abcd") * 3


def test_a_server_that_gives_fewer_answers_is_asked_for_the_others():
    with pytest.warns(UserWarning, match="without several answers per request, because the endpoint rejects it"):
        run, bodies, _ = asked(several(most=2), answers_per_request=4, concurrency=1)
    assert run.generation.statuses == {"ok": 12}
    assert sorted(body["seed"] for body in bodies[:3]) == [7, 9, 10]  # two answers of four, then one by one
    assert not any("n" in body for body in bodies[1:])


def test_a_server_that_refuses_several_answers_is_asked_one_by_one():
    def script(body, earlier):
        if "n" in body:
            error = {"error": {"message": "Only one completion choice is allowed", "code": 400}}
            return Reply(status=400, raw=json.dumps(error).encode())
        return Reply(f"seed {body['seed']}")

    with pytest.warns(UserWarning, match="Only one completion choice"):
        run, _, _ = asked(script, answers_per_request=4)
    assert run.answers().column("text").to_pylist() == ["seed 7", "seed 8", "seed 9", "seed 10"] * 3


def test_what_does_not_go_with_several_answers():
    with pytest.raises(ConfigError, match=r"`epochs` must be a multiple of `answers_per_request`, 3\. Got 4"):
        asked(several(), answers_per_request=3)
    with pytest.raises(ConfigError, match=r"one answer per request: no `answers_per_request`"):
        generate(DATA, generation={"model": "echo:", "epochs": 2, "answers_per_request": 2})
