"""The files that a name stands for: one file, a folder of files, or a pattern such as `part-*.jsonl`.

A folder is read with all that lies below it. Folders named `key=value`, as Hive and Spark partition a dataset, give
their files' records the column `key`. Names that begin with `.` or `_` (`_SUCCESS`, `_metadata`) are no data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from glob import escape, glob
from pathlib import Path
from urllib.parse import unquote

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.formats import Reader, check_file, reader_of

_NULL_KEY = "__HIVE_DEFAULT_PARTITION__"
_DIGITS = re.compile(r"([0-9]+)")
_ESCAPED = re.compile(r"\[[*?[]\]")  # how `glob.escape` writes a character that shall stand for itself
_OPEN = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of an input, and the columns that the folders around it give to its records."""

    path: Path
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files behind a name, in the order in which they are read, and the folder that they lie in."""

    name: Path
    files: tuple[DataFile, ...]
    folder: Path

    def recipe(self) -> str:
        """The name as it finds the same files from any working directory."""
        if self.name.exists():
            return str(self.name.resolve())
        if self.name.is_absolute():
            return str(self.name)
        return str(Path(escape(str(Path.cwd()))) / self.name)


def file_set(name: Path) -> FileSet:
    """The files that a name stands for, all there and of one format. What exists is meant by its own name."""
    if name.is_dir():
        return FileSet(name, _of_one_format(name, _ordered(_below(name), name)), name)
    if name.exists() or not _OPEN.search(str(name)):
        check_file(name)
        return FileSet(name, (DataFile(name),), name.parent)
    folder = _fixed_head(name)
    open_part = str(Path(*name.parts[len(folder.parts) :]))
    return FileSet(name, _of_one_format(name, _ordered(_matching(open_part, folder), folder)), folder)


def _below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, behind links too; a link back into itself is followed once."""
    visited: set[str] = set()
    for parent, folders, names in os.walk(folder, followlinks=True, onerror=_refuse_folder):
        true_path = os.path.realpath(parent)
        if true_path in visited:
            folders.clear()
            continue
        visited.add(true_path)
        yield from (Path(parent, name) for name in names)


def _refuse_folder(error: OSError) -> None:
    """Data behind a folder that cannot be listed would be missing in silence."""
    message = f"the folder cannot be read: {error.strerror}"
    raise InputError([Problem(code="NOT_FOUND", message=message, file=str(error.filename))])


def _matching(pattern: str, folder: Path) -> Iterator[Path]:
    """Every file that matches, and every file below a folder that does."""
    for match in glob(pattern, root_dir=folder, recursive=True):  # noqa: PTH207 - Path.glob follows no links
        path = folder / match
        if path.is_dir():
            yield from _below(path)
        else:
            yield path


def _fixed_head(pattern: Path) -> Path:
    """The folder in front of the first component that is a pattern."""
    fixed: list[str] = []
    for component in pattern.parts:
        if _OPEN.search(_ESCAPED.sub("", component)):
            break
        fixed.append(_ESCAPED.sub(lambda found: found[0][1], component))
    return Path(*fixed)


def _ordered(paths: Iterable[Path], folder: Path) -> list[DataFile]:
    """The data among these files, each once: numbers in names count as numbers, so that part-2 precedes part-10."""
    inner = {path.relative_to(folder): path for path in paths}
    kept = sorted((name for name in inner if not any(map(_is_hidden, name.parts))), key=_natural)
    return [DataFile(inner[name], _keys_of(name)) for name in kept]


def _is_hidden(name: str) -> bool:
    """Spark's rule: `_SUCCESS` and `.part-0.crc` are no data, the partition folder `_day=1` is."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _natural(name: Path) -> tuple[list[list[str | int]], str]:
    components: list[list[str | int]] = [
        [int(piece) if place % 2 else piece for place, piece in enumerate(_DIGITS.split(component))]
        for component in name.parts
    ]
    return components, str(name)


def _keys_of(name: Path) -> dict[str, str]:
    """The partition columns of a file: always text, so that `fold=007` stays what it is."""
    pairs = (component.split("=", 1) for component in name.parts[:-1] if "=" in component[1:])
    return {unquote(key): unquote(value) for key, value in pairs if value != _NULL_KEY}


def _of_one_format(name: Path, files: list[DataFile]) -> tuple[DataFile, ...]:
    if (name / "run.json").is_file():
        hint = "Score its samples again with: mmeval rescore"
        raise InputError([Problem(code="FORMAT", message="a run folder, and no data.", file=str(name), hint=hint)])
    if not files:
        what = "the folder holds no data" if name.is_dir() else "no file matches this pattern"
        message = f"{what} (names that begin with . or _ are not read)"
        raise InputError([Problem(code="NOT_FOUND", message=message, file=str(name))])
    first_of: dict[Reader, Path] = {}
    for file in files:
        check_file(file.path)
        first_of.setdefault(reader_of(file.path), file.path)
    if len(first_of) > 1:
        one, other = list(first_of.values())[:2]
        message = f"the files must be of one format, and {one} is of another."
        advice = f"Name those that you mean by a pattern: '{name}/**/*{bare_suffix(one)}'." if name.is_dir() else None
        raise InputError([Problem(code="FORMAT", message=message, file=str(other), hint=advice)])
    return tuple(files)
