"""Find a generator by name: PROVIDER:MODEL, or a Python callable.

Providers are modules of `generate.providers`, and those of installed packages by the entry point group
`multimodal_eval.generators`. The provider of a package is a function `(model, config) -> Generator`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.registry import installed_entry_points
from multimodal_eval.generate.protocol import Generator
from multimodal_eval.generate.secrets import refuse_secrets

__all__ = ["ENTRY_POINT_GROUP", "checked", "find_generator", "is_openable", "is_python_file", "providers"]

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
