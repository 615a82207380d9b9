"""Turn samples into requests: the template, the system prompt, examples, media and the history of a dialogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.protocol import Request, Text, Turn

__all__ = ["Earlier", "Prompts"]


class HasSample(Protocol):
    """Anything with a sample."""

    @property
    def sample(self) -> Sample:
        """The sample."""


Item = TypeVar("Item", bound=HasSample)


@dataclass(frozen=True)
class Earlier:
    """A turn of a dialogue that was asked before, and the model's answer; None if it failed."""

    sample: Sample
    answer: str | None


class Prompts:
    """Makes the requests of a run."""

    def __init__(self, config: GenerationConfig, task: str | None = None) -> None:
        self.config, self.task = config, task

    @property
    def settings(self) -> dict[str, object]:
        """What changes a request, for the signature: the digest of the template, the parameters, …"""
        return {}

    def chains(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        """The items that are asked one after another, because each answer is part of the next request."""
        for item in items:
            yield [item]

    async def request(self, sample: Sample, earlier: Sequence[Earlier] = ()) -> Request:
        """The request for a sample."""
        question = sample.question or sample.prompt or ""
        turns = (Turn("user", (Text(question),)),)
        epoch = sample.epoch or 1
        return Request(sample.id, turns, self.config.parameters.of_epoch(epoch), epoch, sample)
