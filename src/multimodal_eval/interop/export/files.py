"""The files of exports: the data that some take, files that are complete or absent, and YAML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.run_findings import claims

__all__ = ["UNCORRECTED", "claim_of", "published", "whole_file", "write_text", "yaml_text"]


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
    corrected = figure.calibrated
    if corrected is None or corrected.value is None:
        return figure, None
    value = figure.with_estimate(corrected, labels=corrected.labels, column=corrected.column, calibrated=None)
    return value, msgspec.structs.replace(figure, calibrated=None)


def claim_of(run: Run, metric: str) -> str | None:
    """What the score of a judge is without human labels; None for other scores."""
    return next(claims(run, metric), None) if metric in run.info.config.judges else None
