"""Find a generator by name: PROVIDER:MODEL, or a Python callable.

Providers are modules of `generate.providers`, and those of installed packages by the entry point group
`multimodal_eval.generators`. The provider of a package is a function `(model, config) -> Generator`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, UnknownNameError, shorten
from multimodal_eval.core.machine import cores
from multimodal_eval.core.registry import installed_entry_points
from multimodal_eval.generate.protocol import Answer, Generator, Request
from multimodal_eval.generate.secrets import refuse_secrets

__all__ = [
    "ENTRY_POINT_GROUP",
    "BatchGenerator",
    "FunctionGenerator",
    "answer_from",
    "batched",
    "checked",
    "find_generator",
    "is_openable",
    "is_python_file",
    "providers",
]


ENTRY_POINT_GROUP = "multimodal_eval.generators"

# Provider -> its module below `generate.providers`, and what it is.
BUILT_IN = {
    "openai": ("openai_chat", "an endpoint with OpenAI's chat completions: OpenAI, or any hosted one by its URL"),
    "openai-responses": ("openai_responses", "OpenAI's Responses API"),
    "vllm": ("openai_chat", "a vLLM server"),
    "sglang": ("openai_chat", "an SGLang server"),
    "llamacpp": ("openai_chat", "a llama.cpp server"),
    "ollama": ("openai_chat", "an Ollama server"),
    "azure": ("openai_chat", "a deployment of Azure OpenAI, with --base-url https://NAME.openai.azure.com"),
    "anthropic": ("anthropic", "Anthropic's messages"),
    "gemini": ("gemini", "Google's generateContent"),
    "transformers": ("local_transformers", "a checkpoint in a directory, run by transformers (extra `[torch]`)"),
    "llama": ("embedded_llama", "a llama model run by onnxruntime: smollm2-135m, or a directory"),
    "python": ("python_file", "the function `model` of a Python file; python:FILE:NAME is another one"),
    "echo": ("dry", "repeats the prompt; for a dry run"),
    "script": ("dry", "answers from a file, by sample id; for a dry run"),
}


_PYTHON_FILE = re.compile(r"python:.+\.py(?::\w+)?")
# Parameter -> other names that APIs have for it.
_OTHER_NAMES = {
    "max_tokens": ("max_completion_tokens", "max_output_tokens"),
    "stop": ("stop_sequences",),
    "reasoning_effort": ("reasoning",),
}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return installed_entry_points(ENTRY_POINT_GROUP, "generator", {})


def providers() -> dict[str, str]:
    """The known providers, and what each is."""
    return {name: text for name, (_, text) in BUILT_IN.items()} | {
        name: entry.value for name, entry in _entry_points().items()
    }


def is_openable(model: str) -> bool:
    """Whether a model can be opened by its name: its provider is here, and it is not a function of a Python program."""
    provider = model.partition(":")[0]
    return provider in providers() and (provider != "python" or is_python_file(model))


def is_python_file(model: str) -> bool:
    """Whether a model is a function in a Python file: to open it is to run that file."""
    return _PYTHON_FILE.fullmatch(model) is not None


def find_generator(config: GenerationConfig) -> Generator:
    """The generator of a configuration, whose settings will be stored."""
    if config.parameters.extra:
        refuse_secrets(config)
        _refuse_twice(config.parameters)
    provider, _, model = config.model.partition(":")
    if provider in BUILT_IN:
        module = import_module(f"multimodal_eval.generate.providers.{BUILT_IN[provider][0]}")
        opened: Generator = module.open_generator(provider, model, config)
        return opened
    if provider in _entry_points():
        offered: Any = _entry_points()[provider].load()
        return checked(offered(model, config), provider)
    if ":" not in config.model:
        raise ConfigError(f"`model` must be PROVIDER:NAME, such as openai:{config.model}. Providers: {_known()}")
    raise UnknownNameError("provider", provider, providers())


def _refuse_twice(parameters: Parameters) -> None:
    """Refuse a parameter that is also a further field of the body, which would replace it."""
    for name in msgspec.to_builtins(parameters).keys() - {"extra"}:
        for field in (name, *_OTHER_NAMES.get(name, ())):
            if field in parameters.extra:
                raise ConfigError(f"`extra` must not set {field!r}, because the parameter `{name}` is set too")


def checked(generator: object, name: str) -> Generator:
    """The object, if it is a generator."""
    if not isinstance(generator, Generator):
        raise ConfigError(f"the generator {name!r} must have a `label` and an asynchronous method `answer(request)`")
    return generator


def _known() -> str:
    return ", ".join(providers())


# Plain Python callables as models: sync or async, one request or many at a time.

Reply = str | Answer | None
Function = Callable[[Any], Any]
_GATHERING = 0.01  # seconds in which the first batch fills


_MOST_THREADS = 10_000  # more than the requests at once: a request must not wait for a thread while its time runs


class FunctionGenerator:
    """A function of one request. A plain function runs in a thread, so that it may block.

    Answers are not cached: the function may use the sample, or a model that its source does not name. `at_once` is how
    many calls of a plain function run at the same time, unless the user sets a number.
    """

    def __init__(self, function: Function, label: str | None = None) -> None:
        self.function = function
        self.label = label or _label(function)
        self._threads: ThreadPoolExecutor | None = None
        if not inspect.iscoroutinefunction(function):
            self._threads = ThreadPoolExecutor(_MOST_THREADS, "model")
            self.at_once = min(32, cores() + 4)

    async def answer(self, request: Request) -> Answer:
        """What the function returns for the request."""
        return answer_of(await _called(self.function, request, self._threads), self.label)


def batched(size: int) -> Callable[[Function], BatchGenerator]:
    """A decorator: makes a model of a function that answers up to `size` requests at once.

    >>> from multimodal_eval import Request, batched
    >>> @batched(32)
    ... def model(requests: list[Request]) -> list[str]:
    ...     return ["a dog"] * len(requests)

    The function may be asynchronous. It returns one answer per request, in the same order: text, or an `Answer`.
    """
    if not isinstance(size, int):
        raise ConfigError(f"`batched` needs the most requests of a batch: @batched(32). Got {shorten(size)} instead.")
    if size < 1:
        raise ConfigError(f"a batch must have at least one request. Got {size} instead.")
    return lambda function: BatchGenerator(function, size)


@dataclass(frozen=True)
class _Waiting:
    request: Request
    answer: asyncio.Future[Answer]


class BatchGenerator:
    """A function of a list of requests. One batch is answered at a time, while the next one gathers.

    If the function fails, its requests are asked one by one, so that the failure belongs to one sample.
    """

    def __init__(self, function: Function, size: int, label: str | None = None) -> None:
        self.function, self.size = function, size
        self.at_once = 2 * size
        self.label = label or _label(function)
        self._waiting: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Answer:
        """The answer to one request, from the batch that it is in."""
        waiting = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await waiting.answer

    async def _work(self) -> None:
        if len(self._waiting) < self.size:
            await asyncio.sleep(_GATHERING)
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(self.size, len(self._waiting)))]
            await self._answer([each for each in batch if not each.answer.done()])  # the others were cancelled

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        if not batch:
            return
        try:
            answers = await self._answers([each.request for each in batch])
        except Exception as error:  # noqa: BLE001 - of a function that somebody else wrote
            if len(batch) > 1 and not isinstance(error, MultimodalEvalError):
                for each in batch:
                    await self._answer([each])
                return
            for each in batch:
                if not each.answer.done():
                    each.answer.set_exception(error)
            return
        for each, answer in zip(batch, answers, strict=True):
            if not each.answer.done():
                each.answer.set_result(answer)

    async def _answers(self, requests: list[Request]) -> list[Answer]:
        replies = await _called(self.function, requests)
        is_list = isinstance(replies, Sequence) and not isinstance(replies, str)
        if not is_list or len(replies) != len(requests):
            got = f"{len(replies)}" if is_list else shorten(replies)
            raise ConfigError(f"{self.label} must return a list of {len(requests)} answers. Got {got} instead.")
        return [answer_of(reply, self.label) for reply in replies]


async def _called(function: Function, argument: object, threads: ThreadPoolExecutor | None = None) -> Any:
    """What the function returns. A plain one runs in a thread, those of asyncio by default, so that it may block."""
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    loop, context = asyncio.get_running_loop(), copy_context()
    reply = await loop.run_in_executor(threads, context.run, function, argument)
    return await reply if isinstance(reply, Awaitable) else reply


async def answer_from(generator: Generator, request: Request) -> Answer:
    """The answer of a generator that somebody else may have written; ConfigError if its method is of another kind."""
    reply: Any = generator.answer(request)
    if not isinstance(reply, Awaitable):
        raise ConfigError(
            f"the generator {generator.label} must have an asynchronous method: async def answer(request)"
        )
    answer = await reply
    if not isinstance(answer, Answer):
        raise ConfigError(f"the generator {generator.label} must return an Answer. Got {shorten(answer)} instead.")
    return answer


def answer_of(reply: Reply, label: str) -> Answer:
    """The answer that a function has returned: text, or an `Answer`."""
    if isinstance(reply, Answer):
        return reply
    if reply is None or isinstance(reply, str):
        return Answer(reply)
    raise ConfigError(f"the model {label} must return text or an Answer. Got {shorten(reply)} instead.")


def _label(function: Function) -> str:
    """The name of the function, and a digest of its source if there is one."""
    name = getattr(function, "__qualname__", type(function).__name__)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return f"python:{name}"
    return f"python:{name}@{hashlib.sha256(source.encode()).hexdigest()[:12]}"
