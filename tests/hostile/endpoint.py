"""Replies of a model endpoint that are damaged, endless or expand without end: an answer, or one of our errors."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from random import Random

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.generate.protocol import Answer, Request, Text, Turn
from multimodal_eval.generate.providers.openai_chat import open_generator
from tests.generate.server import Reply, completion, response
from tests.hostile.campaign import FaultError, campaign, check_printed
from tests.hostile.mutations import damaged, damaged_json

LOCATIONS = (
    "http://[bad",
    "//elsewhere.example/x",
    "\\\\host\\x",
    "javascript:1",
    "",
    "/v1/chat/completions",
    "http://",
)
HEADERS = (
    {"Retry-After": "nan"},
    {"Retry-After": "9" * 400},
    {"Content-Encoding": "gzip"},
    {"Content-Encoding": "br"},
    {"Transfer-Encoding": "chunked"},
    {"Content-Length": "-1"},
    {"Content-Length": "99999999999"},
    {"Set-Cookie": "a=b; domain=.example"},
    {"X": "y" * 20_000},
)


@campaign("endpoint", cases=300)
def attack(random: Random, folder: Path) -> str | None:
    reply = hostile_reply(random)
    (folder / "reply.bin").write_bytes(reply[:10_000_000])
    try:
        answer = asyncio.run(asked(reply))
    except MultimodalEvalError as error:
        check_printed(str(error))
        if len(str(error)) > 2_000:
            raise FaultError(f"a message of {len(str(error)):,} characters") from error
        return type(error).__name__
    if not isinstance(answer, Answer):
        raise FaultError(f"{answer!r} is not an answer")
    return "answered"


def hostile_reply(random: Random) -> bytes:
    """The bytes that the server sends."""
    content = completion(Reply("fine", logprobs=[("fine", -0.5)], reasoning="hm"), "tiny")
    kind = random.randrange(6)
    if kind == 0:
        return damaged(random, response(200, content))
    if kind == 1:
        return response(200, damaged_json(random, content))
    if kind == 2:
        return response(random.choice([301, 302, 307, 308]), b"", {"Location": random.choice(LOCATIONS)})
    if kind == 3:
        return response(random.randrange(100, 1000), damaged(random, content), random.choice(HEADERS))
    if kind == 4:
        bomb = gzip.compress(bytes(random.choice([10**6, 3 * 10**8])), 1)
        return response(random.choice([200, 400, 500]), bomb, {"Content-Encoding": "gzip"})
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + bytes(random.randrange(2**20))


async def asked(reply: bytes) -> Answer:
    """What becomes of the reply."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        config = GenerationConfig(model="openai:tiny", base_url=url, use_probe=False, timeout=20)
        generator = open_generator("openai", "tiny", config)
        return await generator.answer(Request("a", (Turn("user", (Text("hello"),)),)))
