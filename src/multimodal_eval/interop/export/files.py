"""The files of exports: the data that some take, files that are complete or absent, and YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import LOG, Slice, statistics_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.run_findings import claims

__all__ = [
    "IDENTITY",
    "UNCORRECTED",
    "UNNAMED",
    "Identity",
    "claim_of",
    "identity_of",
    "method_of",
    "published",
    "tasks_of",
    "whole_file",
    "write_text",
    "yaml_text",
]


def only_data_file(inputs: Sequence[str | Path], name: str) -> Path:
    """The data of a shared task: one file or folder on this machine."""
    if len(inputs) != 1:
        raise ConfigError(f"the format {name} takes one file of data. Got {len(inputs)}")
    path = Path(inputs[0])
    if (path / "run.json").is_file():
        raise ConfigError(f"{path} is a run, but the format {name} takes the data with the references")
    return path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` at the end; after an error, nothing is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, with its line ends as they are."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


def yaml_text(content: object) -> str:
    """The content as YAML, with keys in their order and lines as long as they are."""
    import yaml

    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=2**31)
    return text


# What is published of a score that labels correct, and what is said of the score of a judge without labels.

UNCORRECTED = "uncorrected"  # the name of the judge's own score beside the corrected one


def published(figure: Figure) -> tuple[Figure, Figure | None]:
    """The figure that is the value, and the judge's own score beside it if human labels correct it."""
    value = figure.published
    return value, None if value is figure else msgspec.structs.replace(figure, calibrated=None)


def method_of(run: Run, figure: Figure) -> str:
    """How the interval was computed, with the version of the statistics, which only the run folder has otherwise."""
    return f"{figure.method} (statistics {statistics_of(run.info)})"


def claim_of(run: Run, metric: str) -> str | None:
    """What the score of a judge is without human labels; None for other scores."""
    return next(claims(run, metric), None) if metric in run.info.config.judges else None


# What an export says about model, data and evaluator: from options, or from what the run knows.

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
