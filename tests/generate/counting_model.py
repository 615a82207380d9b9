"""A model for tests of commands: it answers with the last word of the prompt and counts tokens and calls."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest.mock import patch

import msgspec

from multimodal_eval.generate import registry
from multimodal_eval.generate.protocol import Answer, EndpointError, RejectedError, Request


@dataclass
class CountingModel:
    """Fails as the prompt says: `reject`, `refuse`, `cut`, `down`, `interrupt`. `calls` are the ids of the requests."""

    label: str = "counting"
    calls: list[str] = field(default_factory=list)
    is_up: bool = False  # `down` and `interrupt` are words like any other
    is_cacheable = True

    async def answer(self, request: Request) -> Answer:
        """The last word of the prompt; 100 tokens in, 10 out."""
        self.calls.append(request.id)
        word = request.prompt.split()[-1]
        if word == "interrupt" and not self.is_up:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C
            await asyncio.sleep(600)
        if word == "down" and not self.is_up:
            raise EndpointError("the key is not valid: set $OPENAI_API_KEY")
        if word == "reject":
            raise RejectedError("HTTP 400: the prompt is too long")
        if word == "refuse":
            answer = Answer(None, refusal="I cannot help with that", finish="refusal")
        else:
            answer = Answer(word, finish="length" if word == "cut" else "stop")
        return msgspec.structs.replace(answer, input_tokens=100, output_tokens=10, model="counting-1")


@contextmanager
def offered(model: CountingModel) -> Iterator[CountingModel]:
    """Offer the model as the provider `counting`, as an installed package would."""
    entry = SimpleNamespace(value="tests:counting", load=lambda: lambda name, config: model)
    with patch.object(registry, "_entry_points", lambda: {"counting": entry}):
        yield model
