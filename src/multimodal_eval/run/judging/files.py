"""Judges in the metrics of a configuration: `judge:FILE.yaml`, or `judge:NAME` for one that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel
from multimodal_eval.core.metric import check_name
from multimodal_eval.core.yaml_text import read_yaml

__all__ = ["PREFIX", "read_judge", "with_judges", "with_models"]

PREFIX = "judge:"


def with_judges(config: RunConfig) -> RunConfig:
    """The configuration with the content of its judges' files, so that a resumed run does not read them again."""
    read = {entry: read_judge(entry.removeprefix(PREFIX)) for entry in config.metrics or () if entry.startswith(PREFIX)}
    if not read:
        return config
    for judge in read.values():
        check_name(judge.name)
    metrics = [read[entry].name if entry in read else entry for entry in config.metrics or ()]
    judges = {**config.judges, **{judge.name: judge for judge in read.values()}}
    return msgspec.structs.replace(config, metrics=metrics, judges=judges)


def with_models(config: RunConfig, models: list[JudgeModel]) -> RunConfig:
    """The configuration whose judges all ask these models."""
    judges = {name: msgspec.structs.replace(judge, models=models) for name, judge in config.judges.items()}
    return msgspec.structs.replace(config, judges=judges) if models else config


def read_judge(source: str) -> JudgeConfig:
    """The judge in a YAML file. Its `model` may be a single name."""
    path = Path(source)
    content: Any = read_yaml(path, "the judge", unique_keys=True) or {}
    if isinstance(content, dict) and "model" in content:
        content = {**content, "models": [{"model": content["model"]}]}
        del content["model"]
    try:
        judge = msgspec.convert(content, JudgeConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {error}") from None
    return judge if judge.name else msgspec.structs.replace(judge, name=path.stem)
