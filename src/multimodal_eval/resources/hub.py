"""Models of the Hugging Face hub, fetched once with recorded checksums, or found in the cache of the hub's library.

Names are `hf:ORG/NAME` or `hf:ORG/NAME@REVISION`. Only weight formats without code are fetched. Fetched models are in
`$MMEVAL_HOME/hub/ORG--NAME`: `snapshots/COMMIT` with a manifest, and `refs/REVISION` with the revision's commit.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha1
from pathlib import Path
from typing import IO
from urllib.parse import quote
from uuid import uuid4

import msgspec

from multimodal_eval.core.errors import FetchError
from multimodal_eval.core.system_files import replace
from multimodal_eval.resources.catalogue import ONNX_TOWERS, UNSAFE, WEIGHTS, File
from multimodal_eval.resources.store import home, is_intact, move_into_place

PREFIX = "hf:"
MANIFEST = "mmeval-manifest.json"
_SETTINGS = (".json", ".txt", ".model")
_NAME = re.compile(r"(?P<repository>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>(?!/)[\w./-]+))?")
_PLAIN = re.compile(r"(?!\.{1,2}$)[^\\/:\x00-\x1f]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST_ANSWER = 20_000_000
_WITH_ACCOUNT = "what the hub's own program has downloaded is used from its cache: `hf download"


@dataclass(frozen=True, slots=True)
class HubModel:
    """A repository and the requested revision."""

    repository: str
    revision: str = "main"

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit, which never changes."""
        return _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        return PREFIX + self.repository + ("" if self.revision == "main" else f"@{self.revision}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model's files at one commit."""

    folder: Path
    commit: str


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file as the hub lists it, with its sha256 if it is large, or its git blob id if it is small."""

    size: int
    checksum: str
    by_git: bool


class _LargeFile(msgspec.Struct, frozen=True):
    """A file in the hub's large-file storage."""

    size: object = None
    sha256: object = None


class _Sibling(msgspec.Struct, frozen=True):
    """A file in the hub's answer. Only its name is guaranteed."""

    rfilename: str
    size: object = None
    blob_id: object = msgspec.field(name="blobId", default=None)
    lfs: object = None


class _Answer(msgspec.Struct, frozen=True):
    """The hub's answer about a revision."""

    siblings: list[_Sibling]
    sha: object = None


class _ManifestFile(msgspec.Struct, frozen=True):
    """A fetched file in the manifest."""

    sha256: str
    size: int


class _Manifest(msgspec.Struct, frozen=True):
    """The record of what was fetched, stored next to the files."""

    repository: str
    revision: str
    commit: str
    files: dict[str, _ManifestFile]

    @classmethod
    def read(cls, path: Path) -> _Manifest:
        """Read the manifest from a file."""
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as fault:
            advice = f"Remove the folder {path.parent} and fetch the model again"
            raise FetchError(f"the manifest {path} cannot be read: {fault}. {advice}") from None
        if not all(_is_plain(name) for name in manifest.files):
            raise FetchError(f"the manifest {path} names a file outside its folder")
        return manifest

    def write(self, path: Path) -> None:
        """Write the manifest to a file."""
        path.write_text(json.dumps(msgspec.to_builtins(self), indent=1) + "\n", encoding="utf-8")


def hub_model(name: str) -> HubModel | None:
    """The model of a name ORG/NAME, with or without `hf:` and a revision; None if the name has another form."""
    match = _NAME.fullmatch(name.removeprefix(PREFIX))
    if match is None or ".." in name:
        if name.startswith(PREFIX):
            raise FetchError(f"{name!r} must be written hf:ORG/NAME or hf:ORG/NAME@REVISION")
        return None
    return HubModel(match["repository"], match["revision"] or "main")


def find_snapshot(model: HubModel) -> Snapshot | None:
    """The model's files, fetched by mmeval or in the cache of the hub's library; nothing is downloaded or changed."""
    for root in (_folder(model), _library_cache() / f"models--{model.repository.replace('/', '--')}"):
        commit = _commit_of(root, model.revision)
        folder = root / "snapshots" / commit if commit else None
        if folder is not None and any(path.suffix in WEIGHTS for path in folder.rglob("*")):
            return Snapshot(folder, commit)
    return None


def fetch_from_hub(model: HubModel, progress: Progress = lambda name, done, total: None) -> Snapshot:
    """Fetch and check the files of the revision that are needed. An interrupted fetch leaves nothing behind."""
    answer = _asked(model)
    commit, files = _commit(model, answer), _chosen(model, answer)
    root = _folder(model)
    target = root / "snapshots" / commit
    if not _complete(target, files):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=root) as scratch:
            staging = Path(scratch) / "files"
            entries = {name: _fetched(model, commit, name, listed, staging, progress) for name, listed in files.items()}
            manifest = _Manifest(model.repository, model.revision, commit, entries)
            manifest.write(staging / MANIFEST)
            move_into_place(staging, target, lambda: _complete(target, files))
    reference = root / "refs" / quote(model.revision, safe="")
    reference.parent.mkdir(parents=True, exist_ok=True)
    written = reference.with_name(f".{reference.name}-{uuid4().hex}")
    written.write_text(commit, encoding="ascii")
    replace(written, reference)  # at once: another process may read it
    return Snapshot(target, commit)


def recorded_digests(snapshot: Snapshot) -> dict[str, str] | None:
    """The SHA-256 of each file as it was fetched; None if mmeval did not fetch the snapshot."""
    path = snapshot.folder / MANIFEST
    return {name: entry.sha256 for name, entry in _Manifest.read(path).files.items()} if path.is_file() else None


def recorded_files(folder: Path) -> list[File]:
    """The files of a fetched snapshot with their sizes and checksums."""
    files = _Manifest.read(folder / MANIFEST).files
    return [File(name, name, entry.sha256, entry.size) for name, entry in files.items()]


def fetched_snapshots() -> list[tuple[HubModel, Path]]:
    """Every model that mmeval has fetched, in any revision."""
    manifests = sorted((home() / "hub").glob(f"*/snapshots/*/{MANIFEST}"))
    return [(_fetched_model(path.parent), path.parent) for path in manifests]


def _fetched_model(folder: Path) -> HubModel:
    """The model in the folder of a snapshot, as `mmeval fetch` names it."""
    repository = folder.parents[1].name.replace("--", "/", 1)
    main = folder.parents[1] / "refs" / "main"
    is_main = main.is_file() and main.read_text(encoding="utf-8").strip() == folder.name
    return HubModel(repository) if is_main else HubModel(repository, folder.name)


def _folder(model: HubModel) -> Path:
    return home() / "hub" / model.repository.replace("/", "--")


def _library_cache() -> Path:
    """The cache folder of huggingface_hub."""
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HF_HOME") or cache / "huggingface") / "hub"


def _commit_of(root: Path, revision: str) -> str:
    if _COMMIT.fullmatch(revision) and (root / "snapshots" / revision).is_dir():
        return revision
    for reference in (root / "refs" / quote(revision, safe=""), root / "refs" / revision):
        if reference.is_file():
            commit = reference.read_text(encoding="utf-8").strip()
            return commit if _COMMIT.fullmatch(commit) else ""
    return ""


def _asked(model: HubModel) -> _Answer:
    url = f"{hub_address()}/api/models/{model.repository}/revision/{quote(model.revision, safe='')}?blobs=true"
    try:
        with reading(url, str(model)) as stream:
            answer = json.loads(stream.read(_LARGEST_ANSWER))
    except FetchError as fault:
        refusal = fault.__cause__
        if not isinstance(refusal, urllib.error.HTTPError):
            raise
        reason = {
            401: f"the model does not exist or needs an account; {_WITH_ACCOUNT} {model.repository}`",
            403: f"the model needs an account; {_WITH_ACCOUNT} {model.repository}`",
            404: "not found",
        }
        raise FetchError(
            f"{model}: {reason.get(refusal.code, refusal.reason)} ({url} answers {refusal.code})"
        ) from None
    try:
        return msgspec.convert(answer, _Answer)
    except msgspec.ValidationError:
        raise FetchError(f"{model}: {url} does not list the model's files") from None


def _commit(model: HubModel, answer: _Answer) -> str:
    if not isinstance(answer.sha, str) or not _COMMIT.fullmatch(answer.sha):
        raise FetchError(f"{model}: the hub must name a commit. Got {answer.sha!r} instead.")
    return answer.sha


def _chosen(model: HubModel, answer: _Answer) -> dict[str, _Listed]:
    """Settings and weights: safetensors at the top level if there are any, else the towers as ONNX, else GGUF."""
    files = {entry.rfilename: entry for entry in answer.siblings}
    for name in files:
        _refuse_unsafe(model, name)
    settings = [name for name in files if name.endswith(_SETTINGS) or name.upper().startswith(("LICENSE", "NOTICE"))]
    for weights in (
        [name for name in files if name.endswith(".safetensors") and "/" not in name],
        _towers(files),
        [name for name in files if name.endswith(".gguf")],
    ):
        if weights:
            return {name: _listed(model, files[name]) for name in sorted({*settings, *weights})}
    unsafe = [name for name in files if name.endswith(UNSAFE)]
    if unsafe:
        raise FetchError(
            f"{model} has weights only as {', '.join(unsafe[:3])}, which may run code when opened. Convert them to "
            f"safetensors, or name a revision that has safetensors: {PREFIX}{model.repository}@refs/pr/NUMBER"
        )
    raise FetchError(f"{model} has no weights as {', '.join(WEIGHTS)}")


def _towers(names: Collection[str]) -> list[str]:
    """Both towers, with the external data files of large ones."""
    for pattern in ONNX_TOWERS:
        towers = [pattern.format(tower) for tower in ("text", "vision")]
        if all(tower in names for tower in towers):
            return [name for tower in towers for name in (tower, f"{tower}_data") if name in names]
    return []


def _listed(model: HubModel, entry: _Sibling) -> _Listed:
    """The file's size and checksum, without which it cannot be checked."""
    name, by_git = entry.rfilename, not isinstance(entry.lfs, dict)
    large = _LargeFile() if by_git else msgspec.convert(entry.lfs, _LargeFile)
    size, checksum = (entry.size, entry.blob_id) if by_git else (large.size, large.sha256)
    if type(size) is not int or size < 0:
        raise FetchError(f"{model}: the hub does not list the size of {name}. Nothing was fetched")
    if not isinstance(checksum, str) or not (_COMMIT if by_git else _SHA256).fullmatch(checksum):
        raise FetchError(f"{model}: the hub lists no checksum of {name}. Nothing was fetched")
    return _Listed(size, checksum, by_git)


def _refuse_unsafe(model: HubModel, name: str) -> None:
    """Refuse a name that leads out of the folder, or that of our manifest."""
    if name.lower() == MANIFEST or not _is_plain(name):
        raise FetchError(f"{model} lists a file with an unsafe name: {name!r}. Nothing was fetched")


def _is_plain(name: str) -> bool:
    """Whether a name is a path inside the folder."""
    return all(_PLAIN.fullmatch(part) for part in name.split("/"))


def _complete(folder: Path, files: Collection[str]) -> bool:
    path = folder / MANIFEST
    if not path.is_file():
        return False
    try:
        known = _Manifest.read(path).files
    except FetchError:
        return False
    return set(files) <= set(known) and is_intact(folder, recorded_files(folder))


def _fetched(
    model: HubModel, commit: str, name: str, listed: _Listed, staging: Path, progress: Progress
) -> _ManifestFile:
    """Fetch one file and check it."""
    url = f"{hub_address()}/{model.repository}/resolve/{commit}/{quote(name)}"
    with reading(url, str(model)) as stream:
        copy_checked(stream, staging / name, File(name, name, "", listed.size), progress)
    sha256 = _sha256(staging / name)
    checksum = _git_blob_id(staging / name) if listed.by_git else sha256
    if checksum != listed.checksum:
        raise FetchError(f"{model}: {name} must have the checksum {listed.checksum}. Got {checksum} instead.")
    return _ManifestFile(sha256, listed.size)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _git_blob_id(path: Path) -> str:
    content = path.read_bytes()
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


# Downloads: the address of the Hugging Face hub, one error type, checked sizes.

TIMEOUT = 60
_CHUNK = 1 << 20

# (file, bytes done, total bytes)
Progress = Callable[[str, int, int], None]


def hub_address() -> str:
    """$HF_ENDPOINT, as in the hub's own library, or the public hub."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


@contextmanager
def reading(url: str, who: str) -> Iterator[IO[bytes]]:
    """The stream of a URL. A connection that breaks while it is read is a FetchError too."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as stream:
            yield stream
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise FetchError(f"{who}: {url} could not be read: {fault or type(fault).__name__}") from fault


def copy_checked(stream: IO[bytes], target: Path, file: File, progress: Progress) -> None:
    """Copy with progress. More bytes than expected are refused immediately, fewer at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with target.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            done += len(chunk)
            if done > file.size:
                raise FetchError(f"{file.name} is larger than the expected {file.size:,} bytes")
            out.write(chunk)
            progress(file.name, done, file.size)
    if done != file.size:
        raise FetchError(f"{file.name} ended after {done:,} of {file.size:,} bytes")
