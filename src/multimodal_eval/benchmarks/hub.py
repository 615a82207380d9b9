"""Fetch the data of a recipe from the Hugging Face hub, through the hub's own library (extra `hub`).

The library has accounts, mirrors ($HF_ENDPOINT), and continues what was interrupted. Here is what it does not have:
which files a recipe reads, one commit for all of them, their checksums, and the record of what was fetched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import file_digest, sha1
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from multimodal_eval.benchmarks.data_files import MANIFEST, Fetched, FetchedFile, folder_of
from multimodal_eval.benchmarks.recipes import Recipe
from multimodal_eval.benchmarks.task_format import UNVERIFIED, HubData, TaskData
from multimodal_eval.core.errors import ConfigError, FetchError, MissingPackageError
from multimodal_eval.core.system_files import replace
from multimodal_eval.resources.hub import hub_address

__all__ = ["Listing", "fetch_data", "listing"]

_TRANSPORTS = ("httpx", "httpx2", "requests")  # whose errors the versions of the library let through
_TREE = ".cache"  # where the library keeps what it needs to continue


@dataclass(frozen=True)
class _Listed:
    """A file as the hub lists it: its size, and its sha256 if it is large, or its git blob id."""

    size: int | None
    sha256: str | None
    blob_id: str | None


@dataclass(frozen=True)
class Listing:
    """The files of a recipe at one commit."""

    hub: HubData
    commit: str
    files: dict[str, _Listed]
    folder: Path  # of the fetched files

    @property
    def size(self) -> int:
        """The bytes of all files, as far as the hub says."""
        return sum(file.size or 0 for file in self.files.values())

    @property
    def is_here(self) -> bool:
        """Whether all files have been fetched."""
        return (self.folder / MANIFEST).is_file() and all(
            (self.folder / name).is_file() and file.size in (None, (self.folder / name).stat().st_size)
            for name, file in self.files.items()
        )


def listing(recipe: Recipe) -> Listing:
    """Ask the hub which files the recipe needs, and at which commit. Nothing is downloaded."""
    hub = recipe.task.data.hub if isinstance(recipe.task.data, TaskData) else None
    if hub is None:
        source = recipe.task.data.source if isinstance(recipe.task.data, TaskData) else None
        where = f"Get them from {source}, and" if source else "Get them as the recipe says, and"
        raise ConfigError(f"the data of {recipe.name} are not on the hub. {where} name your copy with --data DIR")
    with _asked(recipe, hub) as library:
        revision = None if hub.revision == UNVERIFIED else hub.revision
        info = library.HfApi(endpoint=hub_address()).dataset_info(
            hub.repository, revision=revision, files_metadata=True
        )
        commit, siblings = str(info.sha), info.siblings or []
    if hub.revision not in (UNVERIFIED, commit):
        raise FetchError(f"{hub.repository}: the hub has {commit} for the revision {hub.revision}")
    files = {file.rfilename: _of_sibling(file) for file in siblings if _is_wanted(file.rfilename, hub)}
    for name in files:
        if any(part in ("", "..", ".", _TREE) for part in name.split("/")) or "\\" in name or name == MANIFEST:
            raise FetchError(f"{hub.repository} lists a file with an unsafe name: {name!r}. Nothing was fetched")
    if not any(_matches(name, hub.files) for name in files):
        shown = ", ".join(sorted(file.rfilename for file in siblings)[:10]) or "none"
        raise FetchError(
            f"{hub.repository} has no files {hub.files} at {commit}. Its files: {shown}. If they were moved, copy the "
            f"recipe {recipe.file} and change `data.hub.files`"
        )
    return Listing(hub, commit, dict(sorted(files.items())), folder_of(hub) / commit)


def fetch_data(recipe: Recipe, listed: Listing, progress: Callable[[str, int, int], None]) -> Fetched:
    """Fetch the files. What is interrupted continues with the next call; nothing is in place before all is checked."""
    hub = listed.hub
    listed.folder.parent.mkdir(parents=True, exist_ok=True)
    staging = listed.folder.parent / f".fetching-{listed.commit}"
    entries: dict[str, FetchedFile] = {}
    with _asked(recipe, hub) as library:
        library.utils.disable_progress_bars()
        done = 0
        for name, file in listed.files.items():
            path = staging / name
            library.hf_hub_download(
                hub.repository,
                name,
                repo_type="dataset",
                revision=listed.commit,
                local_dir=staging,
                endpoint=hub_address(),
            )
            entries[name] = _checked(hub, name, path, file)
            done += entries[name].size
            progress(name, done, max(done, listed.size))
    rmtree(staging / _TREE, ignore_errors=True)
    if listed.folder.is_dir():  # an earlier fetch of other files of the same commit, or a damaged one
        earlier = _earlier(listed.folder)
        for name in entries:
            (listed.folder / name).parent.mkdir(parents=True, exist_ok=True)
            replace(staging / name, listed.folder / name)
        entries = {**earlier, **entries}
        rmtree(staging, ignore_errors=True)
        target = listed.folder
    else:
        target = staging
    now = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = Fetched(hub.repository, hub.revision, listed.commit, now, entries)
    written = target / f".{MANIFEST}-{os.getpid()}"
    written.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    replace(written, target / MANIFEST)
    if target != listed.folder:
        target.rename(listed.folder)
    return manifest


def _earlier(folder: Path) -> dict[str, FetchedFile]:
    try:
        return dict(msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Fetched).files)
    except (OSError, msgspec.DecodeError):
        return {}


def _is_wanted(name: str, hub: HubData) -> bool:
    return any(_matches(name, pattern) for pattern in (hub.files, *hub.also))


def _matches(name: str, pattern: str) -> bool:
    """Whether a file is one of a pattern, in which `*` is never a `/`."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _of_sibling(file: Any) -> _Listed:
    large = getattr(file, "lfs", None)
    if large is not None:
        return _Listed(large.size, large.sha256, None)
    return _Listed(file.size, None, file.blob_id)


def _checked(hub: HubData, name: str, path: Path, listed: _Listed) -> FetchedFile:
    """The size and the checksum of a file. One that is not as the hub, or the recipe, says is removed."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        sha256 = file_digest(stream, "sha256").hexdigest()
    faults = [
        f"{what} says {expected}, and the file has {got}"
        for what, expected, got in (
            ("the hub", listed.size, size),
            ("the hub", listed.sha256, sha256),
            ("the hub", listed.blob_id, _blob_id(path) if listed.blob_id else None),
            ("the recipe", hub.sha256.get(name), sha256),
        )
        if expected is not None and expected != got
    ]
    if faults:
        path.unlink()
        raise FetchError(f"{hub.repository}: {name} is corrupt: {faults[0]}. It was removed. Fetch it again")
    return FetchedFile(size, sha256)


def _blob_id(path: Path) -> str:
    content = path.read_bytes()
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@contextmanager
def _asked(recipe: Recipe, hub: HubData) -> Iterator[Any]:
    """The hub's library; its errors become ours, with what to do."""
    try:
        import huggingface_hub as library
        from huggingface_hub import errors
    except ImportError as error:
        raise MissingPackageError(
            f"fetching {recipe.name} needs the package {error.name}. Install it: pip install 'multimodal-eval[hub]'. "
            f"Or name a folder with a copy of {hub.repository}: --data DIR"
        ) from None
    where = f"{hub.repository} ({hub_address()})"
    try:
        yield library
    except errors.GatedRepoError:
        raise FetchError(
            f"{where} is for accounts that have accepted its terms. Accept them on its page, then log in with `hf auth "
            f"login` or set $HF_TOKEN, and fetch it again"
        ) from None
    except errors.RevisionNotFoundError:
        raise FetchError(f"{where} has no revision {hub.revision}") from None
    except errors.RepositoryNotFoundError:
        raise FetchError(
            f"{where} does not exist, or needs an account: log in with `hf auth login`, or set $HF_TOKEN"
        ) from None
    except FetchError:
        raise
    except Exception as fault:
        known = isinstance(fault, errors.HfHubHTTPError | errors.LocalEntryNotFoundError | OSError)
        if not known and type(fault).__module__.partition(".")[0] not in _TRANSPORTS:
            raise
        cause = str(fault.__cause__ or fault).strip().splitlines()[0]
        raise FetchError(
            f"{where} could not be read: {cause}. What was fetched is kept: fetch it again to continue, or name a "
            "folder with a copy: --data DIR"
        ) from fault
