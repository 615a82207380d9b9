"""Ask a model again what A and B asked: with A's request, with B's prompt, and with B's prompt and parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np

from multimodal_eval.analysis.why_asked import Asked, drawn_rows
from multimodal_eval.analysis.why_chain import Chain
from multimodal_eval.analysis.why_pairs import Key, Side
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.generate.engine import Asker, OpenRequestError, effort_of, for_each, run_async
from multimodal_eval.generate.protocol import Generator, Request
from multimodal_eval.generate.registry import find_generator, is_python_file
from multimodal_eval.run.generation import Model, as_generator
from multimodal_eval.run.why_rules import Rescoring
from multimodal_eval.run.why_sides import SideReader

__all__ = ["Asking"]

_POINTS = ((0, 0), (1, 0), (1, 1))  # whose prompt, and whose parameters


@dataclass(frozen=True)
class Asking:
    """Asks for samples whose requests differ, without the cache, and leaves the answers to `rescoring`."""

    readers: tuple[SideReader, SideReader]
    rescoring: Rescoring
    count: int
    model: Model | None = None
    base_url: str | None = None
    seed: int = 0

    def __call__(self, chain: Chain) -> Asked | None:
        """The samples that were asked about; None, and a note that says why, if there is nothing to ask."""
        if not self.count:
            return None
        rows, points = chain.askable, _known_points((chain.a, chain.b))
        notes = self.readers[1].notes
        if not points:
            notes.append("nothing was asked again: the prompts or the parameters are not known")
            return None
        if not len(rows):
            notes.append("nothing was asked again: no sample has another request and a rule that scores it")
            return None
        config, generator = self._generator()
        drawn = drawn_rows(*chain.ends(rows), self.count, self.seed)
        rows_of = [[chain.rows[side][row] for row in rows[drawn].tolist()] for side in (0, 1)]
        requests = [
            self.readers[prompt].requests(rows_of[prompt], (chain.a, chain.b)[decoding].decoding or {})
            for prompt, decoding in points
        ]
        texts = run_async(_answers(generator, config, requests))
        is_asked = np.zeros(len(rows), np.bool_)
        is_asked[drawn] = [all(text is not None for text in each) for each in zip(*texts, strict=True)]
        if not is_asked.any():
            raise ConfigError(f"none of {len(drawn):,} samples got an answer to all of {len(points)} requests again")
        for answers in texts:
            self.rescoring.further.append(_answered(self.readers[0].samples, rows_of[0], answers))
        failed = len(drawn) - int(is_asked.sum())
        more = f"; {failed:,} more got no answer" if failed else ""
        notes.append(
            f"{generator.label} was asked again for {int(is_asked.sum()):,} of {len(rows):,} samples with other "
            f"requests, {len(points)} times each{more}"
        )
        return Asked(rows, is_asked, _step_keys(points))

    def _generator(self) -> tuple[GenerationConfig, Generator]:
        """The model that is named, or that of the runs."""
        consents = [Consent(reader.run.folder, reader.run.info) for reader in self.readers]
        stored = next((each for each in reversed(consents) if each.info.config.generation is not None), None)
        config = None if stored is None else stored.info.config.generation
        name = self.model if isinstance(self.model, str) else None
        if name is None and self.model is not None:
            return config or GenerationConfig(model="python"), as_generator(self.model)
        if name is None:
            names = {each.info.config.generation.model for each in consents if each.info.config.generation is not None}
            if stored is None or config is None or len(names) > 1:
                raise ConfigError("name the model that is asked again: --model PROVIDER:NAME, with --base-url URL")
            if self.base_url is None or is_python_file(config.model):
                stored.refuse(asks_model=True)
        asked = config if name is None and config is not None else GenerationConfig(model=name or "")
        if self.base_url is not None:
            asked = msgspec.structs.replace(asked, base_url=self.base_url)
        return asked, find_generator(asked)


def _known_points(sides: Sequence[Side]) -> list[tuple[int, int]]:
    """The requests that can be made, each with the sides of its prompt and its parameters."""
    prompts = [side.prompting is not None or side.request is not None for side in sides]
    points = [each for each in _POINTS if prompts[each[0]] and sides[each[1]].decoding is not None]
    return points if any(prompt == 1 for prompt, _ in points) else []


def _step_keys(points: Sequence[tuple[int, int]]) -> list[Key]:
    """The parts of the steps from A's answer over these requests to B's. A stored answer may be another draw."""
    keys: list[Key] = []
    path = [(0, 0), *points, (1, 1)]
    for place, (before, after) in enumerate(pairwise(path)):
        changed = [name for name, old, new in zip(("prompt", "decoding"), before, after, strict=True) if old != new]
        is_stored = place in (0, len(points))
        keys.append((*changed, *(["answer"] if is_stored else [])))
    return keys


async def _answers(
    generator: Generator, config: GenerationConfig, requests: Sequence[Sequence[Request | None]]
) -> list[list[str | None]]:
    """The answers to all requests; equal requests of one sample are sent once. None is a failure."""
    asker = Asker(generator, effort_of(config, generator), config.accept_truncated)
    different = {
        (place, each.digest): each for listed in requests for place, each in enumerate(listed) if each is not None
    }
    texts: dict[tuple[int, str], str | None] = {}

    async def ask(key: tuple[int, str]) -> None:
        try:
            texts[key] = (await asker.ask(different[key])).outcome.text
        except OpenRequestError:
            texts[key] = None

    async def each() -> AsyncIterator[tuple[int, str]]:
        for key in different:
            yield key

    await for_each(each(), ask, asker.effort.concurrency, asker)
    return [
        [None if request is None else texts[place, request.digest] for place, request in enumerate(listed)]
        for listed in requests
    ]


def _answered(samples: Sequence[Sample], rows: Sequence[int], answers: Sequence[str | None]) -> dict[int, Sample]:
    return {
        row: msgspec.structs.replace(samples[row], generated_answer=text, error=None)
        for row, text in zip(rows, answers, strict=True)
        if text is not None
    }
