"""The model of a run: a name, a generator or a function, and the settings that go with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from multimodal_eval.core.config import CHANGEABLE, GenerationConfig, Parameters, RunConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError, did_you_mean
from multimodal_eval.core.metric import Signature
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.yaml_text import read_yaml
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.config import ConfigSource, overlaid
from multimodal_eval.run.plan import Plan

if TYPE_CHECKING:  # imported by the functions that need them: most runs have answers and ask no model
    from multimodal_eval.generate.prompts import Prompts
    from multimodal_eval.generate.protocol import Generator
    from multimodal_eval.run.generation.batch import Batch

__all__ = [
    "Generation",
    "Model",
    "generation_again",
    "generation_of",
    "label_of",
    "named_models",
    "settled",
    "with_changes",
    "with_model",
]

Model: TypeAlias = "str | Generator | Batch | Callable[..., Any]"


class Generation(msgspec.Struct, frozen=True):
    """The model of a run, and how it is asked."""

    config: GenerationConfig
    generator: Generator
    prompts: Prompts
    batch: Batch | None = None  # files in the place of the endpoint

    @contextmanager
    def served(self) -> Iterator[None]:
        """Start the server of the model, if the settings name one; it ends with the block."""
        if self.config.serve is None:
            yield
            return
        from multimodal_eval.generate.providers.endpoint_model import EndpointModel
        from multimodal_eval.generate.serving import served

        if not isinstance(self.generator, EndpointModel):
            raise ConfigError(f"`serve` starts a server, and {self.generator.label} is not one: --model vllm:NAME")
        with served(self.config.serve, self.generator.model) as address:
            self.generator.base_url = address
            yield

    @property
    def signature(self) -> Signature:
        """The model and every setting that changes an answer."""
        return Signature("generation", "1", {"model": self.generator.label, **self.prompts.settings})


def settled(source: ConfigSource, model: Model | None, **settings: Any) -> RunConfig:
    """The configuration of a call with a model: `generation` among the settings need not name it."""
    _refuse_misplaced(settings)
    generation, name = settings.get("generation"), _name_of(model)
    if name is not None and isinstance(generation, Mapping):
        settings["generation"] = {**generation, "model": name}
    return with_model(overlaid(source, **settings), model)


def _refuse_misplaced(settings: Mapping[str, Any]) -> None:
    """Refuse a setting of the generation that is given as one of the run, and name its place."""
    for name in settings:
        if name in RunConfig.__struct_fields__:
            continue
        if name in GenerationConfig.__struct_fields__:
            raise ConfigError(f"`{name}` is a setting of the generation: generation={{{name!r}: …}}")
        if name in Parameters.__struct_fields__:
            raise ConfigError(f"`{name}` is a parameter of the model: generation={{'parameters': {{{name!r}: …}}}}")


def label_of(model: Model | None) -> str | None:
    """A name for any model, before it is known whether it can be used."""
    return model if model is None or isinstance(model, str) else "python"


def _name_of(model: Model | None) -> str | None:
    """The name of a model; None if it is the one that the configuration names."""
    if model is None or isinstance(model, str):
        return model
    from multimodal_eval.run.generation.batch import Batch

    return model.model if isinstance(model, Batch) else as_generator(model).label


def named_models(models: Sequence[str]) -> dict[str, JsonObject]:
    """Models by their names, with settings of their generation: PROVIDER:NAME, or a YAML file with several."""
    named: dict[str, JsonObject] = {}
    for entry in models:
        is_file = entry.endswith((".yaml", ".yml"))
        of_entry = _models_in(Path(entry)) if is_file else {entry: {"model": entry}}
        for name in of_entry.keys() & named.keys():
            raise ConfigError(f"the model {name!r} is named twice. Give each a name of its own in a YAML file")
        named |= of_entry
    return named


def _models_in(path: Path) -> dict[str, JsonObject]:
    content = read_yaml(path, "the file of models", unique_keys=True)
    if not isinstance(content, dict) or not content or not all(isinstance(name, str) for name in content):
        raise ConfigError(f"{path} must have a section for each model, with its name: `small: {{model: openai:NAME}}`")
    for name, settings in content.items():
        if not isinstance(settings, dict) or "model" not in settings:
            raise ConfigError(f"{path}: `{name}` must have a `model`: PROVIDER:NAME")
        try:
            msgspec.convert(settings, GenerationConfig)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{path}: `{name}`: {error}") from None
    return content


def with_model(config: RunConfig, model: Model | None) -> RunConfig:
    """The configuration with the name of the model, the content of the files of its prompt, and its price."""
    generation, name = config.generation, _name_of(model)
    if name is not None:
        generation = msgspec.structs.replace(generation or GenerationConfig(model=name), model=name)
    if generation is None:
        return config
    from multimodal_eval.generate.meter import with_price
    from multimodal_eval.generate.prompts import with_files

    if generation.serve is not None and generation.server is None:
        from multimodal_eval.generate.serving import server_version

        generation = msgspec.structs.replace(generation, server=server_version(generation.serve))
    return msgspec.structs.replace(config, generation=with_price(with_files(generation)))


def with_changes(config: GenerationConfig, changes: dict[str, Any]) -> GenerationConfig:
    """The settings of a run that is continued. Only those may change that change no answer."""
    from multimodal_eval.generate.meter import with_price

    for name in changes:
        if name not in CHANGEABLE:
            raise ConfigError(
                f"{name!r} cannot change while a run is continued.{did_you_mean(name, CHANGEABLE)} "
                "Start a new run; its cache has the answers to equal requests"
            )
    try:
        changed = msgspec.convert({**msgspec.to_builtins(config), **changes}, GenerationConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"`generation`: {error}") from None
    return with_price(changed if "prices" in changes else msgspec.structs.replace(changed, prices=None))


def generation_of(plan: Plan, model: Model | None = None) -> Generation | None:
    """How the run of a plan is generated; None if its samples have answers."""
    config = seeded(plan.config)
    if config is None:
        return None
    from multimodal_eval.generate.prompts import Prompts
    from multimodal_eval.generate.registry import find_generator
    from multimodal_eval.generate.secrets import refuse_secrets
    from multimodal_eval.run.generation.batch import Batch, refuse_batch

    batch = model if isinstance(model, Batch) else None
    at_once = config.answers_per_request
    if at_once > 1 and config.epochs % at_once:
        raise ConfigError(
            f"`epochs` must be a multiple of `answers_per_request`, {at_once}. Got {config.epochs} instead."
        )
    is_named = model is None or isinstance(model, str | Batch)
    if not is_named:
        refuse_secrets(config)
    generator = find_generator(config) if is_named else as_generator(model)
    if at_once > 1 and (batch is not None or not getattr(generator, "gives_several", False)):
        raise ConfigError(f"{generator.label} gives one answer per request: no `answers_per_request`")
    if batch is not None:
        refuse_batch(config, generator, batch)
    prompts = Prompts(config, plan.config.task, policy=policy_of(plan.config), seed=plan.config.seed)
    return Generation(config, generator, prompts, batch)


def seeded(config: RunConfig) -> GenerationConfig | None:
    """The settings of generation. With several epochs, the first one has the seed of the run if none is given."""
    generation = config.generation
    if generation is None or generation.epochs == 1:
        return generation
    if generation.history:
        raise ConfigError("`epochs` and `history` exclude each other: the turns of a dialogue are asked once, in order")
    if generation.parameters.seed is not None:
        return generation
    parameters = msgspec.structs.replace(generation.parameters, seed=config.seed)
    return msgspec.structs.replace(generation, parameters=parameters)


def generation_again(plan: Plan, model: Model | None, label: str) -> Generation | None:
    """How a run is continued. An object of Python must be given again; `label` names the run."""
    from multimodal_eval.generate.registry import is_openable

    name = "" if plan.config.generation is None else plan.config.generation.model
    if name and model is None and not is_openable(name):
        raise RunFolderError(
            f"{label} asked {name!r}, a model of a Python program, or of a package that is not installed here. "
            f"Continue it in Python: resume({label!r}, model=…)"
        )
    return generation_of(plan, model)


def as_generator(model: object, what: str = "model") -> Generator:
    """A generator, or a function as one; `what` is the name of the argument."""
    from multimodal_eval.generate.registry import FunctionGenerator, checked

    if hasattr(model, "answer"):
        return checked(model, type(model).__name__)
    if callable(model):
        return FunctionGenerator(model)
    raise ConfigError(f"`{what}` must be PROVIDER:NAME, a generator or a function. Got {type(model).__name__} instead.")
