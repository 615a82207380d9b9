"""Azure's addresses and key, headers of the user's own, and a schema for the answers: what a server receives."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import generate, load_run
from multimodal_eval.core.errors import ConfigError
from tests.generate.server import Behaviour, Reply, Server

DATA = [{"id": "1", "question": "Which?"}]
SCHEMA = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}


class Azure(Server):
    """Only the path of the deployment is known, and the key is in the header `api-key`."""

    path = "/openai/deployments/my%20model/chat/completions?api-version=2024-10-21"

    def __init__(self):
        super().__init__(Behaviour(script=lambda body, earlier: Reply("red"), models=("my model",)))
        self.paths: list[str] = []

    def completes(self, path: str) -> bool:
        self.paths.append(path)
        return path == self.path


def ask(base_url, model, **generation):
    settings = {"model": model, "base_url": base_url, "use_cache": False, **generation}
    return generate(DATA, generation=settings)


def test_azure_is_asked_at_the_deployment_with_its_own_header(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret-of-azure")
    with Azure() as server:
        address = server.url.removesuffix("/v1")
        run = ask(address, "azure:my model")
        assert run.generation.statuses == {"ok": 1}
        assert {headers["api-key"] for headers in server.headers} == {"secret-of-azure"}
        assert not any("authorization" in headers for headers in server.headers)
        server.path = server.path.replace("2024-10-21", "2025-01-01-preview")
        assert ask(f"{address}/openai?api-version=2025-01-01-preview", "azure:my model").generation.statuses == {
            "ok": 1
        }
    with pytest.raises(ConfigError, match=r"--base-url https://NAME\.openai\.azure\.com"):
        generate(DATA, generation={"model": "azure:x"})


def test_headers_are_sent_and_their_secrets_stored_nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("GATEWAY_TOKEN", "token-of-the-gateway")
    echo = Reply("token-of-the-gateway is what I got")
    with Server(Behaviour(script=lambda body, earlier: echo)) as server:
        headers = {"X-Project": "colors", "X-Gateway-Token": "Token $GATEWAY_TOKEN"}
        generation = {"model": "openai:tiny", "base_url": server.url, "use_cache": False, "headers": headers}
        run = generate(DATA, generation=generation, output=tmp_path / "run")
        sent = server.headers[-1]
    assert (sent["x-project"], sent["x-gateway-token"]) == ("colors", "Token token-of-the-gateway")
    assert run.info.config.generation.headers == headers
    files = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(b"token-of-the-gateway" in content for content in files)
    assert run.answers().column("text").to_pylist() == ["[key removed] is what I got"]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"X-Api-Key": "abc"}, r"X-Api-Key: \$MY_VARIABLE"),
        ({"X-Any": "Bearer 0123456789"}, r"must not have the value of 'X-Any'"),
        ({"X-Any": "$NOT_SET_ANYWHERE"}, r"\$NOT_SET_ANYWHERE, which is not set"),
        ({"X Any": "1"}, "must be the name of a header"),
        ({"X-Any": "a\nb"}, "one line of ASCII"),
    ],
)
def test_headers_that_cannot_be_sent(headers, message):
    with pytest.raises(ConfigError, match=message):
        ask("http://localhost:1/v1", "openai:x", headers=headers)


def test_a_schema_is_sent_and_part_of_the_signature(tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    with Server(Behaviour(script=lambda body, earlier: Reply('{"color": "red"}'))) as server:
        run = ask(server.url, "openai:tiny", schema=str(tmp_path / "schema.json"))
        bodies = [json.loads(body) for body in server.bodies.values()]
        plain = ask(server.url, "openai:tiny")
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}
    assert all(body["response_format"] == wanted for body in bodies)
    assert "schema" in run.generation.settings
    assert run.generation.signature != plain.generation.signature
    (tmp_path / "schema.json").write_text("[1]")
    with pytest.raises(ConfigError, match="must be a JSON object"):
        ask("http://localhost:1/v1", "openai:tiny", schema=str(tmp_path / "schema.json"))


def test_a_run_needs_the_file_of_its_schema_no_more(tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    with Server(Behaviour(script=lambda body, earlier: Reply("{}"))) as server:
        settings = {"model": "openai:tiny", "base_url": server.url, "use_cache": False, "schema": str(schema)}
        run = generate(DATA, generation=settings, output=tmp_path / "run")
    schema.unlink()
    scored = run.score(metrics=["exact_match"], allow_empty=True)
    assert load_run(scored.location).info.config.generation.answer_schema == SCHEMA
