"""A model server for tests and benchmarks: OpenAI's chat completions over HTTP/1.1, with scripted behaviour.

    with Server(Behaviour(latency=0.05, faults={"rate_limit": 0.1, "reset": 0.1})) as server:
        ...  # server.url is the base URL; server.counts has the number of requests by the digest of their bodies

What happens to a request depends on the seed, the request's body and how often that body came before, so that it does
not depend on the order of the requests. `python -m tests.generate.server --latency 0.05` runs it as a process of its
own, which prints its URL.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

REASONS = {
    200: "OK",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    429: "Too Many Requests",
}


@dataclass(frozen=True)
class Reply:
    """What the model says, or a `fault` by name (see FAULTS)."""

    text: str | None = None
    finish: str = "stop"
    refusal: str | None = None
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    logprobs: list[tuple[str, float]] | None = None
    fault: str | None = None
    status: int = 200
    raw: bytes | None = None  # the whole body instead
    headers: Mapping[str, str] = field(default_factory=dict)


Script = Callable[[dict[str, Any], int], Reply]  # the request's body, and its number of earlier attempts


@dataclass(frozen=True)
class Behaviour:
    """How the server behaves."""

    latency: float = 0.0  # seconds before a reply
    faults: Mapping[str, float] = field(default_factory=dict)  # name -> probability per attempt
    seed: int = 0
    retry_after: str | None = None  # the header of a rate limit
    at_once: int | None = None  # more requests at the same time get a rate limit at once
    key: str | None = None  # every other key is refused
    echoes_key: bool = False  # error bodies contain the key, as some proxies do
    models: tuple[str, ...] = ("tiny",)
    lists_models: bool = True
    has_vision: bool = True
    script: Script | None = None  # None: a text that is made of the body's digest
    keeps_bodies: bool = True  # False saves memory
    is_constant: bool = False  # the same reply to every request, without looking at it: for benchmarks
    constant: str = "yes"  # the text of that reply
    elsewhere: str = "http://elsewhere.example/v1/chat/completions"  # where a redirect goes


def answer_to(body: bytes) -> str:
    """The text that answers a body without a script."""
    return f"answer {hashlib.sha256(body).hexdigest()[:12]}"


def user_text(body: Mapping[str, Any]) -> str:
    """The text of the last message of a request."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Server:
    """The server in a thread. `counts`, `attempts` and `bodies` say what was asked."""

    def __init__(self, behaviour: Behaviour | None = None, port: int = 0) -> None:
        self.behaviour = behaviour or Behaviour()
        self.counts: Counter[str] = Counter()  # digest of the body -> requests
        self.answered: Counter[str] = Counter()  # digest of the body -> complete replies with status 200
        self.bodies: dict[str, bytes] = {}  # digest -> body
        self.headers: list[dict[str, str]] = []  # of each request
        self.connections = 0
        self.busy = 0
        self._seen = self._refused = 0
        self._times: list[float] = []
        self.most_at_once = 0
        self.constant = response(200, completion(Reply(self.behaviour.constant), "tiny"))
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._is_serving = threading.Event()  # stopping a loop before it runs has no effect
        self.open: set[asyncio.Transport] = set()

    def __enter__(self) -> Server:
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        self._is_serving.wait(600)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread is not None
        self._thread.join(600)

    def serve(self) -> None:
        """Serve until the loop is stopped."""
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self, self._loop), sock=self._listener)
        )
        self._loop.call_soon(self._is_serving.set)
        try:
            self._loop.run_forever()
        finally:
            while tasks := asyncio.all_tasks(self._loop):  # connections that were accepted last
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            server.close()
            for transport in list(self.open):
                transport.abort()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    @property
    def requests(self) -> int:
        """How many completions were asked for."""
        return sum(self.counts.values())

    def seen(self, now: float) -> None:
        """Count a request of a benchmark."""
        if not self._times:
            self._times = [now, now]
        self._times[1] = now
        self._seen += 1

    def is_full(self) -> bool:
        """Whether another request at the same time is too many, which is counted."""
        most = self.behaviour.at_once
        is_full = most is not None and self.busy >= most
        self._refused += is_full
        return is_full

    def taken(self) -> dict[str, float]:
        """The requests of a benchmark since the last call, and the seconds from the first to the last."""
        seconds = self._times[1] - self._times[0] if self._times else 0.0
        taken = {"requests": self._seen, "refused": self._refused, "seconds": seconds}
        self._seen, self._refused, self._times = 0, 0, []
        return taken

    def other(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply | None:
        """The reply to a request that is about something else than completions."""
        return None

    def completes(self, path: str) -> bool:
        """Whether completions are asked for at this path."""
        return path.split("?")[0].endswith(("/v1/chat/completions", "/v1/responses"))

    def reply_to(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """What happens to a request for a completion."""
        behaviour = self.behaviour
        digest = hashlib.sha256(body).hexdigest()
        attempt = self.counts[digest]
        self.counts[digest] += 1
        if behaviour.keeps_bodies:
            self.bodies[digest] = body
            self.headers.append(dict(headers))
        fault = self._fault(digest, attempt)
        if fault is not None:
            return Reply(fault=fault)
        parsed = json.loads(body)
        if parsed["model"] not in behaviour.models:
            return _error(404, f"The model `{parsed['model']}` does not exist.")
        if not behaviour.has_vision and b'"image_url"' in body:
            return _error(400, "tiny is not a multimodal model")
        if behaviour.script is not None:
            return behaviour.script(parsed, attempt)
        return Reply(answer_to(body))

    def _fault(self, digest: str, attempt: int) -> str | None:
        drawn = hashlib.sha256(f"{self.behaviour.seed} {digest} {attempt}".encode()).digest()
        place = int.from_bytes(drawn[:8], "big") / 2**64
        for name, probability in self.behaviour.faults.items():
            place -= probability
            if place < 0:
                return name
        return None


def _error(status: int, message: str) -> Reply:
    return Reply(status=status, raw=json.dumps({"error": {"message": message, "code": status}}).encode())


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server, self.loop = server, loop
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.needed = 0  # bytes before there is anything to do
        self.is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.open.add(transport)
        self.server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self.transport)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        self.received += data
        if len(self.received) < self.needed or self.is_busy:
            return
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return
        start_line, *lines = bytes(self.received[:end]).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.needed = end + 4 + int(headers.get("content-length", "0"))
        if len(self.received) < self.needed:
            return
        body = bytes(self.received[end + 4 : self.needed])
        del self.received[: self.needed]
        self.needed, self.is_busy = 0, True
        method, path, _ = start_line.split(" ", 2)
        self._handle(method, path, headers, body)

    def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        behaviour = self.server.behaviour
        if behaviour.is_constant and method == "POST":
            self.server.seen(self.loop.time())
            self.loop.call_later(behaviour.latency, self._send, self.server.constant)
            return
        if method == "GET" and path == "/v1/seen":
            self._write(Reply(raw=json.dumps(self.server.taken()).encode()))
            return
        if behaviour.key is not None and headers.get("authorization") != f"Bearer {behaviour.key}":
            sent = headers.get("authorization", "no key")
            self._write(_error(401, f"wrong key: {sent}" if behaviour.echoes_key else "wrong key"))
        elif method == "GET" and path == "/v1/models" and behaviour.lists_models:
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in behaviour.models]}
            self._write(Reply(raw=json.dumps(listed).encode()))
        elif (other := self.server.other(method, path, headers, body)) is not None:
            self._write(other)
        elif method == "POST" and self.server.completes(path):
            self.server.seen(self.loop.time())
            if self.server.is_full():
                self.rate_limit(headers.get("authorization", "no key"))
                return
            self.server.busy += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.busy)
            reply = self.server.reply_to(body, headers)
            self.loop.call_later(behaviour.latency, self._answer, reply, body, headers)
        else:
            self._write(Reply(status=404, raw=b'{"detail":"Not Found"}'))

    def _answer(self, reply: Reply, body: bytes, headers: dict[str, str]) -> None:
        self.server.busy -= 1
        if self.transport.is_closing():
            return
        if reply.fault is not None:
            FAULTS[reply.fault](self, headers.get("authorization", "no key"))
            return
        if reply.status == 200:
            self.server.answered[hashlib.sha256(body).hexdigest()] += 1
        self._write(reply, b"" if reply.raw is not None else body)

    def _write(self, reply: Reply, body: bytes = b"") -> None:
        content = reply.raw if reply.raw is not None else completion(reply, json.loads(body)["model"])
        self._send(response(reply.status, content, reply.headers))

    def _send(self, content: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(content)
        self.is_busy = False
        if self.received:
            self.data_received(b"")

    # The faults. `key` is the Authorization header, for servers that echo it.

    def error(self, status: int, key: str, **headers: str) -> None:
        """An error with this status."""
        words = f" for {key}" if self.server.behaviour.echoes_key else ""
        content = json.dumps({"error": {"message": f"scripted {status}{words}", "code": status}}).encode()
        self._send(response(status, content, {name.replace("_", "-"): value for name, value in headers.items()}))

    def rate_limit(self, key: str) -> None:
        """429, with Retry-After if the behaviour has it."""
        wanted = self.server.behaviour.retry_after
        self.error(429, key, **({} if wanted is None else {"Retry_After": wanted}))

    def reset(self, key: str) -> None:
        """The connection is reset."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def half_closed(self, key: str) -> None:
        """The reply ends in the middle, and so does the connection."""
        content = response(200, completion(Reply("never complete"), "tiny"))
        self.transport.write(content[:-20])
        self.transport.write_eof()

    def closed(self, key: str) -> None:
        """The connection closes without a reply."""
        self.transport.close()

    def trickle(self, key: str, place: int = 0) -> None:
        """One byte of the reply per 50 ms."""
        content = response(200, completion(Reply("slow"), "tiny"))
        if not self.transport.is_closing() and place < len(content):
            self.transport.write(content[place : place + 1])
            self.loop.call_later(0.05, self.trickle, key, place + 1)

    def hang(self, key: str) -> None:
        """No reply, ever."""

    def wrong_json(self, key: str) -> None:
        """Status 200 with half of a JSON object."""
        self._send(response(200, b'{"choices": [{"message": {"con'))

    def wrong_shape(self, key: str) -> None:
        """Status 200 with a JSON object that is not a completion."""
        self._send(response(200, b'{"result": "fine"}'))

    def html(self, key: str) -> None:
        """Status 200 with a web page."""
        self._send(response(200, b"<html><body>Welcome</body></html>", {"Content-Type": "text/html"}))

    def redirect(self, key: str) -> None:
        """A redirect to another host."""
        self._send(response(307, b"", {"Location": self.server.behaviour.elsewhere}))


FAULTS: dict[str, Callable[[_Connection, str], None]] = {
    "rate_limit": _Connection.rate_limit,
    "error": lambda connection, key: connection.error(500, key),
    "overloaded": lambda connection, key: connection.error(529, key),
    "unavailable": lambda connection, key: connection.error(503, key),
    "reset": _Connection.reset,
    "half_closed": _Connection.half_closed,
    "closed": _Connection.closed,
    "trickle": _Connection.trickle,
    "hang": _Connection.hang,
    "wrong_json": _Connection.wrong_json,
    "wrong_shape": _Connection.wrong_shape,
    "html": _Connection.html,
    "redirect": _Connection.redirect,
}
_numbers = iter(range(10**12))


def completion(reply: Reply, model: str) -> bytes:
    """The body of a completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls is not None:
        message["tool_calls"] = reply.tool_calls
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
    if reply.logprobs is not None:
        choice["logprobs"] = {"content": [{"token": token, "logprob": value} for token, value in reply.logprobs]}
    words = len((reply.text or "").split())
    number = next(_numbers)
    return json.dumps(
        {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1_700_000_000 + number,
            "model": model,
            "choices": [choice],
            "usage": {"prompt_tokens": 7, "completion_tokens": words, "total_tokens": 7 + words},
        }
    ).encode()


def response(status: int, content: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """An HTTP response."""
    lines = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n{head}\r\n".encode("latin-1") + content


def main() -> None:
    """Serve in the foreground, until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, help="refuse more requests at the same time")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=PROBABILITY", help=", ".join(FAULTS))
    parser.add_argument("--constant", metavar="TEXT", help="the same reply to every request")
    options = parser.parse_args()
    faults = {name: float(share) for name, _, share in (fault.partition("=") for fault in options.fault)}
    constant = {} if options.constant is None else {"is_constant": True, "constant": options.constant}
    server = Server(
        Behaviour(latency=options.latency, faults=faults, seed=options.seed, at_once=options.at_once, **constant),
        options.port,
    )
    print(server.url, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
