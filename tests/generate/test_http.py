"""The HTTP client against the scripted server: what every failure becomes."""

from __future__ import annotations

import asyncio
import email.utils
import json
import shutil
import ssl
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Coroutine
from typing import Any

import pytest

from multimodal_eval.core.errors import MultimodalEvalError, RetryableError
from multimodal_eval.generate import http
from multimodal_eval.generate.http import HttpClient, excerpt, retry_after
from multimodal_eval.generate.protocol import (
    EndpointError,
    FilteredError,
    MalformedReplyError,
    RateLimitError,
    RejectedError,
    UnreachableError,
)
from multimodal_eval.generate.providers.openai_chat import answer_from
from multimodal_eval.generate.secrets import Key, key_from_environment
from tests.generate.server import Behaviour, Reply, Server, answer_to


@pytest.fixture(autouse=True)
def no_proxies_of_other_tests():
    http._proxy.cache_clear()


BODY = b'{"model":"tiny","messages":[{"role":"user","content":"hello"}]}'
KEY = "sk-very-secret/0123456789"


def client(timeout: float = 600.0, key: Key | None = None) -> HttpClient:
    key = key or Key(None, "OPENAI_API_KEY")
    headers = {"Authorization": f"Bearer {key.value}"} if key.value else {}
    return HttpClient(key, headers, timeout=timeout, subject="tiny")


def posted(server: Server, asking: HttpClient | None = None, path: str = "/chat/completions") -> bytes:
    return asyncio.run((asking or client()).post(server.url + path, BODY))


def failing(behaviour: Behaviour, asking: HttpClient | None = None) -> Exception:
    with Server(behaviour) as server, pytest.raises(MultimodalEvalError) as raised:
        answer_from(posted(server, asking))
    return raised.value


def always(fault: str, **more: Any) -> Behaviour:
    return Behaviour(faults={fault: 1.0}, **more)


def saying(status: int, body: bytes, **headers: str) -> Behaviour:
    return Behaviour(
        script=lambda *_: Reply(
            status=status, raw=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
    )


def test_an_answer():
    with Server() as server:
        answer = answer_from(posted(server))
    assert (answer.text, answer.model, answer.input_tokens) == (answer_to(BODY), "tiny", 7)


def test_connections_are_reused_and_closed_with_the_loop(recwarn):
    async def many(asking: HttpClient, url: str) -> None:
        for _ in range(5):
            await asyncio.gather(*(asking.post(url, BODY) for _ in range(4)))

    with Server() as server:
        asking = client()
        asyncio.run(many(asking, f"{server.url}/chat/completions"))
        assert server.connections == 4
        asyncio.run(many(asking, f"{server.url}/chat/completions"))  # another loop has another session
        assert server.requests == 40
    assert not [warning for warning in recwarn if issubclass(warning.category, ResourceWarning)]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("rate_limit", RateLimitError),
        ("error", RetryableError),
        ("overloaded", RetryableError),
        ("unavailable", RetryableError),
        ("reset", RetryableError),
        ("half_closed", RetryableError),
        ("closed", RetryableError),
        ("wrong_json", MalformedReplyError),
        ("wrong_shape", MalformedReplyError),
        ("html", MalformedReplyError),
        ("redirect", EndpointError),
    ],
)
def test_every_fault_has_its_error(fault, kind):
    assert type(failing(always(fault))) is kind


@pytest.mark.parametrize("fault", ["trickle", "hang"])
def test_a_reply_that_does_not_end_is_retried_after_the_time_out(fault):
    failure = failing(always(fault), client(timeout=0.4))
    assert type(failure) is RetryableError
    assert "within 0.4 seconds" in str(failure)


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, b'{"error":{"message":"too long"}}', RejectedError, "HTTP 400: too long"),
        (413, b"too large", RejectedError, "HTTP 413: too large"),
        (422, b'{"detail":"no such field"}', RejectedError, "HTTP 422: no such field"),
        (401, b'{"error":"no"}', EndpointError, "Set $OPENAI_API_KEY"),
        (403, b"", EndpointError, "an empty body"),
        (402, b"{}", EndpointError, "no credit left"),
        (404, b'{"detail":"Not Found"}', EndpointError, "/v1/chat/completions does not exist"),
        (404, b'{"error":{"message":"no model like that"}}', EndpointError, "has no model 'tiny'"),
        (405, b"", EndpointError, "Check the base URL"),
        (408, b"", RateLimitError, "HTTP 408"),
        (409, b"", RateLimitError, "HTTP 409"),
        (425, b"", RateLimitError, "HTTP 425"),
        (204, b"", RetryableError, "HTTP 204"),
        (429, b"", RateLimitError, "HTTP 429"),
        (429, b'{"error":{"message":"x","code":"insufficient_quota"}}', EndpointError, "no credit left"),
        (500, b"", RetryableError, "HTTP 500"),
        (529, b"", RetryableError, "HTTP 529"),
        (301, b"", EndpointError, "Pass that address as the base URL"),
    ],
)
def test_every_status_has_its_error(status, body, kind, words):
    failure = failing(saying(status, body, Location="/elsewhere"))
    assert type(failure) is kind
    assert words in str(failure)


AZURE = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
    }
}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, AZURE),
        (400, {"error": {"message": "Your request was rejected.", "code": "content_policy_violation"}}),
        (403, {"error": {"message": "no", "type": "content_filter"}}),
        (200, AZURE),
        (200, {"error": {"message": "The input was flagged by moderation", "code": 403}}),
    ],
)
def test_a_content_filter_is_known_by_its_code(status, error):
    assert type(failing(saying(status, json.dumps(error).encode()))) is FilteredError


def test_a_message_that_only_mentions_moderation_is_about_the_request():
    body = b'{"error":{"message":"unknown parameter: moderation","code":"invalid_request"}}'
    assert type(failing(saying(400, body))) is RejectedError


@pytest.mark.parametrize(
    ("message", "kind"),
    [("The input was flagged by moderation", FilteredError), ("not for this image", RejectedError)],
)
def test_a_403_is_about_one_request_once_the_key_has_worked(message, kind):
    refusal = Reply(status=403, raw=json.dumps({"error": {"message": message}}).encode())
    asking = client()
    behaviour = Behaviour(script=lambda body, earlier: Reply("fine") if earlier == 1 else refusal)
    with Server(behaviour) as server:
        with pytest.raises(EndpointError, match="does not accept the key"):
            posted(server, asking)
        posted(server, asking)
        with pytest.raises(kind) as raised:
            posted(server, asking)
    assert type(raised.value) is kind
    assert str(raised.value) == f"HTTP 403: {message}"


def test_a_401_is_about_the_key_also_after_an_answer():
    asking = client()
    behaviour = Behaviour(script=lambda body, earlier: Reply(status=401, raw=b"{}") if earlier else Reply("fine"))
    with Server(behaviour) as server:
        posted(server, asking)
        with pytest.raises(EndpointError, match="does not accept the key"):
            posted(server, asking)


@pytest.mark.parametrize("status", [429, 503])
def test_the_pause_that_the_endpoint_asks_for(status):
    failure = failing(saying(status, b"", Retry_After="17"))
    assert isinstance(failure, RateLimitError)
    assert failure.retry_after == 17


def test_retry_after_is_seconds_milliseconds_or_a_date():
    assert retry_after({"Retry-After": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250", "Retry-After": "1"}) == 0.25
    assert retry_after({"Retry-After": "-3"}) == 0
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < (retry_after({"Retry-After": date}) or 0) <= 100
    assert retry_after({"Retry-After": "1e9"}) == retry_after({"Retry-After": "inf"}) == 24 * 3600
    for useless in ("", "soon", "nan", "Thu, 99 Foo"):
        assert retry_after({"Retry-After": useless}) is None
    assert retry_after({}) is None


def test_a_redirect_to_the_same_host_is_followed():
    def script(_: object, attempt: int) -> Reply:
        if attempt:
            return Reply("arrived")
        return Reply(status=307, raw=b"", headers={"Location": "/v1/chat/completions?again"})

    with Server(Behaviour(script=script)) as server:
        assert answer_from(posted(server)).text == "arrived"


def test_a_redirect_elsewhere_is_not_followed():
    with Server() as other:
        failure = failing(always("redirect", elsewhere=f"{other.url}/chat/completions?key=very-secret"))
        assert isinstance(failure, EndpointError)
        assert f"redirects to {other.url}/chat/completions, which is another server" in str(failure)
        assert other.connections == 0


def test_a_redirect_that_does_not_end_is_an_error():
    behaviour = saying(308, b"", Location="/v1/chat/completions")
    assert "redirects more than 3 times" in str(failing(behaviour))


def test_no_server():
    with Server() as server:
        url = server.url
    with pytest.raises(RetryableError, match=rf"no server answers at {url} \(connection refused\)"):
        asyncio.run(client().post(url, BODY))


def test_an_unknown_host():
    with pytest.raises(RetryableError, match="the host is not known"):
        asyncio.run(client().post("http://no-such-host.invalid/v1", BODY))


def test_a_reply_without_end_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr(http, "LARGEST_REPLY", 2**20)
    failure = failing(saying(200, b"x" * 2**21))
    assert isinstance(failure, MalformedReplyError)
    assert "larger than 1 MiB" in str(failure)


def test_an_excerpt_is_short_and_one_line():
    assert excerpt(b"one\ntwo\x1b[31m  three") == "one two [31m three"
    assert len(excerpt(b"x" * 10_000)) == 300
    assert excerpt(b"") == "an empty body"
    assert excerpt(b'{"message":"from vLLM"}') == "from vLLM"
    assert excerpt(b"\xff\xfe") == "��"


@pytest.mark.parametrize("fault", ["rate_limit", "error"])
def test_a_key_that_the_endpoint_repeats_is_removed(fault):
    asking = client(key=Key(KEY, "OPENAI_API_KEY"))
    failure = failing(always(fault, key=KEY, echoes_key=True), asking)
    assert "Bearer [key removed]" in str(failure)
    assert KEY not in repr(failure) + repr(asking) + repr(vars(failure))


def test_a_wrong_key_is_named_by_its_variable():
    failure = failing(Behaviour(key="another", echoes_key=True), client(key=Key(KEY, "OPENAI_API_KEY")))
    assert "Check the value of $OPENAI_API_KEY" in str(failure)
    assert KEY not in str(failure)


def test_a_key_in_an_answer_and_in_a_redirect_is_removed():
    asking = client(key=Key(KEY, "OPENAI_API_KEY"))
    body = b'{"choices":[{"message":{"content":"' + KEY.replace("/", "\\/").encode() + b'"}}]}'
    with Server(saying(200, body)) as server:
        answer = answer_from(posted(server, asking))
    assert answer.text == "[key removed]"
    assert KEY not in repr(answer)
    assert KEY not in str(failing(always("redirect", elsewhere=f"http://a.example/{KEY}"), asking))


def test_the_proxy_of_the_environment_is_used_except_for_this_machine(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3129")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert http._proxy("http://api.example/v1") == "http://proxy.example:3128"
    assert http._proxy("https://api.example/v1") == "http://proxy.example:3129"
    assert http._proxy("http://inside.example/v1") is None
    assert http._proxy("http://localhost:8000/v1") is None
    assert http._proxy("http://127.0.0.1:8000/v1") is None


def test_a_request_goes_through_the_proxy(monkeypatch):
    with Server(Behaviour(script=lambda *_: Reply("by proxy"))) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        asked: Coroutine[Any, Any, bytes] = client().post("http://api.example/v1/chat/completions", BODY)
        assert answer_from(asyncio.run(asked)).text == "by proxy"


@pytest.mark.parametrize("status", [400, 407, 502])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_password_of_a_proxy_is_in_no_error(monkeypatch, scheme, status):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        received.append(head)
        said = head.replace(b"\r\n", b" ")
        writer.write(b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\n\r\n%s" % (status, said, len(head), head))
        await writer.drain()
        writer.close()

    async def asked() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            monkeypatch.setenv(f"{scheme}_proxy", f"http://user:pass%2Fword-77@127.0.0.1:{port}")
            asking = client(key=key_from_environment("NOT_SET"))
            with pytest.raises((EndpointError, RejectedError, RetryableError)) as raised:
                await asking.post(f"{scheme}://api.example/v1/chat/completions", BODY)
            errors.append(raised.value)

    received: list[bytes] = []
    errors: list[Exception] = []
    asyncio.run(asked())
    sent = b64encode(b"user:pass/word-77")
    assert sent in received[0]  # the proxy gets it
    text = f"{errors[0]} {errors[0]!r}"
    assert str(status) in text
    assert not any(secret in text for secret in ("pass/word-77", "pass%2Fword-77", sent.decode()))
    if status == 407:
        assert isinstance(errors[0], EndpointError)
        assert "Check $http_proxy" in text


def test_a_proxy_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://user:password-77@127.0.0.1:9")
    with pytest.raises(UnreachableError, match=r"the proxy 127\.0\.0\.1:9 of the environment does not answer"):
        asyncio.run(client().post("http://api.example/v1/chat/completions", BODY))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_a_certificate_that_nobody_signed_is_refused(tmp_path):
    files = ("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    received = []

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1))

    async def asked() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
            port = server.sockets[0].getsockname()[1]
            await client().post(f"https://127.0.0.1:{port}/v1", BODY)

    with pytest.raises(EndpointError, match=r"certificate of .* is not valid"):
        asyncio.run(asked())
    assert received == []


def test_aiohttp_is_imported_only_to_ask():
    code = "import sys; from multimodal_eval.generate.providers import openai_chat; assert 'aiohttp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
