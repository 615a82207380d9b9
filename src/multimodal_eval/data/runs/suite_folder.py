"""A suite: runs of several models on several tasks, and `suite.json`, which names them. A folder of runs needs none.

SUITE/suite.json          models, tasks with their headlines, runs
SUITE/MODEL/TASK/         a run folder
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import glob, has_magic
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec

from multimodal_eval.core.errors import ConfigError, MissingFileError, RunFolderError
from multimodal_eval.core.records import to_json
from multimodal_eval.core.system_files import leading_out
from multimodal_eval.core.yaml_text import read_yaml
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, Storage, below, is_url, storage_at

__all__ = [
    "SUITE",
    "FoundRun",
    "FoundSuite",
    "SuiteEntry",
    "SuiteModel",
    "SuiteRecord",
    "SuiteTask",
    "find_runs",
    "folder_name",
    "is_suite",
    "member_folder",
    "merged",
    "read_suite",
    "read_suite_file",
    "write_suite",
]

SUITE = "suite.json"
FORMAT = 1
_DEPTH = 3  # folders below the one that is named
_LONGEST = 80  # characters of a folder's name


class SuiteModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A row of the table."""

    name: str
    label: str | None = None  # as papers print it
    of: str | None = None  # the model that this is a seed, a prompt or a checkpoint of: their rows are joined


class SuiteTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A column of the table."""

    name: str
    label: str | None = None
    headline: str | None = None  # the metric; None: the headline of the runs
    recipe: str | None = None  # the benchmark that the runs follow


class SuiteEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of the suite."""

    path: str  # below the folder of the file
    model: str
    task: str


class SuiteRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of suite.json. Models and tasks are in the order of the table."""

    format: int = FORMAT
    models: list[SuiteModel] = []
    tasks: list[SuiteTask] = []
    runs: list[SuiteEntry] = []


class FoundRun(msgspec.Struct, frozen=True):
    """A run folder: its place among the runs, and its model and task if a suite names them."""

    folder: RunFolder
    place: tuple[str, ...]
    model: str | None = None
    task: str | None = None


class FoundSuite(msgspec.Struct, frozen=True):
    """All runs that were named, and what the suites among them say."""

    runs: list[FoundRun]
    record: SuiteRecord


def folder_name(name: str) -> str:
    """A model or task as the name of a folder: `acme/parrot` becomes `acme_parrot`."""
    plain = re.sub(r"[^\w.+=-]+", "_", name).strip("._")
    if not plain or len(plain) > _LONGEST:
        digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
        plain = f"{plain[:_LONGEST]}_{digest}".lstrip("_")
    return plain


def member_folder(suite: Location, name: str) -> Location:
    """The folder of a run of a suite, to be written. A link that leads out of the suite is refused."""
    place = below(suite, name)
    if isinstance(place, Path) and (link := leading_out(place.parents[name.count("/")], name)) is not None:
        raise RunFolderError(f"{link} leads out of the suite. Remove it, or choose another folder")
    return place


def is_suite(location: Location) -> bool:
    """Whether a folder has a suite.json."""
    return storage_at(location).exists(SUITE)


def read_suite(location: Location) -> SuiteRecord:
    """The suite.json of a folder."""
    storage = storage_at(location)
    try:
        content = storage.read_bytes(SUITE)
    except (MissingFileError, NotADirectoryError):
        raise RunFolderError(f"{storage.label} has no {SUITE}") from None
    return _decoded(content, f"{storage.label}/{SUITE}")


def read_suite_file(path: Path) -> SuiteRecord:
    """A suite in a file of its own: JSON or YAML."""
    content = read_yaml(path, "suite")  # JSON is YAML
    try:
        return _checked(msgspec.convert(content, SuiteRecord), str(path))
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path} is not a suite: {error}") from None


def _decoded(content: bytes, label: str) -> SuiteRecord:
    try:
        return _checked(msgspec.json.decode(content, type=SuiteRecord), label)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ConfigError(f"{label} is not a suite: {error}") from None


def _checked(record: SuiteRecord, label: str) -> SuiteRecord:
    """Refuse another format, a name that occurs twice, and a path that leads out of the folder."""
    if record.format != FORMAT:
        raise ConfigError(f"{label} has format {record.format}; this version reads format {FORMAT}")
    for what, names in (
        ("model", [model.name for model in record.models]),
        ("task", [task.name for task in record.tasks]),
        ("path", [run.path for run in record.runs]),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"{label} names the {what} {twice!r} twice")
    for run in record.runs:
        path = PurePosixPath(run.path)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in run.path or "\\" in run.path:
            raise ConfigError(f"{label} names {run.path!r}, which is not a folder below it")
    return record


def write_suite(location: Location, record: SuiteRecord) -> None:
    """Write suite.json."""
    storage_at(location).write(SUITE, lambda path: path.write_bytes(to_json(record)))


def merged(first: SuiteRecord, second: SuiteRecord) -> SuiteRecord:
    """Both suites: what the second says of a model, a task or a path replaces what the first says."""
    models = {model.name: model for model in (*first.models, *second.models)}
    tasks = {task.name: task for task in (*first.tasks, *second.tasks)}
    runs = {run.path: run for run in (*first.runs, *second.runs)}
    return SuiteRecord(models=[*models.values()], tasks=[*tasks.values()], runs=[*runs.values()])


def find_runs(locations: Sequence[Location]) -> FoundSuite:
    """The runs in these folders: each is a run, a suite, or a folder of runs or suites. A pattern is expanded."""
    runs: list[FoundRun] = []
    record = SuiteRecord()
    alone: list[int] = []
    empty: list[str] = []
    for location in _expanded(locations):
        storage = storage_at(location)
        if storage.exists("run.json"):
            alone.append(len(runs))
            runs.append(FoundRun(RunFolder(location), tuple(storage.address.split("/"))))
            continue
        located = _below(storage, ())
        empty += [] if located.runs else [storage.label]
        runs += located.runs
        record = merged(record, msgspec.structs.replace(located.record, runs=[]))
    if not runs:
        raise RunFolderError(
            f"no run is in {', '.join(empty) or 'these folders'}. Name run folders, or folders of them"
        )
    shared = _shared([runs[place].place for place in alone])
    for place in alone:
        parts = runs[place].place
        runs[place] = msgspec.structs.replace(runs[place], place=parts[min(shared, len(parts) - 1) :])
    unique = {run.folder.address: run for run in runs}
    return FoundSuite([*unique.values()], record)


def _shared(places: Sequence[tuple[str, ...]]) -> int:
    """How many folders all runs have in common; all but the last of a single run."""
    if len(places) < 2:
        return len(places[0]) - 1 if places else 0
    return next((count for count, names in enumerate(zip(*places, strict=False)) if len(set(names)) > 1), 0)


def _expanded(locations: Sequence[Location]) -> list[Location]:
    expanded: list[Location] = []
    for location in locations:
        text = str(location)
        if is_url(location) or not has_magic(text) or Path(text).exists():
            if not is_url(location) and not Path(text).is_dir():
                raise RunFolderError(f"{text} is not a folder. Name run folders, or folders of them")
            expanded.append(location)
            continue
        matches = [Path(match) for match in sorted(glob(text))]  # noqa: PTH207 - as a shell does it
        expanded += [match for match in matches if match.is_dir()]
    return expanded


def _below(storage: Storage, place: tuple[str, ...]) -> FoundSuite:
    """The runs below a folder: first those that its suite names, then the others."""
    record = read_suite(storage.location) if storage.exists(SUITE) else SuiteRecord()
    runs = [
        FoundRun(RunFolder(below(storage.location, entry.path)), (*place, entry.path), entry.model, entry.task)
        for entry in record.runs
    ]
    named = {run.folder.address for run in runs}
    if len(place) == _DEPTH:
        return FoundSuite(runs, record)
    for name in sorted(storage.names()):
        inner = storage_at(below(storage.location, name))
        if name.startswith((".", "_")):
            continue
        if inner.exists("run.json"):
            further = FoundSuite([FoundRun(RunFolder(inner.location), (*place, name))], SuiteRecord())
        elif inner.names():
            further = _below(inner, (*place, name))
        else:
            continue
        runs += [run for run in further.runs if run.folder.address not in named]
        if further.record != SuiteRecord():
            record = merged(record, msgspec.structs.replace(further.record, runs=[]))
    return FoundSuite(runs, record)
