"""The run folder on disk. Every file in it is complete: written beside its place and renamed into it.

run.json                     what was run: settings, input, versions, signatures, part sizes, state
samples/part-00000.parquet   the checked samples
state/METRIC.bin             corpus statistics
scores/part-00000.parquet    one row a sample; its presence means that the part is finished
results.json                 the aggregates
lint.json                    what makes them doubtful
scratch/                     intermediate results, while the run is going
classification.json          classes, confusions and annotators, where the run is one of `mmeval clarity`
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import msgspec

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.sample import Sample

FORMAT = 1
LINT_FORMAT = 2
SCRATCH = "scratch"
_TEMPORARY = ".partial"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file and rename it: readers see the old file or the new, never half."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}{_TEMPORARY}")  # two workers may do the same work
    write(temporary)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_directory(path.parent)


def _sync_directory(folder: Path) -> None:
    """Make the rename itself last, where the system lets a directory be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def to_json(content: Any) -> bytes:
    """JSON as the run folder keeps it: indented, and the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


class RunFolder:
    """Reading and writing the parts of one run folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, info: Mapping[str, Any]) -> RunFolder:
        """Start a new run; an existing folder is never written over."""
        folder = cls(path)
        if folder.path.exists() and (not folder.path.is_dir() or folder._holds_something()):
            raise RunFolderError(
                f"{folder.path} exists already. Name another folder with -o, or continue it with --resume {folder.path}"
            )
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_info({"format": FORMAT, "state": "reading", **info})
        return folder

    def _holds_something(self) -> bool:
        return any(not item.name.endswith(_TEMPORARY) for item in self.path.iterdir())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against a second process; the lock goes with the process, however that ends."""
        try:
            import fcntl
        except ImportError:  # Windows has no such lock
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise RunFolderError(f"{self.path} is being worked on by another process") from None
        try:
            yield
        finally:
            os.close(handle)

    def discard(self) -> None:
        """Take the folder away again: its input was refused, so nothing of it is worth keeping."""
        shutil.rmtree(self.path)

    # run.json, results.json and lint.json

    def read_info(self) -> dict[str, Any]:
        """The content of run.json."""
        try:
            info = msgspec.json.decode((self.path / "run.json").read_bytes(), type=dict[str, Any])
        except (FileNotFoundError, NotADirectoryError):
            raise RunFolderError(f"{self.path} is no run folder: it has no run.json") from None
        except msgspec.DecodeError as error:
            raise RunFolderError(f"{self.path / 'run.json'} cannot be read: {error}") from None
        if info.get("format") != FORMAT:
            raise RunFolderError(f"{self.path} has format {info.get('format')}; this version reads format {FORMAT}")
        return info

    def write_info(self, info: Mapping[str, Any]) -> None:
        """Replace run.json."""
        write_atomically(self.path / "run.json", lambda path: path.write_bytes(to_json(info)))

    def read_results(self) -> dict[str, Any]:
        """The content of results.json."""
        file = self.path / "results.json"
        if not file.exists():
            raise RunFolderError(f"{self.path} is not finished. Continue it with: mmeval score --resume {self.path}")
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Replace results.json."""
        write_atomically(self.path / "results.json", lambda path: path.write_bytes(to_json(results)))

    def read_lint(self) -> dict[str, Any] | None:
        """The content of lint.json; None where it is missing, or from a version with other rules."""
        try:
            lint = msgspec.json.decode((self.path / "lint.json").read_bytes(), type=dict[str, Any])
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return lint if lint.get("format") == LINT_FORMAT else None

    def write_lint(self, lint: Mapping[str, Any]) -> None:
        """Replace lint.json."""
        write_atomically(self.path / "lint.json", lambda path: path.write_bytes(to_json(lint)))

    def read_classification(self) -> dict[str, Any] | None:
        """The content of classification.json; None where there is none."""
        try:
            return msgspec.json.decode((self.path / "classification.json").read_bytes(), type=dict[str, Any])
        except FileNotFoundError:
            return None

    def write_classification(self, report: Mapping[str, Any]) -> None:
        """Replace classification.json."""
        write_atomically(self.path / "classification.json", lambda path: path.write_bytes(to_json(report)))

    # parts

    def part(self, kind: Literal["samples", "scores"], number: int) -> Path:
        """Where a part lies."""
        return self.path / kind / f"part-{number:05d}.parquet"

    def write_part(self, kind: Literal["samples", "scores"], number: int, table: Any) -> None:
        """Commit a part."""
        import pyarrow.parquet as pq

        file = self.part(kind, number)
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, lambda path: pq.write_table(table, path, compression="zstd"))

    def read_part(self, kind: Literal["samples", "scores"], number: int, columns: list[str] | None = None) -> Any:
        """A part as a table; columns that it does not have are left out."""
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.part(kind, number)) as file:
                wanted = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
                return file.read(columns=wanted)
        except FileNotFoundError:
            raise RunFolderError(f"{self.part(kind, number)} is missing") from None

    def read_samples(self, number: int) -> list[Sample]:
        """The samples of a part."""
        from multimodal_eval.data.sample_table import to_samples

        return to_samples(self.read_part("samples", number))

    def committed(self, number: int) -> bool:
        """Whether a part is scored."""
        return self.part("scores", number).exists()

    def clear_samples(self) -> None:
        """Forget parts of an input that was not read to its end."""
        shutil.rmtree(self.path / "samples", ignore_errors=True)
        shutil.rmtree(self.path / "state", ignore_errors=True)
        self.clear_scratch()

    def clear_temporary(self) -> None:
        """Remove what an interrupted write left behind."""
        for leftover in self.path.rglob(f"*{_TEMPORARY}"):
            leftover.unlink()

    # what the work on a run leaves behind until it is done

    def write_pieces(self, name: str, pieces: Sequence[bytes]) -> None:
        """Keep some pieces in one file of the scratch folder: their ends, then one behind the other."""
        ends = accumulate(map(len, pieces))
        head = struct.pack(f"<{len(pieces) + 1}Q", len(pieces), *ends)
        file = self.path / SCRATCH / name
        file.parent.mkdir(exist_ok=True)
        temporary = file.with_name(f"{name}.{os.getpid()}{_TEMPORARY}")  # two workers may do the same work
        temporary.write_bytes(head + b"".join(pieces))
        temporary.replace(file)

    def read_piece(self, name: str, number: int) -> bytes | None:
        """One of the pieces; None where nothing was kept under that name."""
        try:
            with (self.path / SCRATCH / name).open("rb") as file:
                (count,) = struct.unpack("<Q", file.read(8))
                ends = (0, *struct.unpack(f"<{count}Q", file.read(8 * count)))
                file.seek(8 * (count + 1) + ends[number])
                return file.read(ends[number + 1] - ends[number])
        except FileNotFoundError:
            return None

    def clear_scratch(self) -> None:
        """Forget what is needed no more."""
        shutil.rmtree(self.path / SCRATCH, ignore_errors=True)

    # corpus statistics

    def state_path(self, metric: str) -> Path:
        """Where the state of a metric lies."""
        return self.path / "state" / f"{metric}.bin"

    def write_state(self, metric: str, write: Callable[[Path], object]) -> None:
        """Commit the state of a metric."""
        file = self.state_path(metric)
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, write)


def run_folders(parent: str | Path) -> Iterator[RunFolder]:
    """The run folders below a folder, by name, and those of a folder that holds several (a run a task)."""
    base = Path(parent)
    for path in sorted(base.iterdir()) if base.is_dir() else ():
        if (path / "run.json").is_file():
            yield RunFolder(path)
        elif path.is_dir():
            yield from (RunFolder(inner) for inner in sorted(path.iterdir()) if (inner / "run.json").is_file())
