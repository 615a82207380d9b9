"""`llama:smollm2-135m` and `llama:DIR`: a llama model on this machine, run by onnxruntime. It reads text only.

Without a temperature it chooses the most likely token. The answer to a request is the same in any company, on any
number of cores and in any order: random choices start from the seed, the epoch and the request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass
from hashlib import sha256

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.core.machine import cores
from multimodal_eval.generate.protocol import Answer, Generator, RejectedError, Request
from multimodal_eval.models.language.causal import LANGUAGES, rebuild_derived_files
from multimodal_eval.models.language.chat_template import ChatTemplate, Message
from multimodal_eval.models.language.sampling import Sampling
from multimodal_eval.models.language.writer import LlamaWriter, Order, Written, can_write
from multimodal_eval.models.lookup import model_faults
from multimodal_eval.models.source import Model, find_model

__all__ = ["EmbeddedLlama", "open_generator"]

ROWS = 16  # answers that are written at the same time
MAX_TOKENS = 512  # if the parameters give no limit


@dataclass(frozen=True, eq=False)
class _Job:
    """A request that waits for its answer."""

    request: Request
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Answer]

    def deliver(self, result: Answer | BaseException) -> None:
        """Hand over the result, from another thread."""

        def hand_over() -> None:
            if self.answer.done():
                return
            if isinstance(result, BaseException):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(hand_over)


class EmbeddedLlama:
    """A model that writes in a thread of its own, which ends when nothing waits."""

    at_once = ROWS

    def __init__(self, model: Model) -> None:
        self.model, self.label = model, f"llama:{model.label}"
        self._waiting: deque[_Job] = deque()
        self._lock = threading.Lock()
        self._is_running = False
        self._opened: tuple[LlamaWriter, ChatTemplate] | None = None

    async def answer(self, request: Request) -> Answer:
        """The model's answer to the turns."""
        if request.media:
            raise RejectedError(f"{self.label} reads text only. The request has: {request.media[0].kind}")
        loop = asyncio.get_running_loop()
        job = _Job(request, loop, loop.create_future())
        with self._lock:
            self._waiting.append(job)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="llama", daemon=True).start()
        return await job.answer

    def _run(self) -> None:
        jobs: dict[int, _Job] = {}  # those whose answers are being written, by the identity of their order
        orders: dict[int, Order] = {}
        try:
            with model_faults(self.label):
                writer, template = self._open()
                while self._is_needed(bool(jobs)):
                    for job in self._next(ROWS - len(jobs)):
                        order = self._order(job, writer, template)
                        if order is None:
                            continue
                        jobs[id(order)], orders[id(order)] = job, order
                        written = writer.add(order)
                        if written is not None:
                            jobs.pop(id(order)).deliver(self._answer(orders.pop(id(order)), written))
                    self._drop_cancelled(jobs, orders, writer)
                    for order, written in writer.step():
                        jobs.pop(id(order)).deliver(self._answer(orders.pop(id(order)), written))
        except BaseException as fault:  # noqa: BLE001 - the thread ends, and those who wait must learn why
            with self._lock:
                left = [*jobs.values(), *self._waiting]
                self._waiting.clear()
                self._is_running, self._opened = False, None
            for job in left:
                job.deliver(fault)

    def _open(self) -> tuple[LlamaWriter, ChatTemplate]:
        if self._opened is None:
            rebuild_derived_files(self.model)
            self._opened = LlamaWriter(self.model, ROWS, cores()), ChatTemplate(self.model)
        return self._opened

    def _is_needed(self, is_writing: bool) -> bool:
        """Whether there is anything to do. If not, the next request starts a new thread."""
        with self._lock:
            self._is_running = is_writing or bool(self._waiting)
            return self._is_running

    def _next(self, free: int) -> list[_Job]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]

    def _drop_cancelled(self, jobs: dict[int, _Job], orders: dict[int, Order], writer: LlamaWriter) -> None:
        """Stop writing answers that nobody waits for any more: their requests have timed out."""
        gone = [key for key, job in jobs.items() if job.answer.cancelled()]
        writer.drop([orders[key] for key in gone])
        for key in gone:
            del jobs[key], orders[key]

    def _order(self, job: _Job, writer: LlamaWriter, template: ChatTemplate) -> Order | None:
        """What is to be written; None if the request is cancelled or cannot be answered."""
        if job.answer.cancelled():
            return None
        try:
            return self._checked_order(job.request, writer, template)
        except MultimodalEvalError as refusal:
            job.deliver(refusal)
            return None

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
            parameters.temperature or 0.0, 1.0 if parameters.top_p is None else parameters.top_p, _seed(request)
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


def _seed(request: Request) -> int:
    content = f"{request.parameters.seed or 0}\0{request.epoch}\0{request.digest}"
    return int.from_bytes(sha256(content.encode()).digest()[:8], "big")


def open_generator(provider: str, model: str, config: GenerationConfig) -> Generator:
    """The model with that name: one of the catalogue, or a directory."""
    if not model:
        raise ConfigError(f"`model` must name a model: {provider}:smollm2-135m, or {provider}:DIR")
    unknown = [*config.parameters.extra, *["reasoning_effort"] * (config.parameters.reasoning_effort is not None)]
    if unknown:
        raise ConfigError(f"{provider}:{model} has no parameter {unknown[0]!r}")
    files = find_model(model)
    files.check()
    if model not in LANGUAGES and (files.resource is not None or not can_write(files)):
        raise ConfigError(f"{model} is not a llama model that onnxruntime can run. Try transformers:{model}")
    return EmbeddedLlama(files)
