"""The files of a recipe's data: their folder on this machine, and whether they are what the recipe says.

Fetched data are in `$MMEVAL_HOME/benchmarks/ORG--NAME/COMMIT`, as the repository has them. `--data` names a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from glob import escape
from hashlib import file_digest
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.benchmarks.recipes import Recipe
from multimodal_eval.benchmarks.task_format import UNVERIFIED, HubData, TaskData
from multimodal_eval.core.errors import ConfigError, FetchError
from multimodal_eval.core.system_files import leading_out
from multimodal_eval.data.readers.files import file_set
from multimodal_eval.data.readers.formats import reader_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.resources.store import home

__all__ = [
    "MANIFEST",
    "Fetched",
    "FetchedFile",
    "Place",
    "changed_files",
    "contact",
    "fetched",
    "folder_of",
    "place_of",
]

MANIFEST = "mmeval-data.json"


class FetchedFile(msgspec.Struct, frozen=True):
    """A file that was fetched."""

    size: int
    sha256: str


class Fetched(msgspec.Struct, frozen=True):
    """The record of what was fetched, beside the files."""

    repository: str
    revision: str  # as it was asked for
    commit: str
    fetched: str  # when
    files: dict[str, FetchedFile]


@dataclass(frozen=True)
class Place:
    """The data of a task on this machine: a path or a pattern, and the commit if they were fetched."""

    path: Path
    commit: str | None = None


def folder_of(hub: HubData) -> Path:
    """The folder with the fetched commits of a repository."""
    return home() / "benchmarks" / hub.repository.replace("/", "--")


def fetched(hub: HubData) -> tuple[Path, Fetched] | None:
    """The commit that was fetched: that of the recipe, or else the last one. None if there is none."""
    chosen = [(path.parent, _manifest(path)) for path in folder_of(hub).glob(f"*/{MANIFEST}")]
    if hub.revision != UNVERIFIED:
        chosen = [(folder, manifest) for folder, manifest in chosen if manifest.commit == hub.revision]
    wanted = [each for each in chosen if _has(each[0], hub.files)]
    return max(wanted, key=lambda each: each[1].fetched, default=None)


def _has(folder: Path, pattern: str) -> bool:
    return any(folder.glob(pattern))


def _manifest(path: Path) -> Fetched:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Fetched)
    except (OSError, msgspec.DecodeError) as fault:
        raise FetchError(
            f"{path} cannot be read: {fault}. Remove the folder {path.parent} and fetch the data again"
        ) from None


def place_of(name: str, data: TaskData, given: Path | None) -> Place:
    """The copy that the user names, or the fetched data."""
    pattern = data.pattern
    if given is None:
        chosen = None if data.hub is None else fetched(data.hub)
        if data.hub is None or chosen is None:
            raise ConfigError(f"the data of {name} are not on this machine. {_advice(name, data)}")
        folder, manifest = chosen
        _refuse_changed(folder, manifest, name)
        return Place(Path(escape(str(folder))) / data.hub.files, manifest.commit)
    if not given.is_dir() or pattern is None:
        return Place(given)
    if not _has(given, pattern):
        raise ConfigError(f"no file below {given} is named {pattern}, as the data of {name} are. {_advice(name, data)}")
    commit = None
    if (given / MANIFEST).is_file():
        commit = _manifest(given / MANIFEST).commit
        wanted = UNVERIFIED if data.hub is None else data.hub.revision
        if wanted not in (UNVERIFIED, commit):
            raise ConfigError(
                f"{given} has the commit {commit}, and {name} needs {wanted}. Fetch it: mmeval fetch {name}"
            )
    return Place(Path(escape(str(given))) / pattern, commit)


def _advice(name: str, data: TaskData) -> str:
    if data.hub is None:
        return f"Get them from {data.source}, and name your copy with --data DIR"
    copy = f"a folder with a copy of the repository {data.hub.repository}"
    return f"Fetch them: mmeval fetch {name}. Or name {copy}: --data DIR"


def _refuse_changed(folder: Path, manifest: Fetched, name: str) -> None:
    """Refuse files that are not as they were fetched, by their sizes. The run notes their checksums."""
    for file, known in manifest.files.items():
        out = leading_out(folder, file)
        path = folder / file
        if out is not None or not path.is_file() or path.stat().st_size != known.size:
            raise FetchError(f"{path} is not as it was fetched. Fetch it again: mmeval fetch {name}")


def changed_files(recipe: Recipe) -> list[str] | None:
    """The fetched files whose checksum differs, by reading all of them; None if nothing was fetched."""
    data = recipe.task.data
    chosen = fetched(data.hub) if isinstance(data, TaskData) and data.hub is not None else None
    if chosen is None:
        return None
    folder, manifest = chosen
    return [name for name, known in manifest.files.items() if not _is_same(folder / name, known)]


def _is_same(path: Path, known: FetchedFile) -> bool:
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest() == known.sha256
    except OSError:
        return False


# What the files have.


@dataclass(frozen=True)
class Contact:
    """What the files have, and how it differs from what the recipe says."""

    files: int
    rows: int
    columns: tuple[str, ...]
    rows_fault: str | None
    columns_faults: tuple[str, ...]


def contact(data: TaskData, place: Path) -> Contact:
    """Count the rows of the files, read the names of their columns, and compare both with the recipe."""
    files = file_set(place)
    shapes = [_shape(file.path) for file in files.files]
    rows, columns = (
        sum(count for count, _ in shapes),
        tuple(dict.fromkeys(name for _, names in shapes for name in names)),
    )
    is_other = isinstance(data.rows, int) and rows != data.rows
    rows_fault = f"{rows:,} rows instead of {data.rows:,} in {files.name}" if is_other else None
    return Contact(len(shapes), rows, columns, rows_fault, tuple(_columns_faults(data, columns)))


def _columns_faults(data: TaskData, columns: tuple[str, ...]) -> Iterator[str]:
    for name in data.columns if isinstance(data.columns, list) else ():
        if columns and name not in columns:
            close = get_close_matches(name, columns, 1, 0.6)
            others = f"there is {close[0]!r}" if close else f"there are {', '.join(map(repr, columns[:20]))}"
            yield f"no column {name!r}: {others}"


def _shape(path: Path) -> tuple[int, tuple[str, ...]]:
    """The number of rows of a file and its columns."""
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        from multimodal_eval.data.readers.parquet_file import parquet_errors

        try:
            metadata = pq.read_metadata(path)
        except parquet_errors() as fault:
            raise ConfigError(
                f"{path} is not a Parquet file that can be read: {fault}. Copy or fetch it again"
            ) from None
        return metadata.num_rows, tuple(metadata.schema.to_arrow_schema().names)
    rows, names = 0, dict[str, Any]()
    for _, record in reader_of(path)(path, Problems()):
        rows += 1
        names.update(dict.fromkeys(record) if rows <= 100 else {})
    return rows, tuple(names)
