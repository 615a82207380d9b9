"""Find recipes: by the name of a benchmark, a folder, or a file.

A recipe is a folder with `recipe.yaml` and, beside it, `goldens.jsonl`, `sample.jsonl` and `published.yaml`. Those of
this package are beside this module. Other packages add theirs by an entry point of the group
`multimodal_eval.benchmarks`, whose value is a package with such folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from multimodal_eval.benchmarks.task_format import SECTIONS, TaskFile
from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnknownNameError
from multimodal_eval.core.yaml_text import read_yaml

__all__ = [
    "ENTRY_POINT_GROUP",
    "Published",
    "Recipe",
    "find_recipe",
    "named_recipe",
    "recipe",
    "recipe_names",
    "recipe_of",
    "similar_names",
    "task_of",
]

ENTRY_POINT_GROUP = "multimodal_eval.benchmarks"
FILE, GOLDENS, SAMPLE, PUBLISHED = "recipe.yaml", "goldens.jsonl", "sample.jsonl", "published.yaml"
_OURS = Path(__file__).parent
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


class Published(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """A published score of a model."""

    model: str
    value: float  # in the unit of the recipe
    source: str  # the page or file that prints it
    figure: str = "overall"  # or COLUMN=VALUE
    correct: int | None = None
    total: int | None = None
    settings: str | None = None


class Recipe(msgspec.Struct, frozen=True):
    """A recipe that was found."""

    name: str
    file: Path
    task: TaskFile

    @property
    def folder(self) -> Path:
        """The folder with its files."""
        return self.file.parent

    @property
    def is_verified(self) -> bool:
        """Whether its verdicts equal those of the origin."""
        return self.task.exactness is not None and self.task.exactness.verdicts == "verified"

    @property
    def published(self) -> list[Published]:
        """The published scores, if there are any."""
        path = self.folder / PUBLISHED
        if not path.is_file():
            return []
        content = read_yaml(path, "the published scores", unique_keys=True)
        try:
            return msgspec.convert(content or [], list[Published])
        except msgspec.ValidationError as fault:
            raise ConfigError(f"{path}: {fault}") from None


@cache
def recipe_names() -> dict[str, Path]:
    """The names of the recipes on this machine, with their files."""
    known = _below(_OURS)
    for name, folder in _installed():
        for recipe_name, file in _below(folder).items():
            if recipe_name in known:
                raise DuplicateNameError(
                    f"the entry point {name!r} offers a benchmark named {recipe_name!r}, which is already taken. "
                    "Uninstall one of the two distributions"
                )
            known[recipe_name] = file
    return dict(sorted(known.items()))


def _below(folder: Path) -> dict[str, Path]:
    return {file.parent.name: file for file in sorted(folder.glob(f"*/{FILE}"))}


def _installed() -> Iterator[tuple[str, Path]]:
    """The folders of entry points. A package is found without being imported."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        spec = find_spec(entry.value)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield entry.value, Path(place)


def find_recipe(data: object) -> Path | None:
    """The file of the recipe that DATA of a command names: a name, a folder or a file. None for any other data.

    A file or folder with the name comes first.
    """
    if not isinstance(data, str | Path):
        return None
    path = Path(data)
    if path.is_dir():
        return path / FILE if (path / FILE).is_file() else None
    return None if path.exists() else named_recipe(str(data))


def named_recipe(name: str) -> Path | None:
    """The file of the recipe with that name, whatever else has it; None if there is none."""
    if not _NAME.fullmatch(name):
        return None
    ours = _OURS / name / FILE
    return ours if ours.is_file() else recipe_names().get(name)


def similar_names(data: object) -> list[str]:
    """The recipes with a name like that of data that do not exist."""
    from difflib import get_close_matches

    name = str(data)
    return get_close_matches(name, recipe_names(), 3, 0.6) if _NAME.fullmatch(name) and not Path(name).exists() else []


def recipe(name: str | Path) -> Recipe:
    """The recipe with that name, in that folder, or in that file."""
    file = find_recipe(name)
    if file is None and Path(name).is_file():
        file = Path(name)
    if file is None and not _NAME.fullmatch(str(name)):
        raise ConfigError(f"{name} is not a recipe: a recipe is a folder with {FILE}")
    if file is None:
        raise UnknownNameError("benchmark", str(name), recipe_names())
    return recipe_of(file)


def recipe_of(file: Path) -> Recipe:
    """The recipe in a file."""
    content = read_yaml(file, "the recipe", unique_keys=True)
    task = task_of(content, file)
    name = file.parent.name if file.name == FILE else file.stem
    return Recipe(task.name if file.parent.parent != _OURS else name, file, task)


def task_of(content: object, file: Path) -> TaskFile:
    """The content of a task file, checked for its keys."""
    from multimodal_eval.core.setting_words import in_words

    if not isinstance(content, dict) or not {"name", "data"} <= content.keys():
        hint = f"If this is a configuration, give the data and --config {file}"
        raise ConfigError(f"{file}: a task file needs the keys `name` and `data`. {hint}")
    try:
        return msgspec.convert(content, TaskFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {in_words(str(error), content, TaskFile, SECTIONS)}") from None
