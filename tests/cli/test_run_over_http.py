"""`mmeval run` against a server: the whole way, and what it says if the endpoint is not what the user thinks."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import load_run
from tests.cli.command_line import mmeval
from tests.generate.server import Behaviour, Reply, Server, user_text


def scripted(body, earlier):
    word = user_text(body).splitlines()[0].split()[-1]
    if word == "long":
        return Reply("lo", finish="length")
    if word == "busy" and earlier == 0:
        return Reply(fault="rate_limit")
    return Reply(word)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    words = ("red", "busy", "long")
    rows = [{"id": word, "question": f"say {word}", "references": [word]} for word in words]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "data.jsonl"


def run(data, server, *arguments, model="openai:tiny", code=0):
    base_url = server if isinstance(server, str) else server.url
    options = ("--metrics", "exact_match", "-o", "run", "--no-report", "--retries", "2")
    return mmeval("run", data, "--model", model, "--base-url", base_url, *options, *arguments, code=code)


def test_from_a_server_to_a_table(data):
    with Server(Behaviour(script=scripted, retry_after="0")) as server:
        done = run(data, server)
    assert "answers of openai:tiny: 2 ok, 1 truncated" in done.stdout
    scored = load_run("run")
    assert scored["exact_match"]["value"] == 1
    assert scored["exact_match"]["n_scored"] == 2
    assert scored.info.generation.base_url == server.url


def test_a_model_that_the_server_does_not_have(data):
    with Server(Behaviour(script=scripted)) as server:
        done = run(data, server, model="openai:tny", code=1)
    assert "no model 'tny'" in done.stderr
    assert "The server has: tiny" in done.stderr
    assert "--resume" not in done.stderr  # nothing was answered, and nothing is kept


def test_a_sample_that_moderation_flags_does_not_stop_the_run(data):
    flagged = Reply(status=403, raw=b'{"error": {"message": "The input was flagged by moderation"}}')

    def moderated(body, earlier):
        return flagged if user_text(body).endswith("long") else scripted(body, earlier)

    with Server(Behaviour(script=moderated, retry_after="0")) as server:
        done = run(data, server)
    assert "answers of openai:tiny: 2 ok, 1 filtered" in done.stdout
    assert "HTTP 403: The input was flagged by moderation" in done.stdout


def test_no_server(data):
    with Server(Behaviour()) as server:
        url = server.url
    done = run(data, url, code=1)
    assert "no server answers at" in done.stderr
    assert "Is it running? Check --base-url" in done.stderr


def test_a_wrong_key(data, monkeypatch):
    monkeypatch.setenv("MY_KEY", "wrong-secret")
    with Server(Behaviour(script=scripted, key="right-secret")) as server:
        done = run(data, server, "--key-env", "MY_KEY", code=1)
    assert "MY_KEY" in done.stderr
    assert "secret" not in done.stderr
