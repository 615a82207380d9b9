"""What a run would ask, without asking: an estimate of all requests, or one of them."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

import msgspec

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import ImageError, MediaError, UnknownNameError, shorten
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.core.visible import visible
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.arranged_input import epoch_id
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.evaluation.asking import AskingMetric
from multimodal_eval.generate.cache import AnswerCache
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.meter import Estimate
from multimodal_eval.generate.prompts import Earlier
from multimodal_eval.generate.protocol import Generator, Media, Request, Text
from multimodal_eval.judges.panel import Panel
from multimodal_eval.media.images import header
from multimodal_eval.media.policy import MediaPolicy, policy_of
from multimodal_eval.run.generation import Generation
from multimodal_eval.run.plan import Plan

__all__ = [
    "UNKNOWN_ANSWER",
    "JudgeEstimate",
    "as_json",
    "epochs_of",
    "estimated",
    "estimated_questions",
    "questions_about",
    "request_for",
    "samples_of",
    "show",
    "size",
]


_LISTED = 20  # ids in a message
_LOOKED_UP = 100  # epochs
_TOGETHER = 64  # requests whose media are read at the same time


def estimated(plan: Plan, source: Input, generation: Generation) -> Estimate:
    """The requests of a run, their tokens and bytes. Later turns of a dialogue are counted without earlier replies.

    A sample is looked at once: its requests of all epochs differ only in their seeds.
    """
    estimate, epochs = Estimate(), epochs_of(plan)

    async def add(samples: Sequence[Sample]) -> None:
        requests = await asyncio.gather(*(_request(generation, sample) for sample in samples))
        for request in requests:
            if request is None:
                estimate.unreadable += 1
            else:
                estimate.add(request, times=epochs, cached=_cached(request, epochs, cache))

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
    epochs = epochs_of(plan)
    for sample in samples_of(plan, source):
        if not generation.config.history or (earlier and earlier[-1].sample.group != sample.group):
            earlier = []
        epoch = _epoch(name, sample.id, epochs)
        if epoch is not None:
            chosen = sample if epochs == 1 else msgspec.structs.replace(sample, epoch=epoch)
            return run_async(generation.prompts.request(chosen, earlier)), len(earlier)
        if sample.group is not None:
            earlier.append(Earlier(sample, f"(the model's reply to {sample.id!r})"))
        listed = range(1, min(epochs, _LISTED) + 1)
        ids += [sample.id] if epochs == 1 else [epoch_id(sample.id, number) for number in listed]
    if len(ids) > _LISTED:
        ids = get_close_matches(name, ids, n=_LISTED) or ids[:_LISTED]
    raise UnknownNameError("sample", name, ids)


async def _request(generation: Generation, sample: Sample) -> Request | None:
    try:
        return await generation.prompts.request(sample)
    except MediaError:
        return None


def samples_of(plan: Plan, source: Input) -> Iterator[Sample]:
    """The checked samples of the input, each once. All its problems are raised together, at the end."""
    config, problems, summary = plan.config, Problems(), Summary()
    with limits.using(config.max_expansion, config.max_record_mb):
        for part in source.parts(problems, summary, plan.part_size, config.limit):
            yield from part.samples(FIELDS)
    problems.raise_if_any()
    recipe = source.recipe()
    refuse_empty(summary, None if recipe is None else recipe.data)


def epochs_of(plan: Plan) -> int:
    """How often every sample is asked."""
    return 1 if plan.config.generation is None else plan.config.generation.epochs


def _epoch(name: str, sample: str, epochs: int) -> int | None:
    """The epoch in which a sample has this name; None if it is that of another sample."""
    if name == sample:
        return 1
    number = name.removeprefix(f"{sample}#")
    is_epoch = number != name and number.isascii() and number.isdigit() and 1 <= int(number) <= epochs
    return int(number) if is_epoch and epochs > 1 and epoch_id(sample, int(number)) == name else None


def _cached(request: Request, epochs: int, cache: AnswerCache) -> int:
    """In how many epochs the cache has the answer. After many epochs, the first one without ends the search."""
    cached = 0
    for epoch in range(1, epochs + 1):
        if cache.get(request.in_epoch(epoch)) is not None:
            cached += 1
        elif epoch >= _LOOKED_UP or not cache.on:
            break
    return cached


UNKNOWN_ANSWER = "(the model's answer)"
_TOGETHER = 64  # samples whose media are read at the same time


@dataclass
class JudgeEstimate:
    """The questions of one metric, by the models of its judge."""

    metric: AskingMetric
    models: list[Estimate] = field(default_factory=list)


def estimated_questions(plan: Plan, source: Input) -> list[JudgeEstimate]:
    """The questions of a run, their tokens and bytes. Answers that are not known yet are counted as a short text."""
    return [run_async(_estimated(plan, source, metric)) for metric in plan.judges]


async def _estimated(plan: Plan, source: Input, metric: AskingMetric) -> JudgeEstimate:
    estimate, epochs = JudgeEstimate(metric, [Estimate() for _ in metric.config.models]), epochs_of(plan)

    async def add(sample: Sample) -> None:
        for question in metric.questions(sample):
            each = estimate.models[question.place.judge]
            try:
                request = await panel.request(sample, question)
            except MediaError:
                each.unreadable += 1
                continue
            is_cached = panel.asked[question.place.judge].cache.get(request) is not None
            each.add(request, times=epochs, cached=epochs * is_cached)

    with Panel(metric.config, policy_of(plan.config)) as panel:
        samples = _answered(plan, source, metric)
        while some := list(islice(samples, _TOGETHER)):
            await asyncio.gather(*map(add, some))
    return estimate


def questions_about(plan: Plan, source: Input, name: str) -> Iterator[tuple[AskingMetric, Sequence[Request]]]:
    """The questions of every judge about the sample with this id."""
    for metric in plan.judges:
        ids = []
        for sample in _answered(plan, source, metric):
            if sample.id == name:
                yield metric, run_async(_requests(plan, metric, sample))
                break
            ids.append(sample.id)
        else:
            raise UnknownNameError("sample", name, ids)


async def _requests(plan: Plan, metric: AskingMetric, sample: Sample) -> list[Request]:
    with Panel(metric.config, policy_of(plan.config)) as panel:
        return [await panel.request(sample, question) for question in metric.questions(sample)]


def _answered(plan: Plan, source: Input, metric: AskingMetric) -> Iterator[Sample]:
    """The samples that are judged; in the place of an answer that a model has yet to give is a text."""
    samples = samples_of(plan, source)
    while some := list(islice(samples, _TOGETHER)):
        if plan.config.generation is not None:
            some = [msgspec.structs.replace(sample, generated_answer=UNKNOWN_ANSWER) for sample in some]
        for row in rows_to_score(metric, Batch.of(some), plan.config.patterns).tolist():
            yield some[row]


# A request as people read it, in 80 columns, and as JSON.

_WIDTH = 78
_INDENT = "  "
_FORMATS = {"audio/wav": "WAV", "audio/mpeg": "MP3"}


def show(request: Request) -> str:
    """The turns of a request, with media in short: `<image 640x480 JPEG 83 kB sha256:0123456789ab>`."""
    return "\n".join(_lines(request))


def as_json(request: Request, generator: Generator | None = None) -> str:
    """The request as a JSON object: its id, its digest, and the address and the body that an endpoint would get.

    The body has the bytes that are sent, also by a batch file. A model without HTTP has what the digest is made of
    instead, with media as their digests.
    """
    described = {"id": request.id, "epoch": request.epoch, "sha256": request.digest}
    body_of, url = getattr(generator, "body_of", None), getattr(generator, "url", None)
    if body_of is not None:
        return msgspec.json.encode({**described, "url": url, "body": msgspec.Raw(body_of(request))}).decode()
    return msgspec.json.format(msgspec.json.encode({**described, **request.description}), indent=2).decode()


def _lines(request: Request) -> Iterator[str]:
    yield f"request for {shorten(request.id, 50)}"
    yield f"sha256:{request.digest}"
    parameters: dict[str, object] = msgspec.to_builtins(request.parameters)
    if parameters:
        listed = ", ".join(f"{name}: {value}" for name, value in parameters.items())
        yield from textwrap.wrap(f"parameters: {visible(listed)}", _WIDTH, subsequent_indent=_INDENT)
    for turn in request.turns:
        yield ""
        yield f"[{turn.role}]"
        for part in turn.parts:
            yield from _wrapped(part.text) if isinstance(part, Text) else (_INDENT + _in_short(part),)


def _wrapped(text: str) -> Iterator[str]:
    """The text, with long lines broken."""
    for line in visible(text).split("\n"):
        yield from textwrap.wrap(
            line, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, replace_whitespace=False
        ) or [""]


def _in_short(media: Media) -> str:
    digest = f"sha256:{media.digest[:12]}"
    if media.url is not None:
        return f"<{media.kind} {shorten(visible(media.url), 60)}>"
    if media.frames:
        return f"<{media.kind} {len(media.frames)} frames {size(sum(map(len, media.frames)))} {digest}>"
    content = media.content or b""
    return f"<{media.kind} {_about(media, content)} {size(len(content))} {digest}>"


def _about(media: Media, content: bytes) -> str:
    if media.kind == "image":
        try:
            about = header(content, MediaPolicy())
        except ImageError:
            return media.mime
        return f"{about.size[0]}x{about.size[1]} {about.format}"
    return _FORMATS.get(media.mime, media.mime)


def size(count: int) -> str:
    """A number of bytes for a message: `97 bytes`, `83 kB`, `1.2 MB`."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1e6:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1e6:,.1f} MB" if count < 1e9 else f"{count / 1e9:,.1f} GB"
