"""The files of exports: the data that some take, files that are complete or absent, and YAML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from multimodal_eval.core.errors import ConfigError

__all__ = ["whole_file", "write_text", "yaml_text"]


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
