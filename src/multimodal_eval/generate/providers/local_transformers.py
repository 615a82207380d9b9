"""`transformers:DIR`: a model of transformers on this machine, on CUDA if there is a GPU. Needs the extra `[torch]`.

It computes in float32; `transformers:DIR+bf16` computes in bfloat16.

It reads text, and images or audio if it has a processor for them. Requests that wait are written in batches of up to
`extra.batch_size` (8) or, with `extra.batch_tokens`, of up to that many tokens: those of the longest prompt and of an
answer, times the number of requests, which are sorted by length. Without a temperature, the most likely token is
chosen. Random answers are written alone, each with its own seed, so that they do not depend on what else is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.conversation import Part, Turn
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.generate.protocol import Answer, Generator, Media, RejectedError, Request, Text
from multimodal_eval.generate.providers.local_jobs import Job, JobThread, seed_of, unknown_parameters
from multimodal_eval.media.audio import load_audio
from multimodal_eval.media.images import load_image_any
from multimodal_eval.models.encoders import model_faults
from multimodal_eval.models.language.conversation_torch import check
from multimodal_eval.models.language.torch_writer import Conversation, TorchWriter, Writing, label_of
from multimodal_eval.models.language.writer import Sampling, Written
from multimodal_eval.models.source import Model, find_model, parse_name
from multimodal_eval.models.torch_device import Format

__all__ = ["LocalTransformers", "open_generator"]

BATCH_SIZE = 8
WAITING = 64  # requests that are sorted into batches by tokens
MAX_TOKENS = 512  # if the parameters give no limit


class LocalTransformers:
    """A model that writes batches in a thread of its own."""

    is_cacheable = True

    def __init__(
        self,
        model: Model,
        batch_size: int = BATCH_SIZE,
        number_format: Format = "float32",
        batch_tokens: int | None = None,
    ) -> None:
        self.model, self.batch_size, self.number_format = model, batch_size, number_format
        self.batch_tokens = batch_tokens
        self.at_once = 2 * batch_size  # the next batch waits while one is written
        self.label = f"transformers:{label_of(model, number_format)}"
        self._jobs = JobThread(self._work, "transformers")
        self._writer: TorchWriter | None = None

    async def answer(self, request: Request) -> Answer:
        """The model's answer to the turns."""
        return await self._jobs.ask(request)

    def _work(self) -> None:
        with model_faults(self.label):
            if self._writer is None:
                self._writer = TorchWriter(self.model, self.number_format)
            while self._jobs.is_needed():
                batches: defaultdict[Writing, list[tuple[Job, Conversation]]] = defaultdict(list)
                for job in self._jobs.next(self.batch_size):
                    if job.is_cancelled:
                        self._jobs.drop(job)
                    else:
                        self._sort_in(job, self._writer, batches)
                for writing, jobs in batches.items():
                    for batch in self._batches(self._writer, writing, jobs):
                        self._write(self._writer, writing, batch)

    def _batches(
        self, writer: TorchWriter, writing: Writing, jobs: Sequence[tuple[Job, Conversation]]
    ) -> Iterator[Sequence[tuple[Job, Conversation]]]:
        """The requests that are written together."""
        if writing.sampling.temperature or self.batch_tokens is None:
            size = 1 if writing.sampling.temperature else self.batch_size
            yield from (jobs[start : start + size] for start in range(0, len(jobs), size))
            return
        batch: list[tuple[Job, Conversation]] = []
        for length, job in sorted(((self._length(writer, job), job) for job in jobs), key=lambda pair: pair[0]):
            if batch and (len(batch) + 1) * (length + writing.max_tokens) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(job)
        yield batch

    def _length(self, writer: TorchWriter, job: tuple[Job, Conversation]) -> int:
        """The tokens of a prompt; one that cannot be read is refused when it is written, alone."""
        try:
            return writer.length(job[1])
        except MultimodalEvalError:
            return self.batch_tokens or 0

    def _sort_in(self, job: Job, writer: TorchWriter, batches: dict[Writing, list[tuple[Job, Conversation]]]) -> None:
        """Put a request to those that are written in the same way, or refuse it."""
        try:
            conversation = _conversation(job.request)
            self._refuse(writer, conversation)
        except MultimodalEvalError as refusal:
            self._jobs.deliver(job, refusal if isinstance(refusal, RejectedError) else RejectedError(str(refusal)))
            return
        batches[_writing(job.request)].append((job, conversation))

    def _refuse(self, writer: TorchWriter, conversation: Conversation) -> None:
        unread, special = writer.unread(conversation), writer.special_token(conversation)
        if unread is not None:
            raise RejectedError(f"{self.label} does not read this kind of part: {unread}")
        if special is not None:
            raise RejectedError(f"the request contains {special!r}, which is a special token of {self.label}")

    def _write(self, writer: TorchWriter, writing: Writing, jobs: Sequence[tuple[Job, Conversation]]) -> None:
        """Write a batch. If one request does not fit, each is written alone, so that only that one is refused."""
        try:
            answers = writer.write([conversation for _, conversation in jobs], writing)
        except MultimodalEvalError as refusal:
            if len(jobs) == 1:
                self._jobs.deliver(jobs[0][0], RejectedError(str(refusal)))
                return
            for single in jobs:
                self._write(writer, writing, [single])
            return
        for (job, _), (read, written) in zip(jobs, answers, strict=True):
            self._jobs.deliver(job, self._answer(read, written))

    def _answer(self, read: int, written: Written) -> Answer:
        return Answer(
            written.text,
            finish=written.finish,
            logprobs=None if written.logprobs is None else list(written.logprobs),
            input_tokens=read,
            output_tokens=len(written.tokens),
            model=self.model.name,
        )


def _writing(request: Request) -> Writing:
    parameters = request.parameters
    temperature = parameters.temperature or 0.0
    top_p = 1.0 if parameters.top_p is None else parameters.top_p
    sampling = Sampling(temperature, top_p, seed_of(request)) if temperature else Sampling()
    most = parameters.max_tokens or MAX_TOKENS
    return Writing(most, sampling, tuple(parameters.stop), parameters.logprobs)


def _conversation(request: Request) -> Conversation:
    turns = [
        Turn("assistant" if turn.role == "assistant" else "user", tuple(part for p in turn.parts for part in _parts(p)))
        for turn in request.turns
        if turn.role != "system"
    ]
    return Conversation(tuple(turns), request.system)


def _parts(part: Text | Media) -> list[Part]:
    if isinstance(part, Text):
        return [Part("text", part.text)] if part.text else []
    if part.frames:
        return [Part("image", load_image_any(frame)) for frame in part.frames]
    if part.content is None:
        raise RejectedError("a model on this machine fetches nothing from a URL. Send the content: media_as: data")
    if part.kind == "video":
        raise RejectedError(
            "a model of transformers takes a video as images. Send frames of it: the setting `frames: 8`"
        )
    if part.kind == "image":
        return [Part("image", load_image_any(part.content))]
    return [Part("audio", load_audio(part.content))]


def open_generator(provider: str, model: str, config: GenerationConfig) -> Generator:
    """The model in a directory, or one that was fetched from the Hugging Face hub."""
    extra = dict(config.parameters.extra)
    batch_tokens = extra.pop("batch_tokens", None)
    batch_size = extra.pop("batch_size", BATCH_SIZE if batch_tokens is None else WAITING)
    if not model:
        raise ConfigError(f"`model` must name a directory: {provider}:DIR")
    unknown = [*extra, *unknown_parameters(config.parameters)]
    if unknown:
        raise ConfigError(f"{provider}:{model} has no parameter {unknown[0]!r}")
    for name, value in (("batch_size", batch_size), ("batch_tokens", 1 if batch_tokens is None else batch_tokens)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"`{name}` must be a positive integer. Got {value!r} instead.")
    parsed = parse_name(model)
    parsed.refuse_format(runs_in_torch=True)
    files = find_model(parsed.base)
    check(files)
    return LocalTransformers(files, batch_size, parsed.torch_format, batch_tokens)
