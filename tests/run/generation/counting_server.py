"""A server that answers lines of text, in a thread, and counts them; and a model that asks it."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from types import TracebackType

from multimodal_eval.core.errors import RetryableError
from multimodal_eval.generate.protocol import Answer, RateLimitError, Request


class CountingServer:
    """Answers "question N" with "answer N" after `latency` seconds; a share of `faults` fails instead."""

    def __init__(self, latency: float = 0.03, faults: float = 0.0) -> None:
        self.latency, self.faults = latency, faults
        self.received: Counter[str] = Counter()
        self.answered = 0
        self._rng = random.Random(5)
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> CountingServer:
        self._thread.start()
        self._is_up.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        self._loop.run_until_complete(self._main())

    async def _main(self) -> None:
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1000)
        self.port: int = server.sockets[0].getsockname()[1]
        self._is_up.set()
        await self._end.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            prompt = (await reader.readline()).decode().strip()
            if not prompt:  # the client was killed before it sent anything
                return
            self.received[prompt] += 1
            if self._rng.random() < self.faults:
                fault = self._rng.choice(["reset", "error 500", "error 429"])
                if fault == "reset":
                    writer.transport.abort()
                    return
                writer.write(f"{fault}\n".encode())
            else:
                await asyncio.sleep(self.latency)
                writer.write(prompt.replace("question", "answer").encode() + b"\n")
                self.answered += 1
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()


class Client:
    """Asks a CountingServer."""

    label = "client"

    def __init__(self, port: int) -> None:
        self.port = port

    async def answer(self, request: Request) -> Answer:
        """The line that the server sends back."""
        line = await self.reply_to(request.prompt)
        return Answer(line, input_tokens=3, output_tokens=2, model="counting", reply=f'{{"line": "{line}"}}')

    async def reply_to(self, prompt: str) -> str:
        """The line that the server sends back to a line."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(prompt.encode() + b"\n")
            line = (await reader.readline()).decode().strip()
        finally:
            writer.close()
        if not line:
            raise ConnectionResetError("the server has closed the connection")
        if line == "error 429":
            raise RateLimitError("HTTP 429")
        if line.startswith("error"):
            raise RetryableError("HTTP 500")
        return line
