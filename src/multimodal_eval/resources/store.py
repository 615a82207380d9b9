"""The folders of fetched resources, and access to their files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path

from multimodal_eval.core.errors import FetchError, UnavailableError
from multimodal_eval.resources.catalogue import File, Packaged, Resource, get_resource


def home() -> Path:
    """$MMEVAL_HOME, or the user's cache folder."""
    chosen = os.environ.get("MMEVAL_HOME")
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "multimodal-eval"


def folder_of(resource: Resource) -> Path:
    """The folder of a resource, whether it is fetched or not."""
    if isinstance(resource.source, Packaged):
        return Path(__file__).parents[1] / resource.source.folder
    return home() / "resources" / f"{resource.name}-{resource.fingerprint}"


def is_here(resource: Resource) -> bool:
    """Whether every file is present with its full size. Checksums are checked by `fetch` and `verify`."""
    return _is_complete(resource, folder_of(resource))


def _is_complete(resource: Resource, folder: Path) -> bool:
    paths = [(folder / file.name, file.size) for file in resource.files]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def folder_with(resource: Resource) -> Path | None:
    """The folder with the files, fetched or in an installed package; None if they are not on this machine."""
    folders = [folder_of(resource)]
    if resource.installed:
        folders += [Path(entry) / resource.installed for entry in sys.path]
    return next((folder for folder in folders if _is_complete(resource, folder)), None)


def resource_file(name: str, file: str) -> Path:
    """A file of a resource, or an error that says how to fetch it."""
    resource = get_resource(name)
    if not is_here(resource):
        raise UnavailableError(f"{resource.about}: not on this machine. Get it with: mmeval fetch {name}")
    return folder_of(resource) / file


def move_into_place(staging: Path, target: Path, is_whole: Callable[[], bool]) -> None:
    """Rename a finished folder, whose parent is temporary, to its place.

    Another process may have done so meanwhile: its copy stays if it is whole. A damaged one goes with the temporary
    folder.
    """
    if is_whole():
        return
    with suppress(FileNotFoundError):
        target.rename(staging.with_name("replaced"))
    try:
        staging.rename(target)
    except OSError:
        if not is_whole():
            raise


def verify(resource: Resource, folder: Path | None = None) -> None:
    """Check every checksum, including those of derived files; a wrong one is an error."""
    root = folder or folder_of(resource)
    derived = [file for file in resource.derived if (root / file.name).exists()]
    for file in (*resource.files, *derived):
        check_file(resource, file, root / file.name)


def check_file(resource: Resource, file: File, path: Path) -> None:
    """Refuse a file whose checksum differs."""
    if not path.is_file():
        raise FetchError(f"{resource.name}: the file {file.name} is missing")
    with path.open("rb") as stream:
        sha256 = file_digest(stream, "sha256").hexdigest()
    if sha256 != file.sha256:
        raise FetchError(f"{resource.name}: {file.name} must have the checksum {file.sha256}. Got {sha256} instead.")
