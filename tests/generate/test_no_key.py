"""The key of an endpoint is in no file, no log, no error and no report, even if the endpoint repeats it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from multimodal_eval import generate
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.registry import find_generator
from multimodal_eval.generate.secrets import SHORTEST, Key, key_from_environment
from tests.generate.server import Behaviour, Reply, Server, user_text

KEY = 'sk-proj/0123456789abcdef+"quoted"'


def echoing(body: dict[str, Any], attempt: int) -> Reply:
    """Every way in which a server can repeat the key."""
    question = user_text(body)
    error = json.dumps({"error": {"message": f"not with the key {KEY}, Bearer {KEY}"}}).encode()
    if "rejected" in question:
        return Reply(status=400, raw=error)
    if "late" in question and not attempt:
        return Reply(status=500, raw=error)
    if "refused" in question:
        return Reply(refusal=f"I refuse because of {KEY}")
    if "malformed" in question:
        return Reply(raw=error[:-3])
    return Reply(f"the key is {KEY}", reasoning=f"I know {KEY}")


def run(folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MY_KEY": KEY, "MMEVAL_HOME": str(folder / "home"), "MMEVAL_DEBUG": "1"}
    model = ("--model", "openai:tiny", "--base-url", url, "--key-env", "MY_KEY")
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "run", "data.jsonl", *model, "-o", "run"]
    command += ["--metrics", "exact_match"]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, timeout=600, check=False
    )


def has_key(content: bytes) -> bool:
    """Whether the first half of the key is there, which is the same in JSON and HTML."""
    half = KEY.partition("+")[0]
    return half.encode() in content or half.replace("/", "\\/").encode() in content


def test_no_key_after_a_run(tmp_path):
    questions = ["rejected", "late", "refused", "malformed", "answered"]
    samples = [{"id": name, "question": name, "references": ["x"]} for name in questions]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    with Server(Behaviour(key=KEY, script=echoing)) as server:
        done = run(tmp_path, server.url)
        assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
        assert server.requests == 1 + 1 + 2 + 1 + 5 + 1  # the probe, and each question with its attempts
    assert done.returncode == 0, done.stderr
    assert "[key removed]" in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "report.html"} <= {path.name for path in files}
    assert [str(path) for path in files if has_key(_readable(path))] == []
    assert not has_key((done.stdout + done.stderr).encode())
    assert "MY_KEY" in (tmp_path / "run" / "run.json").read_text()  # the name is stored


def _readable(path: Path) -> bytes:
    """The content of a file; a table is compressed, so its values are written out."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    import pyarrow.parquet as pq

    return path.read_bytes() + json.dumps(pq.read_table(path).to_pylist(), default=str).encode()


def test_no_key_after_a_refused_key(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"id": "a", "question": "b", "references": ["x"]}\n')
    with Server(Behaviour(key="another", echoes_key=True)) as server:
        done = run(tmp_path, server.url)
    assert done.returncode == 1
    assert "Check the value of $MY_KEY" in done.stderr
    assert not has_key((done.stdout + done.stderr).encode())


def test_a_key_does_not_show_itself(monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    key = key_from_environment("MY_KEY")
    assert key.value == KEY
    assert repr(key) == "Key(MY_KEY)"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(key)


@pytest.mark.parametrize("value", ["one\ntwo", "ключ-of-many-letters", "tab\tbed"])
def test_a_value_that_no_header_can_have_is_refused_without_showing_it(value, monkeypatch):
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(ConfigError, match=r"\$MY_KEY must be one line of ASCII") as refused:
        key_from_environment("MY_KEY")
    assert value not in str(refused.value)


def test_a_key_in_the_place_of_its_variable_is_refused_without_showing_it():
    with pytest.raises(ConfigError, match="`key_env` must be the name of an environment variable") as refused:
        key_from_environment("sk-0123456789")
    assert "sk-0123456789" not in str(refused.value)


@pytest.mark.parametrize("model", ["openai:tiny", "openai-responses:tiny", "anthropic:tiny", "gemini:tiny"])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parameters": {"extra": {"api_key": "x"}}}, "`extra` must not set 'api_key'"),
        ({"parameters": {"extra": {"user": f"me {KEY}"}}}, r"contain the value of \$MY_KEY"),
        ({"system": f"Bearer {KEY}"}, r"contain the value of \$MY_KEY"),
    ],
)
def test_settings_with_a_key_are_refused_because_they_are_stored(model, settings, message, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    config = msgspec.convert({"model": model, "key_env": "MY_KEY", **settings}, GenerationConfig)
    with pytest.raises(ConfigError, match=message) as refused:
        find_generator(config)
    assert not has_key(str(refused.value).encode())


@pytest.mark.parametrize("model", ["openai:tiny", "echo:", "script:answers.json", "llama:smollm2-135m"])
@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"api_key": "sk-top-abcdefgh"}, "api_key"),
        ({"headers": {"Authorization": "Bearer sk-nested-abcdefgh"}}, "headers.Authorization"),
        ({"options": [{"proxy": {"password": "correct horse"}}]}, "options.0.proxy.password"),
        ({"user": "sk-value-abcdefgh"}, "user"),
        ({"headers": [["X-Custom", "bearer 0123456789"]]}, "headers.0.1"),
    ],
)
def test_a_key_at_any_depth_is_refused_by_every_provider(model, extra, path):
    config = msgspec.convert({"model": model, "parameters": {"extra": extra}}, GenerationConfig)
    with pytest.raises(ConfigError, match=f"`extra` must not set '{path}'") as refused:
        find_generator(config)
    assert "abcdefgh" not in str(refused.value)
    assert "horse" not in str(refused.value)


def test_a_key_in_the_settings_of_a_function_is_refused(tmp_path):
    settings = {"parameters": {"extra": {"headers": {"Authorization": "Bearer sk-nested-abcdefgh"}}}}
    with pytest.raises(ConfigError, match="`extra` must not set"):
        generate([{"question": "q"}], model=lambda request: "yes", generation=settings, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_property_of_a_schema_may_be_named_key():
    properties = {"key": {"type": "string"}, "token": {"type": "string", "description": "the token that was chosen"}}
    schema = {"json_schema": {"name": "answer", "schema": {"properties": properties, "required": ["key", "token"]}}}
    extra = {"response_format": schema, "options": {"stop_token": "</s>"}, "sport": "skateboarding"}
    config = msgspec.convert({"model": "openai:tiny", "parameters": {"extra": extra}}, GenerationConfig)
    assert find_generator(config).label == "openai:tiny"


@pytest.mark.parametrize("name", ["top_k", "max_completion_tokens", "token_ids", "keyword", "return_tokens"])
def test_fields_whose_names_contain_other_words_are_accepted(name, monkeypatch):
    config = msgspec.convert({"model": "openai:tiny", "parameters": {"extra": {name: 1}}}, GenerationConfig)
    assert find_generator(config).label == "openai:tiny"


def test_no_variable_is_no_key(monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    assert key_from_environment("MY_KEY").value is None


def test_a_placeholder_is_not_removed_from_answers():
    assert Key("EMPTY").removed(b"The box is EMPTY.") == b"The box is EMPTY."


keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST)


@given(keys, st.text(), st.text())
def test_a_key_is_removed_from_any_text_and_json(value, before, after):
    assume(value not in "[key removed]")
    text = f"{before}{value}{after}"
    key = Key(value)
    assert value not in key.removed_text(text).replace("[key removed]", "\0")
    content = json.dumps({"x": [text], "y": 1.5}).encode()
    removed = json.loads(key.removed(content))
    assert value not in removed["x"][0].replace("[key removed]", "\0")
    assert removed["y"] == 1.5
