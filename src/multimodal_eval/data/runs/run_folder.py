"""The run folder, on a disk or at a URL: see `run_content` for its files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar
from weakref import WeakMethod

import msgspec

from multimodal_eval.core import records
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import DamagedFileError, MissingFileError, RunFolderError
from multimodal_eval.core.judge_records import JudgesReport
from multimodal_eval.core.machine import cores
from multimodal_eval.core.records import LintReport, Results, RunInfo, info_faults, refuse_faults, result_faults
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs import checksums, run_content
from multimodal_eval.data.runs.checksums import EXCHANGES, MANIFEST, RESULTS, Checksums
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_content import (
    REPLACED,
    SCRATCH,
    Kind,
    faults_named,
    is_content,
    packed,
    part_name,
    piece_of,
    to_parquet,
)
from multimodal_eval.data.runs.storage import (
    TEMPORARY,
    LocalStorage,
    Location,
    TemporaryStorage,
    Write,
    below,
    storage_at,
)

__all__ = ["Fault", "faults"]

T = TypeVar("T")

_SMALL = 1 << 24  # bytes of a part that may stay in memory


class RunFolder:
    """Reads and writes the files of one run folder: a path, or a URL that fsspec supports.

    It can be pickled: another process receives the address and opens the folder itself.
    """

    def __init__(self, location: Location, *, is_durable: bool = True) -> None:
        self.storage = storage_at(location, is_durable=is_durable)
        self.location = self.storage.location  # as it was given: a path or a URL
        self.label = self.storage.label  # the location, for messages
        self.is_kept = is_durable  # a temporary folder is removed with its run
        self._was_there = False
        # Called with the name of a part that is about to get another content than it had before.
        self.before_change: Callable[[str], None] | None = None
        self._single: dict[Kind, Any] = {}  # the only part, if this object has written it: it need not be read again
        self.checksums = Checksums(self.storage)
        if isinstance(self.storage, TemporaryStorage):  # weak: large tables are freed at once
            self.storage.after_sync = WeakMethod(self._add_checksums)

    def __reduce__(self) -> tuple[type[RunFolder], tuple[str]]:
        return RunFolder, (self.address,)

    @classmethod
    def create(
        cls, location: Location, info: RunInfo, *, is_durable: bool = True, overwrite: bool | None = None
    ) -> RunFolder:
        """Create the folder of a new run, like `created`, without keeping it locked."""
        with cls.created(location, info, is_durable=is_durable, overwrite=overwrite) as folder:
            return folder

    @classmethod
    @contextmanager
    def created(
        cls, location: Location, info: RunInfo, *, is_durable: bool = True, overwrite: bool | None = None
    ) -> Iterator[RunFolder]:
        """The folder of a new run, locked before anything is written: of several processes, one gets the folder.

        An existing folder is an error, unless it is empty, or a run that `overwrite` replaces. The old run is kept
        aside until all samples of the new one are scored. None is False, but messages do not offer it.
        """
        folder = cls(location, is_durable=is_durable)
        folder._refuse_taken(overwrite)
        with folder.storage.made() as is_new:
            if not is_new:
                folder.refuse_links_out()
            if folder._refuse_taken(overwrite):  # again: another process may have been faster
                folder._set_aside()
            folder._was_there = not is_new
            folder.write_info(info)
            yield folder

    def _refuse_taken(self, overwrite: bool | None) -> bool:
        """Whether there is a run to replace. Only a run folder may be replaced."""
        if not self.storage.is_taken():
            return False
        if not overwrite:
            raise RunFolderError(self._is_taken(offers_overwriting=overwrite is not None))
        try:
            self.read_info()
        except RunFolderError as error:
            if not isinstance(error, DamagedFileError):
                raise RunFolderError(f"only a run folder can be overwritten: {error}") from None
        return True

    def _is_taken(self, *, offers_overwriting: bool) -> str:
        if not self.storage.exists("run.json"):
            return f"{self.label} already exists and is not a run folder. Name another folder with -o"
        resume = f"continue it with: mmeval {self._command()} --resume {quote(self.label)}"
        if offers_overwriting:
            return f"{self.label} already exists. Name another folder with -o, replace it with --overwrite, or {resume}"
        return f"{self.label} already exists. Name another folder with -o, or {resume}"

    def _command(self) -> str:
        """The command that continues the run in this folder."""
        try:
            return self.read_info().command
        except RunFolderError:
            return "score"

    def _set_aside(self) -> None:
        """Move the run in this folder to a subfolder."""
        self.storage.remove(REPLACED)  # of a process that was killed
        for name in self.storage.names():
            if is_content(name):
                self.storage.move(name, f"{REPLACED}/{name}")

    @property
    def address(self) -> str:
        """The location, valid in any working directory: an absolute path or a URL."""
        return self.storage.address

    @property
    def is_shared(self) -> bool:
        """Whether other processes can open the folder; one in this process's memory cannot be shared."""
        return self.storage.is_shared

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.storage.name

    @property
    def path(self) -> Path:
        """The folder on this machine; one at a URL has none."""
        return self._local.path

    @property
    def _local(self) -> LocalStorage:
        if not isinstance(self.storage, LocalStorage):
            raise RunFolderError(f"{self.label} is not a folder on this machine and has no path; use `location`")
        self.storage.sync()
        return self.storage

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against a second process, to change it; at a URL there is no lock."""
        with self.storage.locked():
            self.refuse_links_out()  # before the first change: a refused folder is as it was
            yield

    def refuse_links_out(self) -> None:
        """Refuse a run with a link, at any depth, that leads out of its folder."""
        self.storage.refuse_links_out(lambda name: is_content(name) or name == REPLACED)

    def journal(self, name: str) -> Journal:
        """A file of this folder that records are appended to."""
        return Journal(self._local.place_to_change(name))

    def discard(self, *, was_there: bool = False) -> None:
        """Remove the run, because its input was refused. A folder that was there before stays, with its old run."""
        if not (was_there or self._was_there):
            self.storage.remove_all()
            return
        for name in self.storage.names():
            if is_content(name):
                self.storage.remove(name)
        for name in self.storage.names(REPLACED):
            self.storage.move(f"{REPLACED}/{name}", name)
        self.storage.remove(REPLACED)

    # run.json, results.json and lint.json

    def read_info(self) -> RunInfo:
        """The content of run.json."""
        try:
            content = self.checksums.read_json("run.json")
        except MissingFileError:
            raise RunFolderError(f"{self.label} is not a run folder: it has no run.json") from None
        info = records.read_run_info(content, self.label)
        refuse_faults(f"{self.label}/run.json", info_faults(info))
        return info

    def write_info(self, info: RunInfo) -> None:
        """Replace run.json."""
        self.checksums.write_json("run.json", info)

    def read_results(self) -> Results:
        """The content of results.json."""
        try:
            content = self.checksums.read_json(checksums.RESULTS)
        except MissingFileError:
            raise RunFolderError(
                f"{self.label} is not finished. Continue it with: mmeval score --resume {self.label}"
            ) from None
        results = records.read_results(content, self.label)
        refuse_faults(f"{self.label}/results.json", result_faults(results))
        return results

    def write_results(self, results: Results) -> None:
        """Replace manifest.json, then results.json. Both are the last files of a run."""
        self.checksums.write_json(checksums.RESULTS, results, self.record_checksums())

    def _add_checksums(self) -> None:
        """Add what a temporary folder lacks as long as its files are in memory: checksums, and their manifest."""
        if self.storage.exists(checksums.RESULTS):
            self.write_results(self.read_results())
        else:
            self.checksums.note_all()

    def record_checksums(self) -> str | None:
        """Write the checksums of the files so far to manifest.json. A failure of the machine keeps it.

        Returns the checksum of the manifest. Files in memory have none: it is written with the files, if ever.
        """
        return None if self.storage.defers else self.checksums.record()

    def read_lint(self) -> LintReport | None:
        """The content of lint.json; None if it is missing, damaged, or from a version with other rules."""
        try:
            return records.read_lint(self.checksums.read_json("lint.json"))
        except (MissingFileError, DamagedFileError):
            return None

    def write_lint(self, lint: LintReport) -> None:
        """Replace lint.json."""
        self.checksums.write_json("lint.json", lint)

    def read_classification(self) -> dict[str, Any] | None:
        """The content of classification.json; None if it is missing."""
        content = self._decoded("classification.json", dict[str, Any])
        if content is not None:
            content.pop("sha256", None)
        return content

    def write_classification(self, report: Mapping[str, Any]) -> None:
        """Replace classification.json."""
        self.checksums.write_json("classification.json", report)

    def read_judges(self) -> JudgesReport | None:
        """The content of judges.json; None if it is missing."""
        return self._decoded("judges.json", JudgesReport)

    def write_judges(self, report: JudgesReport) -> None:
        """Replace judges.json."""
        self.checksums.write_json("judges.json", report)

    def _decoded(self, name: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(self.checksums.read_json(name), type=kind)
        except MissingFileError:
            return None
        except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError) as error:
            raise RunFolderError(f"{self.label}/{name} cannot be read: {error}") from None

    # parts

    def part(self, kind: Kind, number: int) -> Path:
        """The path of a part on this machine."""
        return self._local.place(part_name(kind, number))

    def write_part(self, kind: Kind, number: int, table: Any) -> None:
        """Commit a part."""
        self._single.pop(kind, None)
        name = part_name(kind, number)

        def write(path: Path) -> None:
            path.write_bytes(to_parquet(table))

        if self.storage.defers and number == 0 and table.nbytes <= _SMALL:
            self.storage.write_later(name, write)
            if not self.storage.defers:  # another thread has written all files meanwhile
                self.checksums.note_current(name)
        else:
            self.storage.sync()
            self.checksums.write(name, write, self.before_change)
        if number == 0:
            self._single[kind] = table

    def read_part(self, kind: Kind, number: int, columns: list[str] | None = None) -> Any:
        """A part as a table, with all columns or only the given ones that it has."""
        table = self._single.get(kind) if number == 0 else None
        if table is not None:
            return table if columns is None else table.select([name for name in columns if name in table.column_names])
        return self._read(part_name(kind, number), lambda source: run_content.read_table(source, columns))

    def has_part(self, kind: Kind, number: int) -> bool:
        """Whether a part exists."""
        return self.storage.exists(part_name(kind, number))

    def part_schema(self, kind: Kind, number: int) -> Any:
        """The columns of a part, as an Arrow schema."""
        if number == 0 and (table := self._single.get(kind)) is not None:
            return table.schema
        return self._read(part_name(kind, number), run_content.read_schema)

    def has_values(self, kind: Kind, number: int, columns: Collection[str]) -> bool:
        """Whether a part has a value in one of these columns, from the statistics in its footer."""
        if number == 0 and (table := self._single.get(kind)) is not None:
            return any(table.column(name).null_count < len(table) for name in columns if name in table.column_names)
        return self._read(part_name(kind, number), lambda source: run_content.has_values(source, columns))

    def _read(self, name: str, read: Callable[[run_content.Source], T]) -> T:
        """Read a file that agrees with its checksum."""
        with self.checksums.opened(name) as source, faults_named(partial(self.checksums.damaged, name)):
            return read(source)

    def read_samples(self, number: int, fields: Collection[str] | None = None) -> list[Sample]:
        """The samples of a part, with all fields or only ids and the given ones."""
        from multimodal_eval.data.runs.sample_table import columns_of_fields, to_samples

        columns = None if fields is None else columns_of_fields({"id", *fields})
        return to_samples(self.read_part("samples", number, columns))

    def read_batch(self, number: int, fields: Collection[str] | None = None) -> Batch:
        """The samples of a part as columns, with all fields or only ids and the given ones."""
        from multimodal_eval.data.runs.sample_table import columns_of_fields, to_batch

        columns = None if fields is None else columns_of_fields({"id", *fields})
        return to_batch(self.read_part("samples", number, columns))

    def clear_samples(self) -> None:
        """Remove the parts of an input that was not read completely."""
        self._single.pop("samples", None)
        for folder in ("samples", "state", checksums.FOLDER):
            self.storage.remove(folder)
        self.checksums.forget_manifest()
        self.clear_scratch()

    def clear_temporary(self) -> None:
        """Remove the temporary files of interrupted writes, and the run that this one has replaced."""
        self.storage.remove(REPLACED)
        for name in self.storage.files():
            if name.endswith(TEMPORARY):
                self.storage.remove(name)

    # corpus statistics

    def has_state(self, metric: str) -> bool:
        """Whether the state of a metric is stored."""
        return self.storage.exists(state_name(metric))

    def write_state(self, metric: str, write: Write) -> None:
        """Commit the state of a metric."""
        if self.storage.defers:
            self.storage.write_later(state_name(metric), write)
        else:
            self.checksums.write(state_name(metric), write)

    def state_copy(self, metric: str) -> AbstractContextManager[Path]:
        """The state of a metric as a local file to read."""
        return self.checksums.local_copy(state_name(metric))

    # intermediate files of the workers

    def write_pieces(self, name: str, pieces: Sequence[bytes], *, is_temporary: bool = False) -> None:
        """Write some pieces for other workers to one file. Temporary ones are not needed by a resumed run."""
        self.storage.write_bytes(f"{SCRATCH}/{name}", packed(pieces), is_temporary=is_temporary)

    def read_piece(self, name: str, number: int) -> bytes | None:
        """Read only one of the pieces; None if there is no file with that name."""
        file = f"{SCRATCH}/{name}"
        try:
            return piece_of(number, partial(self.storage.read_bytes, file))
        except MissingFileError:
            return None

    def clear_scratch(self, name: str = "") -> None:
        """Remove all intermediate files, or the one with that name."""
        self.storage.remove(f"{SCRATCH}/{name}" if name else SCRATCH)


def state_name(metric: str) -> str:
    """The file of a metric's state in a run folder."""
    return f"state/{metric}.bin"


# Write the parts of a run in threads, while the next ones are read.

_MOST_THREADS = 4


@contextmanager
def writing_parts(folder: RunFolder) -> Iterator[Callable[[int, Any], None]]:
    """A function that writes a part of samples, a few at a time. All are written when the `with` statement ends.

    An error may be raised by a later call.
    """
    threads = min(cores(), _MOST_THREADS) if isinstance(folder.location, Path) else 1
    pending: deque[Future[None]] = deque()
    with ThreadPoolExecutor(threads) as pool:

        def write(number: int, table: Any) -> None:
            if threads == 1 or folder.storage.defers:
                folder.write_part("samples", number, table)
                return
            if len(pending) == threads:
                pending.popleft().result()
            pending.append(pool.submit(folder.write_part, "samples", number, table))

        yield write
    for written in pending:
        written.result()


# Find the run folders in a folder.


def run_folders(parent: Location) -> Iterator[tuple[str, RunFolder]]:
    """The run folders in a folder, by name, including those one level deeper (one run per task)."""
    base = storage_at(parent)
    for name in base.names():
        folder = RunFolder(below(base.location, name))  # which may be a link: its target is a folder of its own
        names = folder.storage.names()
        if "run.json" in names:
            yield name, folder
            continue
        for inner in names:
            run = RunFolder(below(folder.location, inner))
            if "run.json" in run.storage.names():
                yield f"{name}/{inner}", run


JUDGES, LABELS = "judges.json", "human.json"  # what a run says about its judges; the human labels, which are not made


class Fault(msgspec.Struct, frozen=True):
    """A file of a run folder that is damaged or missing."""

    name: str
    problem: str


def faults(folder: RunFolder) -> Iterator[Fault]:
    """The damaged and missing files of a run. Files that are not written yet are not missing."""
    try:
        info = folder.read_info()
    except DamagedFileError as error:
        yield Fault("run.json", error.problem)
        return
    is_finished = info.finished is not None
    needed = {
        RESULTS: is_finished,
        JUDGES: is_finished and bool(info.judging),
        LABELS: LABELS in info.config.human.values(),
    }
    for name in (RESULTS, "lint.json", "classification.json", JUDGES, LABELS, MANIFEST, EXCHANGES):
        yield from _fault_of(folder, name, is_needed=needed.get(name, False))
    yield from _faults_of_data(folder, info)


def _fault_of(folder: RunFolder, name: str, *, is_needed: bool) -> Iterator[Fault]:
    try:
        if name == MANIFEST:
            folder.checksums.manifest()
        else:
            folder.checksums.read_json(name)
    except MissingFileError:
        if is_needed:
            yield Fault(name, "is missing")
    except DamagedFileError as error:
        yield Fault(name, error.problem)
    except RunFolderError as error:
        yield Fault(name, str(error))


def _faults_of_data(folder: RunFolder, info: RunInfo) -> Iterator[Fault]:
    try:
        manifest = folder.checksums.manifest()
    except RunFolderError:  # reported above: without it, nothing can be compared
        return
    kinds: list[Kind] = []  # that are complete
    if info.has_answers:
        kinds += ["samples", *(("answers", "exchanges") if info.generation is not None else ())]
    elif info.rescored_from is None:
        kinds.append("samples")
    if info.finished is not None:
        kinds.append("scores")
    if info.signatures:
        kinds += [f"{kind}/{metric}" for metric in info.judging for kind in ("verdicts", "exchanges")]
    names = {*folder.checksums.data_files(), *(part_name(kind, n) for kind in kinds for n in range(len(info.parts)))}
    for name in sorted(names if manifest is None else {*names, *manifest.files}):
        try:
            folder.checksums.check(name)
        except MissingFileError:
            yield Fault(name, "is missing")
        except DamagedFileError as error:
            yield Fault(name, error.problem)
