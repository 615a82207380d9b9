"""The input of exports that take data instead of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multimodal_eval.core.errors import ConfigError


def only_data_file(inputs: Sequence[str | Path], name: str) -> Path:
    """The data of a shared task: one file or folder on this machine."""
    if len(inputs) != 1:
        raise ConfigError(f"the format {name} takes one file of data. Got {len(inputs)}")
    path = Path(inputs[0])
    if (path / "run.json").is_file():
        raise ConfigError(f"{path} is a run, but the format {name} takes the data with the references")
    return path
