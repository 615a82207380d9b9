"""Checksums of the files of a run folder, so that damage is noticed instead of changing a score.

A JSON file ends with the sha256 of everything before it. The sha256 of all other data files are in manifest.json, whose
own sha256 is in results.json. Those of exchanges/ are in exchanges.json, because exchanges contain times: all other
files of two runs with the same answers are equal. Until a run is finished, the checksum of each file is in a small file
below checksums/, which is written just before the file itself: a file whose writing was interrupted never counts as
complete.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import IO, Any

import msgspec

from multimodal_eval.core.errors import DamagedFileError, MissingFileError
from multimodal_eval.core.records import CHECKED_FORMAT, RUN_FORMAT, Manifest, read_manifest, run_format, to_json
from multimodal_eval.data.runs.storage import TEMPORARY, LocalStorage, Storage, Write

MANIFEST, RESULTS = "manifest.json", "results.json"
FOLDER = "checksums"
EXCHANGES = "exchanges.json"
HUMAN = "human.json"
DATA_FOLDERS = ("samples", "media", "answers", "exchanges", "verdicts", "scores", "state")
_NOT_DATA = (TEMPORARY, ".jsonl")  # the journal of generation
_SEAL = re.compile(rb',\n  "sha256": "([0-9a-f]{64})"\n}\n\Z')
_END = b"\n}\n"
_DIFFERS = "is damaged and cannot be read: its checksum differs"
_MOST_CHECKED = 200_000
# Local files that agree with their checksum, by path, inode, size, time and checksum: each is read once per process.
_checked: set[tuple[object, ...]] = set()


def sha256(content: Any) -> str:
    """The checksum of bytes or of an Arrow buffer."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sealed(content: bytes, manifest: str | None = None) -> bytes:
    """The JSON of an object with its checksum at the end, after that of the manifest if there is one."""
    body = content.removesuffix(_END)
    if manifest is not None:
        body += b',\n  "manifest": "%s"' % manifest.encode()
    return body + b',\n  "sha256": "%s"' % sha256(body).encode() + _END


def is_intact(content: bytes) -> bool | None:
    """Whether JSON agrees with the checksum at its end; None if there is none."""
    seal = _SEAL.search(content, max(0, len(content) - 128))
    return None if seal is None else seal[1].decode() == sha256(content[: seal.start()])


class _Finished(msgspec.Struct):
    finished: str | None = None


class _Seal(msgspec.Struct):
    manifest: str | None = None


class _Human(msgspec.Struct):
    human: dict[str, str] = {}


class _Calibrated(msgspec.Struct):
    config: _Human
    rescored_from: str | None = None


class Checksums:
    """Notes and compares the checksums of the files in one folder."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._written: dict[str, str] = {}  # by this object
        self._manifest: Manifest | None = None
        self._is_loaded = False
        self._compared: set[str] = set()  # files that are not local

    # JSON files

    def read_json(self, name: str) -> bytes:
        """A JSON file that agrees with its checksum. Files of earlier versions have none."""
        content = self._storage.read_bytes(name)
        intact = is_intact(content)
        if intact is None:
            version = run_format(content) if name == "run.json" else self._format()
            intact = not CHECKED_FORMAT <= version <= RUN_FORMAT
        if not intact:
            raise self.damaged(name)
        return content

    def write_json(self, name: str, record: object, manifest: str | None = None) -> str:
        """Write a JSON file with its checksum at the end. Returns the checksum of the whole file."""
        content = sealed(to_json(record), manifest)
        self._storage.write_bytes(name, content)
        return sha256(content)

    def _format(self) -> int:
        """The format of the run; 0 without a run.json."""
        try:
            return run_format(self._storage.read_bytes("run.json"))
        except MissingFileError:
            return 0

    def damaged(self, name: str, problem: str = _DIFFERS) -> DamagedFileError:
        """The error for a damaged file, with what to do."""
        advice = f"Recompute it with: mmeval score --resume {quote(self._storage.label)}"
        if name == "run.json":
            advice = "Restore it from a copy, or score the samples again"
        elif name == HUMAN:
            advice = f"Restore it from a copy, or make the run again, with the file of labels: {self._calibration()}"
        return DamagedFileError(self._storage.label, name, problem, advice)

    def _calibration(self) -> str:
        """The command that makes a run with human labels, as far as run.json says: it does not name their file."""
        made = msgspec.json.decode(self.read_json("run.json"), type=_Calibrated)
        metrics = ",".join(metric for metric, column in made.config.human.items() if column == HUMAN)
        old, new = quote(made.rescored_from or "RUN"), quote(self._storage.label)
        return f"mmeval judge calibrate {old} --human LABELS --metrics {metrics} -o {new} --overwrite"

    # other files

    def write(self, name: str, write: Write, before_change: Callable[[str], None] | None = None) -> None:
        """Write a file. Its checksum is noted before the file gets its name, and this process need not compare it.

        `before_change` is called with the name of a file that is about to get another content than it had before.
        """

        def write_and_note(path: Path) -> None:
            write(path)
            digest = sha256_of_file(path)
            if before_change is not None and self.known(name) not in (None, digest):
                before_change(name)
            self.note(name, digest)

        self._storage.write(name, write_and_note)
        self._remember(name, self._written[name])

    def note(self, name: str, digest: str) -> None:
        """Store the checksum of a file that will be written next."""
        self._written[name] = digest
        self._storage.write_bytes(_note_of(name), digest.encode(), is_temporary=True)

    def note_all(self) -> None:
        """Store the checksums of all files as they are now."""
        for name in self.data_files():
            self.note_current(name)

    def note_current(self, name: str) -> None:
        """Store the checksum of a file as it is now."""
        self.note(name, self._current(name))

    def check(self, name: str) -> None:
        """Raise an error if a file differs from its checksum. A file that did not change is not read again."""
        with self.opened(name):
            pass

    @contextmanager
    def opened(self, name: str) -> Iterator[Path | IO[bytes]]:
        """A checked file: its path, or a file object."""
        if isinstance(self._storage, LocalStorage):
            with self.local_copy(name) as path:
                yield path
        elif name in self._compared:
            with self._storage.open(name) as file:
                yield file
        else:
            with self._present(name):
                content = self._storage.read_bytes(name)
            self._compare(name, sha256(content), self._expected(name))
            yield BytesIO(content)

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """A checked file as a local path. One that did not change since this process has compared it is not read."""
        with self._present(name), self._storage.local_copy(name) as path:
            if not self._storage.defers:
                expected = self._expected(name)
                if not any(self._identity(name, digest) in _checked for digest in expected):
                    self._compare(name, sha256_of_file(path), expected)
            yield path

    def copied(self, name: str, source: Checksums) -> None:
        """Store the checksum of a file that will be copied from another run, after comparing it there."""
        source.check(name)
        self.note(name, source.newest(name))

    @contextmanager
    def _present(self, name: str) -> Iterator[None]:
        try:
            yield
        except MissingFileError as missing:
            if str(missing).endswith("is missing") and self._expected(name):
                raise MissingFileError(
                    f"{missing}. Recompute it with: mmeval score --resume {quote(self._storage.label)}"
                ) from None
            raise

    def _compare(self, name: str, digest: str, expected: Collection[str]) -> None:
        """Raise an error if the checksum of a file is not one of those expected."""
        if digest not in expected:
            self._is_loaded = False  # another process may have written the manifest since, and removed the notes
            expected = [*expected, *self._expected(name)]
        if digest not in expected:
            if expected:
                raise self.damaged(name)
            if self._format() >= CHECKED_FORMAT:
                raise self.damaged(name, "has no checksum")
        self._remember(name, digest)

    def _expected(self, name: str) -> list[str]:
        """The checksums that a file may have, the newest last: of this object, in the manifest, and in its note.

        Another process may have written the file after this object.
        """
        manifest = self.manifest()
        if name.startswith("exchanges/"):
            manifest = self._read_manifest(EXCHANGES)
        digests = [self._written.get(name), None if manifest is None else manifest.files.get(name), self._noted(name)]
        return [digest for digest in digests if digest is not None]

    def _noted(self, name: str) -> str | None:
        try:
            return self._storage.read_bytes(_note_of(name)).decode(errors="replace")
        except MissingFileError:
            return None

    def _identity(self, name: str, digest: str) -> tuple[object, ...] | None:
        if not isinstance(self._storage, LocalStorage):
            return None
        path = self._storage.path / name
        try:
            status = path.stat()
        except OSError:
            return None
        return (str(path.absolute()), status.st_ino, status.st_size, status.st_mtime_ns, digest)

    def _remember(self, name: str, digest: str) -> None:
        identity = self._identity(name, digest)
        if identity is None:
            self._compared.add(name)
            return
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        _checked.add(identity)

    # manifest.json

    def manifest(self) -> Manifest | None:
        """The content of manifest.json, if it is the one that results.json names; None if there is none."""
        if not self._is_loaded:
            self._manifest = self._read_manifest(MANIFEST, self.named_manifest())
            self._is_loaded = True
        return self._manifest

    def _read_manifest(self, name: str, digest: str | None = None) -> Manifest | None:
        """manifest.json or exchanges.json; None if there is none. `digest` is its checksum, if another file has it."""
        try:
            content = self._storage.read_bytes(name)
        except MissingFileError:
            if digest is not None:
                raise self.damaged(name, "is missing") from None
            return None
        if not is_intact(content) or digest not in (None, sha256(content)):
            raise self.damaged(name)
        return read_manifest(content, self._storage.label)

    def named_manifest(self) -> str | None:
        """The checksum of manifest.json in results.json; None if there is none, or if the run is computed again."""
        try:
            content = self._storage.read_bytes(RESULTS)
            if not self._is_finished():
                return None
        except MissingFileError:
            return None
        try:
            return msgspec.json.decode(content, type=_Seal).manifest if is_intact(content) else None
        except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError):
            raise self.damaged(RESULTS, "is not valid JSON") from None

    def _is_finished(self) -> bool:
        """Whether run.json says so. If it cannot be read, whatever else is there must agree."""
        try:
            return msgspec.json.decode(self._storage.read_bytes("run.json"), type=_Finished).finished is not None
        except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError):
            return True

    def record(self) -> str:
        """Write manifest.json with the checksums of all data files, and return the checksum of the manifest."""
        files = {name: self.newest(name) for name in self.data_files()}
        exchanges = {name: files.pop(name) for name in list(files) if name.startswith("exchanges/")}
        if exchanges:
            self.write_json(EXCHANGES, Manifest(files=exchanges))
        manifest = Manifest(files=files)
        digest = self.write_json(MANIFEST, manifest)
        self._manifest, self._is_loaded = manifest, True
        self._storage.remove(FOLDER)
        return digest

    def record_as_is(self) -> str:
        """Write manifest.json with the checksums of all data files as they are now, and return its checksum."""
        self._manifest = Manifest(files={name: self._current(name) for name in self.data_files()})
        self._storage.remove(FOLDER)
        return self.record()

    def known(self, name: str) -> str | None:
        """The checksum that a file should have, as far as it is known."""
        return next(reversed(self._expected(name)), None)

    def _current(self, name: str) -> str:
        with self._storage.local_copy(name) as path:
            return sha256_of_file(path)

    def newest(self, name: str) -> str:
        """The checksum of a file: as it was noted, or else as it is."""
        manifest = self._read_manifest(EXCHANGES) if name.startswith("exchanges/") else self._manifest
        recorded = None if manifest is None else manifest.files.get(name)
        digest = self._noted(name) or recorded
        return digest or self._current(name)  # of a version without checksums

    def data_files(self) -> list[str]:
        """The files that the manifests cover."""
        return [
            f"{folder}/{name}"
            for folder in DATA_FOLDERS
            for name in self._storage.names(folder)
            if not name.endswith(_NOT_DATA)
        ]

    def forget_manifest(self) -> None:
        """Remove manifest.json, which does not agree with its checksum."""
        self._storage.remove(MANIFEST)
        self._manifest, self._is_loaded = None, True


def _note_of(name: str) -> str:
    return f"{FOLDER}/{name.replace('/', '.')}"
