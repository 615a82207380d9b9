"""What an export says about model, data and evaluator: from options, or from what the run knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import LOG, Slice
from multimodal_eval.data.runs.run import Run

__all__ = ["IDENTITY", "Identity", "identity_of", "tasks_of"]

IDENTITY = Options(
    model=Option(str | None, None, help="the model as DEVELOPER/NAME; by default that of the run"),
    dataset=Option(str | None, None, help="the name of the data; by default the task, or the name of the file"),
)
UNNAMED = "unnamed"  # the developer of a model that is not given
_LOCAL = ("llama", "ollama", "vllm", "sglang", "tgi", "transformers", "hf")  # providers that are engines
_ILLEGAL = re.compile(r'[<>:"\\|?*\x00-\x1f/]+')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)")


@dataclass(frozen=True)
class Identity:
    """The id of the model (DEVELOPER/NAME), its platform or engine, and the name of the data."""

    model: str
    dataset: str
    platform: str | None = None
    engine: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def developer(self) -> str:
        """The first part of the id."""
        return self.model.partition("/")[0]

    @property
    def model_name(self) -> str:
        """The rest of the id."""
        return self.model.partition("/")[2]


def identity_of(run: Run, options: OptionValues) -> Identity:
    """What the options say, or else the run."""
    provider, asked = _asked(run)
    notes = []
    model = options["model"]
    if model is None:
        is_known = asked is not None and ("/" in asked or (provider is not None and provider not in _LOCAL))
        developer = provider if is_known else UNNAMED
        model = asked if asked is not None and "/" in asked else f"{developer}/{asked or run.folder.name}"
        if not is_known:
            notes.append(f"the run does not say who made its model: {model}. Name it: --set model=DEVELOPER/NAME")
    parts = model.split("/")
    if len(parts) < 2 or not all(part.strip() for part in parts):
        raise ConfigError(f"the option `model` must be written DEVELOPER/NAME. Got {model!r} instead.")
    is_local = provider in _LOCAL
    return Identity(
        model,
        options["dataset"] or _dataset(run),
        platform=None if is_local else provider,
        engine=provider if is_local else None,
        notes=tuple(notes),
    )


def _asked(run: Run) -> tuple[str | None, str | None]:
    """The provider and the model that answered, if the run asked one, or was imported from a log that names it."""
    generation, imported = run.info.generation, run.info.imported
    if generation is None:
        model = None if imported is None else imported.model
        return None, model if model is not None and all(part.strip() for part in model.split("/")) else None
    provider, colon, name = str(generation.settings.get("model", "")).partition(":")
    if not colon:  # a model without a provider, such as `echo`
        return None, provider or None
    return provider, next(iter(generation.models), name.partition("@")[0]) or None


def tasks_of(run: Run) -> Mapping[str, Slice]:
    """The tasks of an imported run, if there are several: each was a log."""
    slices = {} if run.info.imported is None else run.outcome.slices.get(LOG, {})
    return slices if len(slices) > 1 else {}


def _dataset(run: Run) -> str:
    imported = run.info.imported
    if run.info.task is not None:
        return run.info.task
    if imported is not None and len(imported.files) > 1:
        return f"{imported.harness}-{len(imported.files)}-tasks"
    if imported is not None and imported.task is not None:
        return imported.task
    path = next((file.path for file in run.info.input if file.path is not None), None)
    return run.folder.name if path is None else PurePath(path).name.partition(".")[0] or run.folder.name


def portable(name: str) -> str:
    """The name as one component of a path on any system, of a folder that `mmeval import` reads."""
    plain = _ILLEGAL.sub("_", name).strip(". ") or UNNAMED
    is_taken = _RESERVED.match(plain) or plain == "data" or plain.startswith("_")
    return f"named_{plain}" if is_taken else plain
