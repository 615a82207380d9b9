"""Task files: YAML that declares the data, their columns, the prompt, the metrics and the rules of a task.

A task file may come from somebody else. So it names no code, no model, no address, no key and no folder outside of
which media may be read: these are options of the command.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from multimodal_eval.core.config import Parameters, RunConfig, StrataConfig, TaskConfig, TaskOrigin
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.inside import NamingFile
from multimodal_eval.core.judge_config import PREFIX
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.yaml_text import read_tagged_yaml, read_yaml
from multimodal_eval.data.readers.files import describe_file, file_set, further_files
from multimodal_eval.data.runs.grants import named_files
from multimodal_eval.generate.built_in_prompts import prompts
from multimodal_eval.run.config import ConfigSource, in_words, is_task_file, load_config, merged_columns
from multimodal_eval.run.harness_tasks import HarnessTask, harness_task, is_harness_task
from multimodal_eval.run.judging.files import is_file

__all__ = ["OpenedTask", "TaskFile", "open_task", "with_task"]

_REFUSED = {
    "plugins": "--plugin FILE",
    "model": "--model PROVIDER:NAME",
    "allow_outside_images": "--allow-outside-images",
    "allow_image_urls": "--allow-image-urls",
    "media_roots": "--image-root DIR",
    "base_url": "--base-url URL",
    "key_env": "--key-env NAME",
}


_PATH = re.compile(r"[/\\.~]")  # what a path has, and the name of a rule or a model has not


class TaskData(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The data of a task."""

    path: str  # a file, a folder or a pattern, relative to the task file
    format: str | None = None  # None: by its content
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None
    image_root: str | None = None
    questions: str | None = None


class TaskGeneration(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How a model is asked, without the model."""

    prompt: str | None = None
    system: str | None = None
    shots: str | None = None
    shot_count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    history: bool = False
    parameters: Parameters = Parameters()
    epochs: Annotated[int, msgspec.Meta(ge=1)] = 1
    max_pixels: Annotated[int, msgspec.Meta(ge=1)] | None = None
    detail: Literal["low", "high", "auto"] | None = None
    frames: Annotated[int, msgspec.Meta(ge=1)] | None = None
    media_as: Literal["data", "url", "none"] = "data"
    accept_truncated: bool = False


class TaskFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """The content of a task file."""

    name: str
    data: str | TaskData
    version: str | int | float = "1"
    description: str | None = None
    columns: dict[str, str] = {}  # field -> column, as --map
    prompt: str | None = None  # a name, a file, or the text of a template
    rules: dict[str, str] = {}  # metric -> rule
    generation: TaskGeneration = TaskGeneration()
    task: str | None = None
    metrics: list[str] | None = None
    headline: str | None = None
    tasks: dict[str, TaskConfig] = {}
    options: dict[str, dict[str, Any]] = {}
    variants: dict[str, str] = {}
    labels: str | list[Any] | dict[str, Any] | None = None
    unknown_labels: Literal["error", "wrong"] = "error"
    annotators: list[str] = []
    by: list[str] = []
    strata: StrataConfig | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int = 0
    error_patterns: list[str] | None = None
    complete: list[str] = []


# Settings of a task file that are settings of a run with the same name.
_SAME = tuple(
    name for name in TaskFile.__struct_fields__ if name in RunConfig.__struct_fields__ and name != "generation"
)
_SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "$.data": TaskData,
    "$.generation.parameters": Parameters,
    "$.generation": TaskGeneration,
    "$.tasks": TaskConfig,
    "$.strata": StrataConfig,
}


@dataclass(frozen=True)
class OpenedTask:
    """A task file, resolved: the data, the settings of a run, those of asking a model, and what was not taken."""

    name: str
    data: Path
    settings: JsonObject
    generation: JsonObject
    notes: tuple[str, ...] = ()


def with_task(
    data: Any,
    config: ConfigSource,
    model: str | None,
    task: str | None = None,
    metrics: Sequence[str] | str | None = None,
    *,
    task_data: Path | None = None,
) -> tuple[Any, ConfigSource, tuple[str, ...]]:
    """The data and the configuration of a call, and notes. Other data than a task file are returned as they are.

    The settings of `config` have precedence over those of the task file. Without a model, those of asking one are not
    used. `task` and `metrics` are those of the call: settings of other metrics are then left out. `task_data` replaces
    the data that the file names.
    """
    if not is_task_file(data):
        if task_data is not None:
            raise ConfigError(f"other data are only for a task file, and {data} is not one. Name the data alone")
        return data, config, ()
    given = msgspec.to_builtins(load_config(config))
    opened = open_task(Path(data), task_data=task_data, allow_outside=given.get("allow_outside", False))
    chosen = metrics or given.get("metrics")
    names = [name.strip() for name in chosen.split(",")] if isinstance(chosen, str) else chosen
    task_settings = _for_metrics(opened.settings, names, has_task=bool(task or given.get("task")))
    settings = {**task_settings, **given}
    options, new = task_settings.get("options", {}), given.get("options", {})
    settings["options"] = {name: {**options.get(name, {}), **new.get(name, {})} for name in {**options, **new}}
    settings["map"] = merged_columns(task_settings["map"], given.get("map", {}))
    asked = given.get("generation") or ({} if model is None else {"model": model})
    if asked:
        settings["generation"] = {**opened.generation, **asked}
    return opened.data, settings, opened.notes


def _for_metrics(settings: JsonObject, metrics: Sequence[str] | None, *, has_task: bool) -> JsonObject:
    """The settings without those of metrics that the call replaces by others."""
    if metrics is None and not has_task:
        return settings
    kept = {key: value for key, value in settings.items() if key not in ("metrics", "headline", "complete", "variants")}
    names = metrics or ()
    kept["options"] = {name: options for name, options in settings["options"].items() if name in names}
    kept["variants"] = {name: metric for name, metric in settings.get("variants", {}).items() if name in names}
    return kept


def open_task(path: Path, *, task_data: Path | None = None, allow_outside: bool = False) -> OpenedTask:
    """Read a task file of ours, or a task of lm-eval or lmms-eval.

    Its paths are relative to its folder and stay in it, unless the user allows others. `task_data` replaces its data.
    """
    naming = NamingFile(path, "the task file", allow_outside)
    if is_harness_task(content := read_tagged_yaml(path, "the task file")[0]):
        harness = harness_task(path, task_data=task_data, allow_outside=allow_outside)
        return _opened(naming, *_of_harness(harness), task_data=task_data)
    content = read_yaml(path, "the task file", unique_keys=True)
    _refuse_trust(content, path)
    if not isinstance(content, dict) or not {"name", "data"} <= content.keys():
        hint = f"If this is a configuration, give the data and --config {path}"
        raise ConfigError(f"{path}: a task file needs the keys `name` and `data`. {hint}")
    try:
        task = msgspec.convert(content, TaskFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {in_words(str(error), content, TaskFile, _SECTIONS)}") from None
    return _opened(naming, task, task_data=task_data)


def _refuse_trust(content: Any, path: Path) -> None:
    """Refuse settings that a file of somebody else must not have."""
    sections = [content, content.get("generation")] if isinstance(content, dict) else []
    for key in (key for section in sections if isinstance(section, dict) for key in section):
        if key in _REFUSED:
            raise ConfigError(f"{path}: a task file cannot set `{key}`. Give it to the command: {_REFUSED[key]}")


def _of_harness(task: HarnessTask) -> tuple[TaskFile, tuple[str, ...]]:
    return msgspec.convert(task.content, TaskFile), task.notes


def _opened(
    naming: NamingFile, task: TaskFile, notes: tuple[str, ...] = (), *, task_data: Path | None = None
) -> OpenedTask:
    data = task.data if isinstance(task.data, TaskData) else TaskData(path=task.data)
    place = task_data or naming.inside_with_content("data", data.path, "Name it with --data FILE")
    digest = _digest(place, data, naming)
    origin = TaskOrigin(name=task.name, version=str(task.version), data=digest, notes=list(notes))
    defaults = msgspec.to_builtins(task)
    settings = {name: defaults[name] for name in _SAME if name in defaults}
    settings |= {"map": task.columns, "origin": msgspec.to_builtins(origin), "format": data.format}
    for name, value in (("image_root", data.image_root), ("questions", data.questions), ("labels", task.labels)):
        if isinstance(value, str):
            settings[name] = str(naming.inside(name, value, f"Name it with --{name.replace('_', '-')}").resolve())
    if task.metrics is not None:
        settings["metrics"] = [_metric(naming, entry) for entry in task.metrics]
    rules = {metric: {"rule": rule} for metric, rule in task.rules.items()}
    options = {name: {**rules.get(name, {}), **task.options.get(name, {})} for name in {**rules, **task.options}}
    settings["options"] = {
        metric: {key: _resolved(naming, metric, key, value) for key, value in values.items()}
        for metric, values in options.items()
    }
    return OpenedTask(task.name, place, settings, _generation(task, naming), notes)


def _digest(place: Path, data: TaskData, naming: NamingFile) -> str:
    """The SHA-256 of the data: of a single file its own, otherwise of the list of those of all files."""
    files = file_set(place, data.format)
    paths = [file.path for file in files.files]
    paths += [further for file in files.files for further in further_files(file)]
    digests = [str(describe_file(each).sha256) for each in paths]
    digest = digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    if data.sha256 not in (None, digest):
        raise ConfigError(
            f"{naming.path}: the data are not those of the task: the sha256 of {place} is {digest}, not {data.sha256}. "
            "Get the data again, or update `data.sha256`"
        )
    return digest


def _metric(naming: NamingFile, entry: str) -> str:
    """A metric of the task. The file of a judge is in the folder of the task file, and names no model."""
    source = entry.removeprefix(PREFIX)
    if not entry.startswith(PREFIX) or not is_file(source):
        return entry
    file = naming.inside("metrics", source, "Name it with --metrics judge:FILE")
    content = read_yaml(file, "the judge", unique_keys=True)
    for key in ("model", "models", "prices"):
        if isinstance(content, dict) and key in content:
            option = "--judge-prices FILE" if key == "prices" else "--judge PROVIDER:NAME"
            raise ConfigError(f"{file}: the judge of a task file cannot set `{key}`. Give it to the command: {option}")
    return f"{PREFIX}{file.resolve()}"


def _generation(task: TaskFile, naming: NamingFile) -> JsonObject:
    """The settings of asking a model, with paths that do not depend on the working directory."""
    settings: JsonObject = msgspec.to_builtins(task.generation)
    prompt = task.prompt if task.prompt is not None else settings.pop("prompt", None)
    if prompt is not None and ("{{" in prompt or "{%" in prompt or "\n" in prompt.strip()):
        settings["template"] = prompt
        settings.pop("prompt", None)
    elif prompt is not None and prompt not in prompts():
        settings["prompt"] = str(naming.inside("prompt", prompt, "Name it with --prompt FILE"))
    elif prompt is not None:
        settings["prompt"] = prompt
    if (shots := settings.get("shots")) is not None:
        settings["shots"] = str(naming.inside_with_content("shots", shots, "Name it with --shots FILE").resolve())
    if (system := settings.get("system", "")).startswith("@"):
        settings["system"] = f"@{naming.inside('system', system[1:], 'Name it with --system @FILE')}"
    return settings


def _resolved(naming: NamingFile, metric: str, key: str, value: Any) -> Any:
    """The value of an option. Files that it names are beside the task file, and become their paths."""
    advice = f"Name it with --option {metric}.{key}=FILE"
    if isinstance(value, str) and value and _exists(naming.path.parent / value):
        return str(naming.inside(f"options.{metric}.{key}", value, advice).resolve())
    for name in named_files(value):
        if _PATH.search(name):  # any other name is that of a rule or a model, whatever is in the working directory
            naming.inside(f"options.{metric}.{key}", str(Path(name).expanduser().absolute()), advice)
    return value


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
