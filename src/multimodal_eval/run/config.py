"""Reading the settings of a run: one YAML file, or the same words as arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from multimodal_eval.core.config import RunConfig, StrataConfig, TaskConfig
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.records import JsonObject
from multimodal_eval.resources.catalogue import CATALOGUE

MODEL_OPTIONS = ("encoder", "model")  # of metrics: a name, or a folder


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice; the usual loader keeps the last and says nothing."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if isinstance(key, str) and seen.setdefault(key, line) != line:
                raise ConfigError(f"the key {key!r} stands twice, in lines {seen[key]} and {line}")
        return dict(super().construct_mapping(node, deep))


ConfigSource = str | Path | Mapping[str, Any] | RunConfig | None


def load_config(source: ConfigSource) -> RunConfig:
    """The configuration in a YAML file or a mapping, or as it is."""
    if source is None:
        return RunConfig()
    if isinstance(source, RunConfig):
        return source
    if isinstance(source, Mapping):
        return _converted(dict(source), "the configuration")
    path = Path(source)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader)
    except OSError as error:
        raise ConfigError(f"the configuration {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return _converted(content or {}, str(path))


def overlaid(source: ConfigSource, **given: Any) -> RunConfig:
    """The configuration with what was given besides laid over it; None and False mean "not given".

    Options are laid over one by one: those of the file that are not given again stay.
    """
    for key in given:
        if key not in RunConfig.__struct_fields__:
            raise ConfigError(f"no setting is named {key!r}.{did_you_mean(key, RunConfig.__struct_fields__)}")
    base = msgspec.to_builtins(load_config(source))
    if isinstance(given.get("metrics"), str):
        given["metrics"] = _listed(given["metrics"])
    if isinstance(given.get("annotators"), str):
        given["annotators"] = _listed(given["annotators"])
    said = {key: msgspec.to_builtins(value) for key, value in given.items() if value is not None and value is not False}
    if isinstance(said.get("options"), dict):
        stays = base.get("options", {})
        given_anew = {metric: {**stays.get(metric, {}), **new} for metric, new in said["options"].items()}
        said["options"] = {**stays, **given_anew}
    config = _converted({**base, **said}, "the settings")
    # A resumed run finds its plug-ins, pictures, and files that options name, again from any working directory.
    return msgspec.structs.replace(
        config,
        image_root=None if config.image_root is None else str(Path(config.image_root).resolve()),
        plugins=[str(Path(plugin).resolve()) for plugin in config.plugins],
        options={
            metric: {key: _absolute(key, value) for key, value in options.items()}
            for metric, options in config.options.items()
        },
    )


def _listed(names: str) -> list[str]:
    """What stands between commas."""
    return [name.strip() for name in names.split(",") if name.strip()]


def _absolute(key: str, value: Any) -> Any:
    """A file's name, or a model's folder, as an absolute path, also behind a colon ("ruwordnet:words.db", "torch:DIR").

    Any other value, a name of the catalogue among them, stays as it is.
    """
    if isinstance(value, dict):
        return {part: _absolute(key, own) for part, own in value.items()}
    if not isinstance(value, str) or not value or value in CATALOGUE:
        return value
    head, colon, tail = value.rpartition(":")
    for kind, name in (("", value), (head + colon, tail)):
        if name and (Path(name).is_file() or (key in MODEL_OPTIONS and Path(name).is_dir())):
            return f"{kind}{Path(name).resolve()}"
    return value


def _converted(content: Any, source: str) -> RunConfig:
    try:
        return msgspec.convert(content, RunConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {_in_words(str(error))}") from None


def _in_words(said: str) -> str:
    """The decoder's message; an unknown key gets the suggestion that belongs to its place."""
    unknown = re.match(r"Object contains unknown field `(.*?)`(?: - at `(.*)`)?", said)
    if not unknown:
        return said
    key, place = unknown[1], unknown[2] or ""
    places = {"$.tasks": TaskConfig, "$.strata": StrataConfig}
    known = next((own for start, own in places.items() if place.startswith(start)), RunConfig).__struct_fields__
    return f"no setting is named {key!r}.{did_you_mean(key, known)}"


def json_schema() -> JsonObject:
    """The JSON Schema of the YAML file."""
    schema = msgspec.json.schema(RunConfig)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmeval run configuration",
        **schema,
    }
