"""Task files: YAML that declares the data, their columns, the prompt, the metrics and the rules of a task.

A task file may come from somebody else. So it names no code, no model, no address, no key and no folder outside of
which media may be read: these are options of the command.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.benchmarks.recipes import find_recipe, task_of
from multimodal_eval.benchmarks.task_format import TaskData, TaskFile
from multimodal_eval.core.config import RunConfig, TaskOrigin
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import PREFIX
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.system_files import NamingFile
from multimodal_eval.core.yaml_text import read_tagged_yaml, read_yaml
from multimodal_eval.data.datasets.declared_rows import Declaration, format_name, text_fields
from multimodal_eval.data.readers.files import describe_file, file_set, further_files
from multimodal_eval.data.runs.grants import named_files
from multimodal_eval.evaluation.harness import harness_of
from multimodal_eval.run.judging import is_file

if TYPE_CHECKING:
    from multimodal_eval.run.harness_tasks import HarnessTask

__all__ = ["OpenedTask", "TaskFile", "open_task", "opened_recipe"]

_REFUSED = {
    "plugins": "--plugin FILE",
    "model": "--model PROVIDER:NAME",
    "allow_outside_images": "--allow-outside-images",
    "allow_image_urls": "--allow-image-urls",
    "media_roots": "--image-root DIR",
    "base_url": "--base-url URL",
    "key_env": "`generation: {key_env: NAME}` in --config",
    "headers": "`generation: {headers: …}` in --config",
}


_PATH = re.compile(r"[/\\.~]")  # what a path has, and the name of a rule or a model has not


# Settings of a task file that are settings of a run with the same name.
_SAME = tuple(
    name for name in TaskFile.__struct_fields__ if name in RunConfig.__struct_fields__ and name != "generation"
)


class OpenedTask(msgspec.Struct, frozen=True):
    """A task file, resolved: the data, the settings of a run, those of asking a model, and what was not taken."""

    name: str
    data: Path
    settings: JsonObject
    generation: JsonObject
    notes: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # those that a crosswalk compares
    prompts: Mapping[str, JsonObject] = msgspec.field(default_factory=dict)  # name -> settings of asking a model

    def asking(self, given: JsonObject) -> JsonObject:
        """The settings of asking a model, with those that are given on top; a prompt of the task by its name."""
        name = given.get("prompt")
        if name is None:
            return {**self.generation, **given}
        if name in self.prompts:
            base = dict(self.prompts[name])
            base["parameters"] = {**base.get("parameters", {}), **given.get("parameters", {})}
            return {**base, **{key: value for key, value in given.items() if key not in ("prompt", "parameters")}}
        others = {key: value for key, value in self.generation.items() if key not in ("prompt", "template")}
        return {**others, **given}


def open_task(
    data: str | Path,
    *,
    task_data: Path | None = None,
    allow_outside: bool = False,
    allow_partial: bool = False,
    may_download: bool = False,
) -> OpenedTask:
    """Read a task file of ours, a recipe by its name or its folder, or a task of lm-eval or lmms-eval: its file, or its
    name in the installed package.

    Its paths are relative to its folder and stay in it, unless the user allows others. `task_data` replaces its data.
    With `allow_partial`, they may have fewer rows than the file says.
    """
    if (named := harness_of(data)) is not None:
        from multimodal_eval.run.harness_tasks import installed_task

        return OpenedTask(**installed_task(*named, task_data, may_download=may_download))
    from multimodal_eval.run.harness_tasks import harness_task, is_harness_task

    path = find_recipe(data) or Path(data)
    naming = NamingFile(path, "the task file", allow_outside)
    if is_harness_task(content := read_tagged_yaml(path, "the task file")[0]):
        harness = harness_task(path, task_data=task_data, allow_outside=allow_outside)
        return _opened(naming, *_of_harness(harness), task_data=task_data)
    content = read_yaml(path, "the task file", unique_keys=True)
    _refuse_trust(content, path)
    return _opened(naming, task_of(content, path), task_data=task_data, allow_partial=allow_partial)


def opened_recipe(data: str | Path, place: Path) -> OpenedTask:
    """A recipe with other data, which may have any number of rows: its goldens, its sample."""
    path = find_recipe(data) or Path(data)
    task = task_of(read_yaml(path, "the recipe", unique_keys=True), path)
    return _opened(NamingFile(path, "the recipe"), task, task_data=place, allow_partial=True)


def _refuse_trust(content: Any, path: Path) -> None:
    """Refuse settings that a file of somebody else must not have."""
    sections = [content, content.get("generation")] if isinstance(content, dict) else []
    for key in (key for section in sections if isinstance(section, dict) for key in section):
        if key in _REFUSED:
            raise ConfigError(f"{path}: a task file cannot set `{key}`. Give it to the command: {_REFUSED[key]}")


def _of_harness(task: HarnessTask) -> tuple[TaskFile, tuple[str, ...]]:
    return msgspec.convert(task.content, TaskFile), task.notes


def _opened(
    naming: NamingFile,
    task: TaskFile,
    notes: tuple[str, ...] = (),
    *,
    task_data: Path | None = None,
    allow_partial: bool = False,
) -> OpenedTask:
    data = task.data if isinstance(task.data, TaskData) else TaskData(path=task.data)
    place, commit = _place(naming, task, data, task_data)
    notes += _contact(naming, task, data, place, allow_partial=allow_partial)
    digest = _digest(place, data, naming)
    exactness = None if task.exactness is None else task.exactness.verdicts
    origin = TaskOrigin(
        name=task.name,
        version=str(task.version),
        data=digest,
        notes=list(notes),
        commit=commit,
        exactness=exactness,
        figure=task.figure,
        unit=task.unit if exactness is not None else None,
        title=task.title,
    )
    defaults = msgspec.to_builtins(task)
    settings = {name: defaults[name] for name in _SAME if name in defaults}
    columns = {name: column for name, column in task.columns.items() if isinstance(column, str)}
    settings |= {"map": columns, "origin": msgspec.to_builtins(origin), "format": _format(task, data, columns)}
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
    named = {name: _asking(task, naming, name) for name in task.prompts}
    asking = _asking(task, naming, task.prompt)
    return OpenedTask(task.name, place, settings, asking, notes, tuple(task.crosswalk), named)


def _place(naming: NamingFile, task: TaskFile, data: TaskData, given: Path | None) -> tuple[Path, str | None]:
    """The data on this machine, and the commit if they were fetched."""
    kinds = [name for name in ("path", "hub", "source") if getattr(data, name) is not None]
    if len(kinds) != 1:
        raise ConfigError(
            f"{naming.path}: `data` needs one of `path`, `hub` and `source`. Got {' and '.join(kinds) or 'none'}"
        )
    if data.path is None:
        from multimodal_eval.benchmarks.data_files import place_of

        chosen = place_of(task.name, data, given)
        return chosen.path, chosen.commit
    return given or naming.inside_with_content("data", data.path, "Name it with --data FILE"), None


def _contact(
    naming: NamingFile, task: TaskFile, data: TaskData, place: Path, *, allow_partial: bool
) -> tuple[str, ...]:
    """Refuse data that are not as the file says. With `allow_partial`, another number of rows is only noted."""
    if not isinstance(data.rows, int) and not isinstance(data.columns, list):
        return ()
    from multimodal_eval.benchmarks.data_files import contact

    seen = contact(data, place)
    if seen.rows_fault and not allow_partial:
        raise ConfigError(
            f"{naming.path}: the data are not those of {task.name}: {seen.rows_fault}. Get all of them again, or score "
            "what is there with --allow-partial"
        )
    if seen.columns_faults:
        raise ConfigError(
            f"{naming.path}: the data are not those of {task.name}: {'; '.join(seen.columns_faults)}. If a column has "
            "another name, use the revision that the recipe names, or copy the recipe and change `columns`"
        )
    return (f"{task.name}: {seen.rows_fault}",) if seen.rows_fault else ()


def _format(task: TaskFile, data: TaskData, columns: Mapping[str, str]) -> str | None:
    """The format of the data: declared, if rows are arranged before they are read."""
    declared = Declaration(
        folder=data.folder,
        add=data.add,
        lists=data.lists,
        last=data.last,
        values=data.values,
        groups=data.groups,
        keep=data.keep,
        fields={name: column for name, column in task.columns.items() if not isinstance(column, str)},
        texts=text_fields(columns),
        ids="field" if task.columns.get("id", "id") != "id" else "own" if "id" in (data.columns or ()) else "number",
        inner=data.format,
    )
    is_arranged = data.path is None or any(
        (data.folder, data.add, data.lists, data.last, data.values, data.groups, data.keep, declared.fields)
    )
    return format_name(declared) if is_arranged else data.format


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
            option = "`judges: {NAME: {prices: FILE}}` in --config" if key == "prices" else "--judge PROVIDER:NAME"
            raise ConfigError(f"{file}: the judge of a task file cannot set `{key}`. Give it to the command: {option}")
    return f"{PREFIX}{file.resolve()}"


def _asking(task: TaskFile, naming: NamingFile, prompt: str | None) -> JsonObject:
    """The settings of asking a model, with paths that do not depend on the working directory."""
    from multimodal_eval.generate.prompts import prompts  # most runs have no task file

    settings: JsonObject = msgspec.to_builtins(task.generation)
    prompt = prompt if prompt is not None else settings.pop("prompt", None)
    if prompt in task.prompts:
        chosen = task.prompts[prompt]
        settings |= {"prompt": prompt, "template": chosen.text}
        parameters = {**settings.get("parameters", {}), **msgspec.to_builtins(chosen.parameters)}
        settings |= {"parameters": parameters} if parameters else {}
    elif prompt is not None and ("{{" in prompt or "{%" in prompt or "\n" in prompt.strip()):
        settings["template"] = prompt
        settings.pop("prompt", None)
    elif prompt is not None and prompt not in prompts():
        settings["prompt"] = str(naming.inside("prompt", prompt, "Name it with --prompt FILE"))
    elif prompt is not None:
        settings["prompt"] = prompt
    if (shots := settings.get("shots")) is not None:
        settings["shots"] = str(naming.inside_with_content("shots", shots, "Name it in the file of --config").resolve())
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
