"""Import the logs of several tasks or models: one run per model and task, in a suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError, InputError, MultimodalEvalError, Problem
from multimodal_eval.data.logs.log_format import LogInfo
from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.files import DataFile, log_files
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.data.runs.suite_folder import (
    SuiteEntry,
    SuiteModel,
    SuiteRecord,
    SuiteTask,
    folder_name,
    is_suite,
    member_folder,
    merged,
    read_suite,
    write_suite,
)
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.import_log import Imported, imported, read_log

__all__ = ["FoundLog", "ImportedSuite", "LeftOut", "found_logs", "import_logs", "is_in_suite"]


@dataclass(frozen=True)
class FoundLog:
    """A log of a folder, and the model and the task that it is about."""

    file: DataFile
    model: str
    task: str
    has_scores: bool


@dataclass(frozen=True)
class LeftOut:
    """A log that became no run, and why. A failure is an error; a log without scores is not."""

    file: str
    reason: str
    is_failure: bool


@dataclass(frozen=True)
class ImportedSuite:
    """The folder of the suite, its new runs, and the logs that became none."""

    location: Location
    imported: tuple[Imported, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def runs(self) -> list[Location]:
        """The folders of the new runs."""
        return [each.run.location for each in self.imported]


def found_logs(path: Path, format: str | None = None) -> list[FoundLog]:
    """The logs in a folder, of any harness. Two of the same model and task are refused, unless one has no scores."""
    listed = [_listed(file, log_format(str(file.log)).info(file.path)) for file in log_files(path, format)]
    first: dict[tuple[str, str], Path] = {}
    for log in filter(lambda log: log.has_scores, listed):
        key = log.model, log.task
        if key in first:
            message = f"this and {first[key]} are both logs of {log.task!r} by {log.model!r}."
            hint = f"Import each of them alone: mmeval import {log.file.path} -o RUN, and compare the runs in a table"
            raise InputError([Problem(code="DUPLICATE", message=message, file=str(log.file.path), hint=hint)])
        first[key] = log.file.path
    return listed


def _listed(file: DataFile, info: LogInfo) -> FoundLog:
    """A log without the name of its model has that of its folder, as harnesses name it."""
    task = info.task or log_format(str(file.log)).part_name(file.path)
    return FoundLog(file, info.model or file.path.absolute().parent.name, task, bool(info.scores))


def is_in_suite(path: Path, format: str | None, output: Location | None) -> bool:
    """Whether logs become runs of a suite: if there are several, or the folder is one already."""
    if output is not None and is_suite(output):
        return True
    return path.is_dir() and len(log_files(path, format)) > 1


def import_logs(
    path: str | Path,
    *,
    output: Location,
    format: str | None = None,
    overwrite: bool = False,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    **settings: Any,
) -> ImportedSuite:
    """One run per model and task of the logs in a folder, as `output`/MODEL/TASK, and `suite.json` beside them.

    The logs may be of several harnesses. A suite that is there gets further runs. The other arguments are those of
    `import_log`.
    """
    chosen, path = Engine.of(engine, workers), Path(path)
    with limits.using(settings.get("max_expansion"), settings.get("max_record_mb")):
        logs = found_logs(path, format)
        if not logs:
            raise ConfigError(f"{path} has no log of a known format: see `mmeval ls formats`")
        record = read_suite(output) if is_suite(output) else SuiteRecord()
        done: list[tuple[FoundLog, Imported]] = []
        left: list[LeftOut] = []
        names = _folders(logs, record)
        places = [member_folder(output, name) for name in names]  # refused before anything is written
        for log, place in zip(logs, places, strict=True):
            try:
                read = read_log(log.file)
                run = imported(read, place, chosen, {**settings, "format": format}, overwrite=overwrite, progress=False)
            except MultimodalEvalError as error:
                is_failure = not isinstance(error, ConfigError)
                reason = str(error).removeprefix(f"{log.file.path} ")
                left.append(LeftOut(str(log.file.path), reason, is_failure))
            else:
                done.append((log, run))
    if not done:
        raise ConfigError("\n".join(f"{each.file}: {each.reason}" for each in left))
    folders = dict(zip(map(id, logs), names, strict=True))
    entries = [SuiteEntry(path=folders[id(log)], model=log.model, task=log.task) for log, _ in done]
    headlines = [(log.task, run.run.headline) for log, run in done]
    write_suite(output, _described(record, entries, headlines))
    return ImportedSuite(output, tuple(run for _, run in done), tuple(left))


def _folders(logs: Sequence[FoundLog], record: SuiteRecord) -> list[str]:
    """MODEL/TASK for each log; different names that would share a folder are numbered."""
    taken = {run.path: (run.model, run.task) for run in record.runs}
    names = []
    for log in logs:
        key = log.model, log.task
        name = plain = f"{folder_name(log.model)}/{folder_name(log.task)}"
        number = 2
        while taken.get(name, key) != key:
            name, number = f"{plain}-{number}", number + 1
        taken[name] = key
        names.append(name)
    return names


def _described(
    record: SuiteRecord, entries: Sequence[SuiteEntry], headlines: Sequence[tuple[str, str | None]]
) -> SuiteRecord:
    """The suite with these runs. A task has a headline if all of its runs have the same."""
    known = {task.name: task for task in record.tasks}
    models = {model.name for model in record.models}
    new = SuiteRecord(
        models=[SuiteModel(name=name) for name in dict.fromkeys(e.model for e in entries) if name not in models],
        tasks=[
            _with_headline(known.get(name), name, {listed for task, listed in headlines if task == name})
            for name in dict.fromkeys(task for task, _ in headlines)
        ],
        runs=list(entries),
    )
    return merged(record, new)


def _with_headline(task: SuiteTask | None, name: str, listed: set[str | None]) -> SuiteTask:
    only = next(iter(listed)) if len(listed) == 1 else None
    if task is None:
        return SuiteTask(name=name, headline=only)
    return task if task.headline == only else msgspec.structs.replace(task, headline=None)
