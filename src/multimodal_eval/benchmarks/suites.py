"""Suites: lists of benchmarks that are run together.

A suite is a YAML file with a list of names of benchmarks, or a section with `benchmarks` and `title`. An entry may be
another suite, or a folder or file beside the list. Those of this package are in `suites/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from multimodal_eval.benchmarks.recipes import FILE, find_recipe, recipe_names
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.system_files import NamingFile
from multimodal_eval.core.yaml_text import read_yaml

__all__ = ["Suite", "suite", "suite_names"]

_OURS = Path(__file__).parent / "suites"


class Suite(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A list of benchmarks."""

    benchmarks: list[str]
    title: str | None = None


def suite_names() -> dict[str, Path]:
    """The suites of this package."""
    return {path.stem: path for path in sorted(_OURS.glob("*.yaml"))}


def suite(name: str | Path) -> list[str]:
    """The benchmarks of a suite, each once: names, or paths of recipes. Suites in it are resolved."""
    return list(dict.fromkeys(_members(_file_of(str(name)), ())))


def _file_of(name: str) -> Path:
    if (path := Path(name)).is_file():
        return path
    names = suite_names()
    if name not in names:
        raise ConfigError(f"no suite is named {name!r}, and it is not a file.{did_you_mean(name, list(names))}")
    return names[name]


def _members(path: Path, above: tuple[Path, ...]) -> Iterator[str]:
    if path.resolve() in above:
        circle = " -> ".join(each.name for each in (*above[above.index(path.resolve()) :], path))
        raise ConfigError(f"{path}: `benchmarks` leads back to this suite: {circle}. Remove one of them")
    naming = NamingFile(path, "the suite")
    names = suite_names()
    for place, entry in enumerate(_content(path).benchmarks):
        key = f"benchmarks[{place}]"
        inner = path.parent / entry
        is_path = (
            any(mark in entry for mark in "/\\") or Path(entry).suffix in (".yaml", ".yml") or entry.startswith(".")
        )
        if is_path:
            inner = naming.inside(key, entry, "Put it beside the suite")
        if inner.is_file() and inner.name != FILE and _is_suite(inner):
            yield from _members(inner, (*above, path.resolve()))
        elif inner.is_file() or (inner / FILE).is_file():
            yield str(inner)
        elif entry in names:
            yield from _members(names[entry], (*above, path.resolve()))
        elif find_recipe(entry) is not None:
            yield entry
        else:
            near = did_you_mean(entry, [*recipe_names(), *names])
            raise ConfigError(f"{path}: `{key}` is neither a benchmark nor a suite: {entry!r}.{near}")


def _is_suite(path: Path) -> bool:
    content = read_yaml(path, "the suite")
    return isinstance(content, list) or (isinstance(content, dict) and "benchmarks" in content)


def _content(path: Path) -> Suite:
    content = read_yaml(path, "the suite", unique_keys=True)
    try:
        return msgspec.convert({"benchmarks": content} if isinstance(content, list) else content, Suite)
    except msgspec.ValidationError as fault:
        raise ConfigError(f"{path}: a suite must be a list of names of benchmarks: {fault}") from None
