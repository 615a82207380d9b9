"""Read the settings of a run from a YAML file, from arguments or from a task file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from multimodal_eval.core.config import (
    JudgeConfig,
    RunConfig,
)
from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.judge_config import (
    PREFIX,
)
from multimodal_eval.core.metric import check_name
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import ANSWER_ALIASES
from multimodal_eval.core.yaml_text import read_yaml
from multimodal_eval.evaluation.harness import harness_of

MODEL_OPTIONS = ("encoder", "model")  # metric options that are a name or a folder


ConfigSource = str | Path | Mapping[str, Any] | RunConfig | None


def load_config(source: ConfigSource, model: str | None = None) -> RunConfig:
    """The configuration from a YAML file, a mapping or a RunConfig. `model` answers if its `generation` names none."""
    if source is None:
        return RunConfig()
    if isinstance(source, RunConfig):
        return source
    if isinstance(source, Mapping):
        return _converted(_with_model(dict(source), model), "the configuration")
    path = Path(source)
    return _converted(_with_model(read_yaml(path, "the configuration", unique_keys=True) or {}, model), str(path))


def changes_in(path: str | Path | None, section: Literal["generation", "judges"]) -> JsonObject:
    """A section of the file of a run that is continued, for which only these two may be given."""
    content = {} if path is None else read_yaml(Path(path), "the configuration", unique_keys=True) or {}
    if not isinstance(content, dict) or not content.keys() <= {"generation", "judges"}:
        raise ConfigError(
            f"{path}: the settings of a run that is continued are in its folder. Its file may have only the sections "
            "`generation` and `judges`, with settings that change no answer and no verdict"
        )
    changes = content.get(section) or {}
    if not isinstance(changes, dict):
        raise ConfigError(f"{path}: `{section}` must be a section with keys. Got {shorten(changes)} instead.")
    return changes


def _with_model(content: Any, model: str | None) -> Any:
    generation = content.get("generation") if isinstance(content, dict) else None
    if model is None or not isinstance(generation, Mapping) or "model" in generation:
        return content
    return {**content, "generation": {**generation, "model": model}}


def overlaid(source: ConfigSource, **settings: Any) -> RunConfig:
    """The configuration with the given settings on top; None and False mean "not given".

    Metric options, the settings of generation and the columns of fields and of human labels are merged one by one:
    those of the file remain unless they are given again.
    """
    for key in settings:
        if key not in RunConfig.__struct_fields__:
            raise ConfigError(f"no setting is named {key!r}.{did_you_mean(key, RunConfig.__struct_fields__)}")
    generation = settings.get("generation")
    base = msgspec.to_builtins(load_config(source, generation.get("model") if isinstance(generation, dict) else None))
    if isinstance(settings.get("metrics"), str):
        settings["metrics"] = _split(settings["metrics"])
    if any(isinstance(entry, JudgeConfig) for entry in settings.get("metrics") or ()):
        settings = _with_declared_judges(settings)
    if isinstance(settings.get("annotators"), str):
        settings["annotators"] = _split(settings["annotators"])
    if isinstance(settings.get("human"), str):
        settings["human"] = {"": settings["human"]}
    changes = {
        key: msgspec.to_builtins(value) for key, value in settings.items() if value is not None and value is not False
    }
    if isinstance(changes.get("options"), dict):
        inherited = base.get("options", {})
        merged = {metric: {**inherited.get(metric, {}), **new} for metric, new in changes["options"].items()}
        changes["options"] = {**inherited, **merged}
    if isinstance(changes.get("generation", {}), dict) and (base.get("generation") or changes.get("generation")):
        changes["generation"] = merged_generation(base.get("generation") or {}, changes.get("generation") or {})
    if isinstance(changes.get("judges"), dict):
        changes["judges"] = merged_judges(base.get("judges", {}), changes["judges"])
    if isinstance(changes.get("map"), dict):
        changes["map"] = merged_columns(base.get("map", {}), changes["map"])
    if isinstance(changes.get("human"), dict):
        changes["human"] = {**base.get("human", {}), **changes["human"]}
    config = _converted({**base, **changes}, "the settings")
    if config.judges or any(entry.startswith(PREFIX) for entry in config.metrics or ()):
        from multimodal_eval.run.judging import with_judges

        config = with_judges(config)  # with the content of their files
    # Absolute paths: a resumed run must find plug-ins, images and the files in options from any working directory.
    return msgspec.structs.replace(
        config,
        image_root=None if config.image_root is None else str(Path(config.image_root).resolve()),
        plugins=[str(Path(plugin).resolve()) for plugin in config.plugins],
        options={
            metric: {key: _absolute(key, value) for key, value in options.items()}
            for metric, options in config.options.items()
        },
    )


def _with_declared_judges(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the judges that are among the metrics, by their names."""
    entries = settings.get("metrics")
    declared = [entry for entry in entries or () if isinstance(entry, JudgeConfig)]
    for judge in declared:
        if not judge.name:
            raise ConfigError("a JudgeConfig among the metrics needs a name: JudgeConfig(name='helpfulness', …)")
        check_name(judge.name)
    names = [entry.name if isinstance(entry, JudgeConfig) else entry for entry in entries or ()]
    judges = {**(settings.get("judges") or {}), **{judge.name: judge for judge in declared}}
    return {**settings, "metrics": names, "judges": judges}


def merged_columns(base: Mapping[str, Any], changes: Mapping[str, Any]) -> JsonObject:
    """The columns of fields with changes on top, field by field. The answer has several names."""
    maps = (
        {("generated_answer" if name in ANSWER_ALIASES else name): columns[name] for name in columns}
        for columns in (base, changes)
    )
    return {name: column for columns in maps for name, column in columns.items()}


def merged_judges(base: JsonObject, changes: JsonObject) -> JsonObject:
    """Judges with changes on top: one that is declared again replaces the other, except its models if it has none."""
    merged = dict(base)
    for name, judge in changes.items():
        if not isinstance(judge, dict):
            merged[name] = judge  # refused when it is converted
            continue
        models = base.get(name, {}).get("models")
        inherited = {"models": models} if models and not judge.get("models") else {}
        merged[name] = {**judge, **inherited}
    return merged


def merged_generation(base: JsonObject, changes: JsonObject) -> JsonObject:
    """The settings of generation with changes on top; the parameters are merged as well.

    Each of both may name a model profile, which is below it.
    """
    if "profile" in base or "profile" in changes:
        from multimodal_eval.generate.model_profile import with_profile

        if "profile" in changes and "profile_content" in base:
            raise ConfigError(f"a model has one profile. Got {base['profile']!r} and {changes['profile']!r}")
        base = base if "profile" in changes else with_profile(base)
        changes = with_profile(changes)
    merged = {**base, **changes}
    if isinstance(base.get("parameters"), dict) and isinstance(changes.get("parameters"), dict):
        merged["parameters"] = {**base["parameters"], **changes["parameters"]}
    return merged


def _split(names: str) -> list[str]:
    """The names in a comma-separated list."""
    return [name.strip() for name in names.split(",") if name.strip()]


def _absolute(key: str, value: Any) -> Any:
    """The absolute path of a file or a model folder, also after a colon ("ruwordnet:words.db", "torch:DIR").

    Other values, including names in the catalogue, are returned unchanged.
    """
    if isinstance(value, dict):
        return {part: _absolute(key, item) for part, item in value.items()}
    if not isinstance(value, str) or not value:
        return value
    from multimodal_eval.resources.catalogue import CATALOGUE

    if value in CATALOGUE:
        return value
    head, colon, tail = value.rpartition(":")
    for kind, name in (("", value), (head + colon, tail)):
        if name and (Path(name).is_file() or (key in MODEL_OPTIONS and Path(name).is_dir())):
            return f"{kind}{Path(name).resolve()}"
    return value


def _converted(content: Any, source: str) -> RunConfig:
    if isinstance(content, dict) and isinstance(content.get("human"), str):  # the column of all judges
        content = {**content, "human": {"": content["human"]}}
    try:
        return msgspec.convert(content, RunConfig)
    except msgspec.ValidationError as error:
        from multimodal_eval.core.setting_words import in_words

        raise ConfigError(f"{source}: {in_words(str(error), content)}") from None


def json_schema() -> JsonObject:
    """The JSON Schema of the YAML file."""
    schema = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(RunConfig)))  # defaults may be tuples
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmeval run configuration",
        **schema,
    }


def is_task_file(data: object) -> bool:
    """Whether the data of a call are a task file, or name a recipe or a task of an installed harness."""
    if not isinstance(data, str | Path):
        return False
    if Path(data).is_file():
        return Path(data).suffix.lower() in (".yaml", ".yml")
    from multimodal_eval.benchmarks.recipes import find_recipe

    return harness_of(data) is not None or find_recipe(data) is not None


def with_task(
    data: Any,
    config: ConfigSource,
    model: str | None,
    task: str | None = None,
    metrics: Sequence[str] | str | None = None,
    *,
    task_data: str | Path | None = None,
    allow_partial: bool = False,
    may_download: bool = False,
) -> tuple[Any, ConfigSource, tuple[str, ...]]:
    """The data and the configuration of a call, and notes. Other data than a task file are returned as they are.

    The settings of `config` have precedence over those of the task file. Without a model, those of asking one are not
    used. `task` and `metrics` are those of the call: settings of other metrics are then left out. `task_data` replaces
    the data that the file names. A task of an installed harness downloads its data only if it `may_download`.
    """
    if not is_task_file(data):
        if task_data is not None:
            raise ConfigError(f"`--data` replaces the data of a task file, and {shorten(data)} is not one. Omit it")
        return data, config, ()
    from multimodal_eval.run.task_files import open_task

    given = msgspec.to_builtins(load_config(config))
    opened = open_task(
        data,
        task_data=None if task_data is None else Path(task_data),
        allow_outside=given.get("allow_outside", False),
        allow_partial=allow_partial or given.get("allow_partial", False),
        may_download=may_download,
    )
    chosen = metrics or given.get("metrics")
    names = [name.strip() for name in chosen.split(",")] if isinstance(chosen, str) else chosen
    task_settings = _for_metrics(opened.settings, names, has_task=bool(task or given.get("task")))
    settings = {**task_settings, **given}
    options, new = task_settings.get("options", {}), given.get("options", {})
    settings["options"] = {name: {**options.get(name, {}), **new.get(name, {})} for name in {**options, **new}}
    settings["map"] = merged_columns(task_settings["map"], given.get("map", {}))
    asked = given.get("generation") or ({} if model is None else {"model": model})
    if asked:
        settings["generation"] = opened.asking(asked)
    return opened.data, settings, opened.notes


def copy_of(settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `with_task` among the settings of a call: `task_data` is taken out of them."""
    return {"task_data": settings.pop("task_data", None), "allow_partial": bool(settings.get("allow_partial"))}


def _for_metrics(settings: JsonObject, metrics: Sequence[str] | None, *, has_task: bool) -> JsonObject:
    """The settings without those of metrics that the call replaces by others."""
    if metrics is None and not has_task:
        return settings
    kept = {key: value for key, value in settings.items() if key not in ("metrics", "headline", "complete", "variants")}
    names = metrics or ()
    kept["options"] = {name: options for name, options in settings["options"].items() if name in names}
    kept["variants"] = {name: metric for name, metric in settings.get("variants", {}).items() if name in names}
    return kept
