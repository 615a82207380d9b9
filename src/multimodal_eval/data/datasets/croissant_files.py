"""The files of a Croissant dataset on this machine. Nothing is downloaded, and checksums are compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from multimodal_eval.core.inside import leading_out
from multimodal_eval.data.datasets.croissant_metadata import CroissantError, Metadata, Resource
from multimodal_eval.data.datasets.dataset_format import natural_key

__all__ = ["files_of"]

_DIGESTS = {"sha256": re.compile(r"[0-9a-fA-F]{64}"), "md5": re.compile(r"[0-9a-fA-F]{32}")}
_REPOSITORIES = ("git+https", "git+http", "git")
_ARCHIVES = ("application/zip", "application/x-tar", "application/gzip", "application/x-gzip", "application/x-tgz")
_DEEPEST = 10


def files_of(metadata: Metadata, resource: str, folder: Path) -> list[tuple[str, Path]]:
    """(path inside the dataset, file) of every file of a resource; `folder` contains the metadata."""
    entry = _entry(metadata, resource)
    if not entry.is_set:
        path = _file(metadata, entry, folder)
        return [(PurePosixPath(path.relative_to(folder)).as_posix(), path)]
    containers = entry.contained_in or ("",)
    files = [pair for container in containers for pair in _matching(metadata, entry, container, folder)]
    if not files:
        patterns = ", ".join(entry.includes) or "*"
        raise CroissantError(f"no file of {entry.id!r} is here: {patterns} below {folder}", "NOT_FOUND")
    return sorted(files, key=lambda pair: natural_key(pair[0]))


def _entry(metadata: Metadata, name: str) -> Resource:
    if name not in metadata.resources:
        raise CroissantError(f"`distribution` has no entry {name!r}", "NOT_FOUND")
    return metadata.resources[name]


def _inside(name: str) -> PurePosixPath:
    """A path relative to the folder; one that leaves it is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
        raise CroissantError(f"the path {name!r} leaves the folder of the metadata", "FORMAT")
    return path


def _file(metadata: Metadata, entry: Resource, folder: Path) -> Path:
    """The file of a FileObject, with its checksum compared."""
    root = folder if not entry.contained_in else _root(metadata, entry.contained_in[0], folder)
    address = urlsplit(entry.url)
    if address.scheme in ("http", "https"):
        names = [PurePosixPath(unquote(address.path)).name, entry.id]
    elif address.scheme and address.scheme != "file" and len(address.scheme) > 1:
        raise CroissantError(f"{entry.id!r} is at {entry.url!r}, an address of an unknown kind", "FORMAT")
    else:
        names = [entry.url or entry.id]
    paths = [root / _inside(name) for name in names if name]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        advice = f"Download it: {entry.url}" if address.scheme else None
        where = paths[0] if paths else root
        raise CroissantError(f"{entry.id!r} is not on this machine: {where} is missing.", "NOT_FOUND", advice)
    _refuse_outside(path, folder)
    _check(path, entry)
    return path


def _refuse_outside(path: Path, folder: Path) -> None:
    """Refuse a file or folder that a link leads out of the folder of the metadata."""
    if (out := leading_out(folder, path.relative_to(folder))) is not None:
        hint = "Put a copy of the file in its place."
        raise CroissantError(f"{out} is a link that leads out of the folder of the metadata.", "FORMAT", hint)


def _check(path: Path, entry: Resource) -> None:
    stat = path.stat()
    for kind, form in _DIGESTS.items():
        said = entry.sha256 if kind == "sha256" else entry.md5
        if said is None or form.fullmatch(said.strip()) is None:
            continue
        actual = _digest(path, kind, stat.st_size, stat.st_mtime_ns)
        if actual != said.strip().lower():
            message = f"{path} is not the file that the metadata describe: its {kind} is {actual}, not {said.strip()}."
            raise CroissantError(message, "CONFLICT", "Download it again, or update the metadata.")


@lru_cache(maxsize=1024)
def _digest(path: Path, kind: str, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _root(metadata: Metadata, container: str, folder: Path, depth: int = 0) -> Path:
    """The folder with the files of a container: of the metadata for a repository, the unpacked one for an archive."""
    if not container:
        return folder
    if depth > _DEEPEST:
        raise CroissantError(f"{container!r} contains itself")
    entry = _entry(metadata, container)
    outer = _root(metadata, entry.contained_in[0], folder, depth + 1) if entry.contained_in else folder
    if entry.encoding in _REPOSITORIES or entry.is_set:
        return outer
    name = PurePosixPath(unquote(urlsplit(entry.url).path)).name or entry.id
    if entry.encoding in _ARCHIVES or PurePosixPath(name).suffix in (".zip", ".tar", ".gz", ".tgz"):
        stem = re.sub(r"(\.tar)?\.[^.]+$", "", name)
        unpacked = outer / _inside(stem)
        if not unpacked.is_dir():
            hint = f"Unpack {name} into {unpacked}."
            raise CroissantError(f"archives are not read, and {unpacked} is missing.", "NOT_FOUND", hint)
        return unpacked
    path = outer / _inside(entry.url or entry.id)
    return path if path.is_dir() else outer


def _matching(metadata: Metadata, entry: Resource, container: str, folder: Path) -> Iterator[tuple[str, Path]]:
    root = _root(metadata, container, folder)
    _refuse_outside(root, folder)
    for path in root.rglob("*"):  # which follows no links to folders
        name = path.relative_to(root).as_posix()
        is_included = any(_matches(name, pattern) for pattern in entry.includes or ("*",))
        if is_included and not any(_matches(name, pattern) for pattern in entry.excludes) and path.is_file():
            _refuse_outside(path, folder)
            yield name, path


def _matches(name: str, pattern: str) -> bool:
    """As in mlcroissant: `*` matches any characters, also slashes."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))
