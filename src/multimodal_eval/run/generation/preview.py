"""What a run would ask, without asking: an estimate of all requests, or one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice

import msgspec

from multimodal_eval.core.errors import MediaError, UnknownNameError
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.arranged_input import epoch_id
from multimodal_eval.data.readers.inputs import Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.generate.cache import AnswerCache
from multimodal_eval.generate.estimate import Estimate
from multimodal_eval.generate.prompts import Earlier
from multimodal_eval.generate.protocol import Request
from multimodal_eval.run.generation.event_loop import run_async
from multimodal_eval.run.generation.step import Generation
from multimodal_eval.run.plan import Plan

__all__ = ["estimated", "request_for", "samples_of"]

_LISTED = 20  # ids in a message
_TOGETHER = 64  # requests whose media are read at the same time


def estimated(plan: Plan, source: Input, generation: Generation) -> Estimate:
    """The requests of a run, their tokens and bytes. Later turns of a dialogue are counted without earlier replies."""
    estimate = Estimate()

    async def add(samples: Sequence[Sample]) -> None:
        requests = await asyncio.gather(*(_request(generation, sample) for sample in samples))
        for request in requests:
            if request is None:
                estimate.unreadable += 1
            else:
                estimate.add(request, is_cached=cache.get(request) is not None)

    async def add_all() -> None:
        samples = samples_of(plan, source)
        while some := list(islice(samples, _TOGETHER)):
            await add(some)

    with AnswerCache.of(generation.generator, generation.config) as cache:
        run_async(add_all())
    return estimate


def request_for(plan: Plan, source: Input, generation: Generation, name: str) -> tuple[Request, int]:
    """The request for the sample with this id; ID#2 is the one of the second epoch.

    Also returns how many earlier replies of its dialogue it contains. They are not known yet: each is a
    text in parentheses.
    """
    ids: list[str] = []
    earlier: list[Earlier] = []
    for sample in samples_of(plan, source):
        stored = sample.id if sample.epoch is None else epoch_id(sample.id, sample.epoch)  # the id in the run
        if not generation.config.history or (earlier and earlier[-1].sample.group != sample.group):
            earlier = []
        if name in (sample.id, stored):
            return run_async(generation.prompts.request(sample, earlier)), len(earlier)
        if sample.group is not None:
            earlier.append(Earlier(sample, f"(the model's reply to {sample.id!r})"))
        ids.append(stored)
    if len(ids) > _LISTED:
        ids = get_close_matches(name, ids, n=_LISTED) or ids[:_LISTED]
    raise UnknownNameError("sample", name, ids)


async def _request(generation: Generation, sample: Sample) -> Request | None:
    try:
        return await generation.prompts.request(sample)
    except MediaError:
        return None


def samples_of(plan: Plan, source: Input) -> Iterator[Sample]:
    """The checked samples of the input. All its problems are raised together, at the end."""
    config, problems, summary = plan.config, Problems(), Summary()
    with limits.using(config.max_expansion, config.max_record_mb):
        for part in source.parts(problems, summary, plan.part_size, config.limit):
            for sample in part.samples(FIELDS):
                yield from _epochs(sample, 1 if config.generation is None else config.generation.epochs)
    problems.raise_if_any()
    recipe = source.recipe()
    refuse_empty(summary, None if recipe is None else recipe.data)


def _epochs(sample: Sample, count: int) -> Iterator[Sample]:
    """The sample, as often as it is asked."""
    for epoch in range(1, count + 1):
        yield sample if count == 1 else msgspec.structs.replace(sample, epoch=epoch)
