"""`llama:smollm2-135m` and `llama:DIR`: a llama model on this machine, run by onnxruntime. It reads text only.

Without a temperature it chooses the most likely token. The answer to a request is the same in any company, on any
number of cores and in any order: random choices start from the seed, the epoch and the request.
"""

from __future__ import annotations

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.core.machine import cores
from multimodal_eval.generate.protocol import Answer, Generator, RejectedError, Request
from multimodal_eval.generate.providers.local_jobs import Job, JobThread, seed_of, unknown_parameters
from multimodal_eval.models.encoders import model_faults
from multimodal_eval.models.language.causal import LANGUAGES, rebuild_derived_files
from multimodal_eval.models.language.chat_template import ChatTemplate, Message
from multimodal_eval.models.language.writer import LlamaWriter, Order, Sampling, Written, can_write
from multimodal_eval.models.runtime import check_runtime
from multimodal_eval.models.source import Model, find_model

__all__ = ["EmbeddedLlama", "open_generator"]

ROWS = 16  # answers that are written at the same time
MAX_TOKENS = 512  # if the parameters give no limit


class EmbeddedLlama:
    """A model that writes in a thread of its own, which ends when nothing waits."""

    is_cacheable = True
    at_once = ROWS

    def __init__(self, model: Model) -> None:
        self.model, self.label = model, f"llama:{model.label}"
        self._jobs = JobThread(self._work, "llama")
        self._opened: tuple[LlamaWriter, ChatTemplate] | None = None

    async def answer(self, request: Request) -> Answer:
        """The model's answer to the turns."""
        if request.media:
            raise RejectedError(f"{self.label} reads text only. The request has: {request.media[0].kind}")
        return await self._jobs.ask(request)

    def _work(self) -> None:
        """Write answers as long as requests wait. They join and leave between two tokens."""
        writing: dict[int, tuple[Order, Job]] = {}  # by the identity of the order
        with model_faults(self.label):
            try:
                writer, template = self._open()
                while self._jobs.is_needed(is_working=bool(writing)):
                    for job in self._jobs.next(ROWS - len(writing)):
                        self._begin(job, writer, template, writing)
                    self._drop_cancelled(writer, writing)
                    for order, written in writer.step():
                        self._jobs.deliver(writing.pop(id(order))[1], self._answer(order, written))
            except BaseException:
                self._opened = None  # its rows may be in any state
                raise

    def _open(self) -> tuple[LlamaWriter, ChatTemplate]:
        if self._opened is None:
            rebuild_derived_files(self.model)
            self._opened = LlamaWriter(self.model, ROWS, cores()), ChatTemplate(self.model)
        return self._opened

    def _begin(
        self, job: Job, writer: LlamaWriter, template: ChatTemplate, writing: dict[int, tuple[Order, Job]]
    ) -> None:
        if job.is_cancelled:
            self._jobs.drop(job)
            return
        try:
            order = self._checked_order(job.request, writer, template)
        except MultimodalEvalError as refusal:
            self._jobs.deliver(job, refusal)
            return
        written = writer.add(order)
        if written is None:
            writing[id(order)] = order, job
        else:
            self._jobs.deliver(job, self._answer(order, written))

    def _drop_cancelled(self, writer: LlamaWriter, writing: dict[int, tuple[Order, Job]]) -> None:
        """Stop writing answers that nobody waits for any more."""
        gone = [key for key, (_, job) in writing.items() if job.is_cancelled]
        for order, job in [writing.pop(key) for key in gone]:
            writer.drop([order])
            self._jobs.drop(job)

    def _checked_order(self, request: Request, writer: LlamaWriter, template: ChatTemplate) -> Order:
        for turn in request.turns:
            special = next((token for token in writer.special_tokens if token in turn.text), None)
            if special is not None:
                raise RejectedError(f"the request contains {special!r}, which is a special token of {self.label}")
        messages = [Message(role=turn.role, content=turn.text) for turn in request.turns]
        prompt = writer.tokens(template.render(messages))
        parameters = request.parameters
        room = writer.longest - len(prompt)
        if not prompt or room < 1:
            raise RejectedError(
                f"the request has {len(prompt):,} tokens, and {self.label} reads from 1 to {writer.longest - 1:,}"
            )
        sampling = Sampling(
            parameters.temperature or 0.0, 1.0 if parameters.top_p is None else parameters.top_p, seed_of(request)
        )
        most = min(parameters.max_tokens or MAX_TOKENS, room)
        return Order(prompt, most, sampling, tuple(parameters.stop), parameters.logprobs)

    def _answer(self, order: Order, written: Written) -> Answer:
        return Answer(
            written.text,
            finish=written.finish,
            logprobs=None if written.logprobs is None else list(written.logprobs),
            input_tokens=len(order.prompt),
            output_tokens=len(written.tokens),
            model=self.model.name,
        )


def open_generator(provider: str, model: str, config: GenerationConfig) -> Generator:
    """The model with that name: one of the catalogue, or a directory."""
    if not model:
        raise ConfigError(f"`model` must name a model: {provider}:smollm2-135m, or {provider}:DIR")
    unknown = [*config.parameters.extra, *unknown_parameters(config.parameters)]
    if unknown:
        raise ConfigError(f"{provider}:{model} has no parameter {unknown[0]!r}")
    check_runtime(model)
    files = find_model(model)
    files.check()
    if model not in LANGUAGES and (files.resource is not None or not can_write(files)):
        raise ConfigError(f"{model} is not a llama model that onnxruntime can run. Try transformers:{model}")
    return EmbeddedLlama(files)
