"""The model of a run: a name, a generator or a function, and the settings that go with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.functions import FunctionGenerator
from multimodal_eval.generate.prompts import Prompts
from multimodal_eval.generate.protocol import Generator
from multimodal_eval.generate.registry import checked, find_generator
from multimodal_eval.run.generation.step import Generation
from multimodal_eval.run.plan import Plan

__all__ = ["Model", "generation_of", "with_model"]

Model = str | Generator | Callable[..., Any]


def with_model(config: RunConfig, model: Model | None) -> RunConfig:
    """The configuration with the name of the model."""
    if model is None:
        return config
    name = model if isinstance(model, str) else as_generator(model).label
    if config.generation is not None:
        return msgspec.structs.replace(config, generation=msgspec.structs.replace(config.generation, model=name))
    return msgspec.structs.replace(config, generation=GenerationConfig(model=name))


def generation_of(plan: Plan, model: Model | None) -> Generation | None:
    """How the run of a plan is generated; None if its samples have answers."""
    config = plan.config.generation
    if config is None:
        return None
    generator = find_generator(config) if model is None or isinstance(model, str) else as_generator(model)
    return Generation(config, generator, Prompts(config, plan.config.task))


def as_generator(model: object) -> Generator:
    """A generator, or a function as one."""
    if hasattr(model, "answer"):
        return checked(model, type(model).__name__)
    if callable(model):
        return FunctionGenerator(model)
    raise ConfigError(f"`model` must be PROVIDER:NAME, a generator or a function. Got {type(model).__name__} instead.")
