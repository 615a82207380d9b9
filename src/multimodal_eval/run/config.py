"""Read the settings of a run from a YAML file or from arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, get_args

import msgspec

from multimodal_eval.core.config import (
    Detail,
    GenerationConfig,
    JudgeConfig,
    MediaAs,
    OnMissing,
    Parameters,
    RunConfig,
    StrataConfig,
    TaskConfig,
    UntilConfig,
)
from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.judge_config import (
    PREFIX,
    Combine,
    Criterion,
    JudgeForm,
    JudgeModel,
    Orders,
    Shown,
)
from multimodal_eval.core.metric import check_name
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import ANSWER_ALIASES
from multimodal_eval.core.yaml_text import read_yaml
from multimodal_eval.resources.catalogue import CATALOGUE

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
    if isinstance(changes.get("generation"), dict) and isinstance(base.get("generation"), dict):
        changes["generation"] = _merged(base["generation"], changes["generation"])
    if isinstance(changes.get("judges"), dict):
        changes["judges"] = merged_judges(base.get("judges", {}), changes["judges"])
    if isinstance(changes.get("map"), dict):
        changes["map"] = merged_columns(base.get("map", {}), changes["map"])
    if isinstance(changes.get("human"), dict):
        changes["human"] = {**base.get("human", {}), **changes["human"]}
    config = _with_judges(_converted({**base, **changes}, "the settings"))
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


def _with_judges(config: RunConfig) -> RunConfig:
    """The configuration with the content of its judges' files, if it has judges."""
    if not config.judges and not any(entry.startswith(PREFIX) for entry in config.metrics or ()):
        return config
    from multimodal_eval.run.judging.files import with_judges

    return with_judges(config)


def _with_declared_judges(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the judges that are among the metrics, by their names."""
    entries = settings.get("metrics")
    declared = [entry for entry in entries or () if isinstance(entry, JudgeConfig)]
    if not declared:
        return settings
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


def _merged(base: JsonObject, changes: JsonObject) -> JsonObject:
    """The settings of generation with changes on top; the parameters are merged as well."""
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
    if not isinstance(value, str) or not value or value in CATALOGUE:
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
    """Whether the data of a call are a task file."""
    return isinstance(data, str | Path) and Path(data).suffix.lower() in (".yaml", ".yml") and Path(data).is_file()


# Where the decoder is -> the settings that are known there; the first that fits.
Sections = Mapping[str, type[msgspec.Struct]]
_SECTIONS: Sections = {
    "$.tasks": TaskConfig,
    "$.strata": StrataConfig,
    "$.generation.parameters": Parameters,
    "$.generation.until": UntilConfig,
    "$.generation": GenerationConfig,
    "$.judges[...].criteria": Criterion,
    "$.judges[...].models": JudgeModel,
    "$.judges[...].parameters": Parameters,
    "$.judges": JudgeConfig,
}
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `(.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.*?)`(?: - at `(.*)`)?")
_TYPE = re.compile(r"Expected `(.*?)`(?:, got `(.*?)`| (>=?|<=?) (\S+))(?: - at `(.*)`)?")
_LENGTH = re.compile(r"Expected `array` of length (\d+), got (\d+)(?: - at `(.*)`)?")
_PATTERN = re.compile(r"Expected `str` matching regex (['\"])(.*?)\1(?: - at `(.*)`)?")
_CHOICE = re.compile(r"Invalid enum value (.*?)(?: - at `(.*)`)?")
# The decoder's types -> singular and plural.
_KINDS = {
    "int": ("a whole number", "whole numbers"),
    "float": ("a number", "numbers"),
    "str": ("a text", "texts"),
    "bool": ("true or false", "true or false"),
    "array": ("a list", "lists"),
    "object": ("a section with keys", "sections with keys"),
    "null": ("empty", "empty"),
}
_PYTHON = {int: "int", float: "float", str: "str", bool: "bool", list: "array", dict: "object", type(None): "null"}
_COMPARED = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {">=": ge, ">": gt, "<=": le, "<": lt}
_PATTERNS = {"^[0-9a-f]{64}$": "64 digits from 0 to 9 and a to f, as `sha256sum FILE` prints them"}
_CHOICES = {
    "on_missing": get_args(OnMissing),
    "unknown_labels": ("error", "wrong"),
    "detail": get_args(Detail),
    "media_as": get_args(MediaAs),
    "form": get_args(JudgeForm),
    "orders": get_args(Orders),
    "combine": get_args(Combine),
    "show": get_args(Shown),
}


def in_words(message: str, content: Any, top: type[msgspec.Struct] = RunConfig, sections: Sections = _SECTIONS) -> str:
    """The decoder's message about `content` in plain words; other messages stay as they are.

    `top` and `sections` have the settings that are known.
    """
    if fault := _UNKNOWN.fullmatch(message):
        section = next((kind for start, kind in sections.items() if (fault[2] or "").startswith(start)), top)
        return f"no setting is named {fault[1]!r}.{did_you_mean(fault[1], section.__struct_fields__)}"
    if fault := _MISSING.fullmatch(message):
        return f"`{_named(fault[2] or '$')}` needs the key `{fault[1]}`"
    if fault := _CHOICE.fullmatch(message):
        path = fault[2] or "$"
        setting = path.rpartition(".")[2].partition("[")[0]
        choices = " or ".join(map(repr, _CHOICES.get(setting, ())))
        must = f"must be {choices}" if choices else "is not one of the known values"
        return f"`{_named(path)}` {must}. Got {fault[1]} instead."
    if fault := _PATTERN.fullmatch(message):
        path = fault[3] or "$"
        must = _PATTERNS.get(fault[2], f"a text that matches {fault[2]}")
        value = next((shorten(value) for _, value in _values(path, content)), "another text")
        return f"`{_named(path)}` must be {must}. Got {value} instead."
    if fault := _LENGTH.fullmatch(message):
        return f"`{_named(fault[3] or '$')}` must be a list of {fault[1]} values. Got {fault[2]} instead."
    if fault := _TYPE.fullmatch(message):
        return _type_fault(fault[1], fault[2], fault[3], fault[4], fault[5] or "$", content)
    return message


def _type_fault(kinds: str, got: str | None, compared: str | None, bound: str | None, path: str, content: Any) -> str:
    names = [kind.strip() for kind in kinds.split("|") if kind.strip() != "null"]
    limit = f", {_COMPARED[compared]} {float(bound or 0):g}" if compared else ""
    must = " or ".join(_KINDS.get(name, (name, name))[0] for name in names)
    if path == "$":
        return f"a configuration must be a section with keys, such as `task: captioning`. Got {_kind(got)} instead."
    wrong = next(
        ((name, value) for name, value in _values(path, content) if _is_wrong(value, got, compared, bound)), None
    )
    name, value = (_named(path), _kind(got)) if wrong is None else (wrong[0], shorten(wrong[1]))
    hint = f" Write it in brackets: [{value.strip(chr(39))}]" if names == ["array"] and got == "str" else ""
    return f"`{name}` must be {must}{limit}. Got {value} instead.{hint}"


def _kind(name: str | None) -> str:
    return _KINDS.get(name or "", (str(name), ""))[0] if name != "null" else "nothing"


def _is_wrong(value: Any, got: str | None, compared: str | None, bound: str | None) -> bool:
    """Whether this is the value that the decoder refused, by its type or its size."""
    kind = _PYTHON.get(type(value))
    if got is not None:
        return kind == got
    return kind in ("int", "float") and not _HOLDS[compared or ">="](value, float(bound or 0))


def _named(path: str) -> str:
    """`$.tasks[...].weights` -> `tasks.….weights`."""
    return path.removeprefix("$").replace("[...]", ".…").lstrip(".") or "the configuration"


def _values(path: str, content: Any) -> Iterator[tuple[str, Any]]:
    """The values at a path of the decoder, with their full names; `[...]` is any key or position."""
    steps = re.findall(r"\.([^.\[]+)|\[(\.\.\.|\d+)\]", path)
    values: list[tuple[str, Any]] = [("", content)]
    for key, index in steps:
        values = [inner for name, value in values for inner in _inside(name, value, key, index)]
    yield from values


def _inside(name: str, value: Any, key: str, index: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        keys = [key] if key else list(value)
        yield from ((f"{name}.{part}".lstrip("."), value[part]) for part in keys if part in value)
    elif isinstance(value, list):
        positions = [int(index)] if index.isdigit() else range(len(value))
        yield from ((f"{name}[{position}]", value[position]) for position in positions)
