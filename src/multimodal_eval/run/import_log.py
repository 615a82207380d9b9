"""Import another harness's logs, with the scores that it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isclose
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.display import counted
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import LOG, RECORDED, ImportInfo, ReportedScore
from multimodal_eval.data.logs.decoding import document_of
from multimodal_eval.data.logs.log_format import LogInfo, RecordedScore
from multimodal_eval.data.logs.recognised import LOG_FORMATS, log_format
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.column_names import REFERENCES, peeked
from multimodal_eval.data.readers.files import DataFile, file_set, log_files
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
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
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.start import planned, start

__all__ = [
    "FoundLog",
    "Imported",
    "ImportedSuite",
    "LeftOut",
    "Logs",
    "OwnMean",
    "found_logs",
    "import_log",
    "import_logs",
    "imported",
    "is_in_suite",
    "own_means",
    "read_log",
    "read_logs",
]


_SHOWN = 4  # names of logs


@dataclass(frozen=True)
class OwnMean:
    """What the harness reports for one of its scores, and the mean in the run."""

    reported: ReportedScore
    entry: Figure

    @property
    def metric(self) -> str:
        """The name of the score."""
        return self.reported.metric

    @property
    def log(self) -> str | None:
        """The log, if there are several."""
        return self.reported.log

    @property
    def stated(self) -> float:
        """What the harness reports."""
        return self.reported.value

    @property
    def mean(self) -> float | None:
        """The mean in the run."""
        return self.entry.value

    @property
    def failed(self) -> int:
        """The samples that failed. Those of another task or perturbation, for which the log has no score, did not."""
        return self.entry.coverage.missing - self.entry.coverage.unscored.get("missing_input", 0)

    @property
    def is_equal(self) -> bool:
        """Whether both are the same number, but for the rounding of sums."""
        return _is_close(self.stated, self.mean)

    @property
    def explanation(self) -> str:
        """Why both differ, or that they do not."""
        stated, mean, entry = self.stated, self.mean, self.entry
        if self.is_equal:
            return "mean as in its results"
        text = f"its results have {stated:.6g}"
        if mean is None:
            return f"{text}; here no sample has a score"
        if _is_close(stated, 100 * mean):
            return f"{text}, the same mean in percent"
        if mean > -700 and _is_close(stated, exp(-mean)):
            return f"{text}, which is exp(-mean): the values are log-likelihoods"
        if self.reported.aggregation is not None:
            return f"{text} by {self.reported.aggregation!r}, which is not the mean of the values per sample"
        decimals = self.reported.decimals or _decimals(stated)
        if decimals > 1 and stated in (round(mean, decimals), round(100 * mean, decimals)):
            return f"{text}, which is rounded"
        unscored, failed = entry.coverage.missing, self.failed
        for count in dict.fromkeys((failed, unscored)):
            if count and _is_close(stated, mean * entry.coverage.scored / (entry.coverage.scored + count)):
                return f"{text}, which counts {counted(count, 'sample')} without a score as 0"
        if self.reported.samples not in (None, entry.coverage.total, entry.coverage.scored + failed):
            return f"{text} for {self.reported.samples:,} samples; the log has {entry.n_total:,}"
        if failed:
            left_out = "1 failed sample is" if failed == 1 else f"{failed:,} failed samples are"
            return f"{text}; {left_out} left out here"
        return (
            f"{text}: it does not aggregate by the mean of the values per sample, or the files do not belong together"
        )


def _is_close(left: float, right: float | None) -> bool:
    return right is not None and isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)


def _decimals(value: float) -> int:
    """The decimals with which a number is written; many, if it has an exponent."""
    digits = repr(value)
    return 17 if "e" in digits else len(digits.partition(".")[2])


@dataclass(frozen=True)
class Logs:
    """The log of an input: its file, a description, and the settings of a run that looks up its scores."""

    path: Path
    info: ImportInfo
    settings: dict[str, Any]
    log: LogInfo


@dataclass(frozen=True)
class Imported:
    """The run, what its log says about itself, and the harness' own means beside those of the run."""

    run: Run
    logs: tuple[LogInfo, ...]
    means: tuple[OwnMean, ...]


def read_logs(path: Path, format: str | None = None) -> Logs:
    """What a log, or the only log in a folder, says about itself.

    `format` is the name of the log's format, if it is not recognised by its content.
    """
    files = log_files(path, format)
    if not files:
        file_set(path, format)  # which says what is wrong with the files, if they are not data
        _refuse_results(path)
        raise ConfigError(
            f"{path} is not recognised as a log. Known formats: {', '.join(LOG_FORMATS)} (see `mmeval ls formats`). "
            f"If it is one of them, name it with --as. Data of your own: mmeval score {path} --metrics …"
        )
    if len(files) > 1:
        names = [file.path.name for file in files[:_SHOWN]]
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        raise ConfigError(
            f"{path} has {len(files)} logs: {', '.join(names)}{more}. `mmeval import` and `import_logs` make a run of "
            "each; `import_log` reads one"
        )
    return read_log(files[0], path)


def read_log(file: DataFile, name: Path | None = None) -> Logs:
    """What one log says about itself; `name` is its folder, if it is the only one in it."""
    log = log_format(str(file.log)).info(file.path)
    if not log.scores:
        _refuse_damaged(file)
        notes = "".join(f"\n{note}" for note in log.notes)
        raise ConfigError(f"{file.path} has no scores of samples. {_to_score(file.path, file)}{notes}")
    return Logs(name or file.path, _import_info(file, log), recorded_settings(list(log.scores)), log)


class _HarnessResults(msgspec.Struct):
    """The results of lm-eval or lmms-eval."""

    results: dict[str, Any]
    configs: dict[str, Any]


def _refuse_results(path: Path) -> None:
    """Refuse the results of lm-eval or lmms-eval, whose samples are in other files."""
    if document_of(path, _HarnessResults) is None:
        return
    raise ConfigError(
        f"{path} has the results of lm-eval or lmms-eval, without samples. Name a file of samples beside it "
        f"(samples_TASK_DATE.jsonl or DATE_samples_TASK.jsonl), or the folder: mmeval import {path.parent} -o RUN. "
        "The harness writes samples with the option `log_samples`"
    )


def _refuse_damaged(file: DataFile) -> None:
    """Refuse a log that cannot be read, if this is why no score was found."""
    problems = Problems()
    for _ in log_format(str(file.log)).records(file.path, problems):
        pass
    problems.raise_if_any()


def _to_score(path: Path, file: DataFile) -> str:
    """How the answers of a log without scores are scored."""
    if {*REFERENCES} & peeked(file.path, file.log).keys():
        return f"Its answers can be scored: mmeval score {path} --metrics …"
    return (
        "It has no references either. To score its answers, give a file with `id` and `references` first: "
        f"mmeval score REFERENCES {path} --metrics …"
    )


def import_log(
    path: str | Path,
    *,
    output: Location | None = None,
    format: str | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    **settings: Any,
) -> Imported:
    """A run with the samples and scores of a log: a file, or a folder with one. `import_logs` reads several.

    `format` is the name of the log's format, if it is not recognised by its content. The other arguments are those
    of `evaluate`.
    """
    chosen = Engine.of(engine, workers)
    with limits.using(settings.get("max_expansion"), settings.get("max_record_mb")):
        logs = read_logs(Path(path), format)
    return imported(logs, output, chosen, {**settings, "format": format}, overwrite=overwrite, progress=progress)


def imported(
    logs: Logs,
    output: Location | None,
    engine: Engine,
    settings: Mapping[str, Any],
    *,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
) -> Imported:
    """The run of a log that was read."""
    plan, source = planned(overlaid(None, **{**logs.settings, **settings}), logs.path, None)
    run = Run(*start(plan, source, output, engine, progress, overwrite=overwrite, imported=logs.info))
    return Imported(run, (logs.log,), tuple(own_means(run)))


def recorded_settings(scores: list[RecordedScore]) -> dict[str, Any]:
    """The settings of a run that looks these scores up."""
    names = [score.column for score in scores]
    return {
        "metrics": names,
        "variants": dict.fromkeys(names, RECORDED),
        "options": {
            score.column: {
                "column": score.column,
                "direction": score.direction,
                **({} if score.low is None else {"low": score.low}),
                **({} if score.high is None else {"high": score.high}),
            }
            for score in scores
        },
    }


def _import_info(file: DataFile, log: LogInfo) -> ImportInfo:
    return ImportInfo(
        harness=log.harness,
        version=log.version,
        model=log.model,
        task=log.task,
        files=[str(file.path)],
        settings=log.settings,
        reported=[
            ReportedScore(
                metric=score.column,
                value=score.own_mean,
                samples=score.own_count,
                aggregation=score.aggregation,
                decimals=score.decimals,
            )
            for score in log.scores
            if score.own_mean is not None
        ],
        notes=list(dict.fromkeys(log.notes)),
    )


def own_means(run: Run) -> list[OwnMean]:
    """The scores that the harness of an imported run reports, beside those of the run."""
    if run.info.imported is None:
        return []
    slices = run.outcome.slices.get(LOG, {})
    means = []
    for reported in run.info.imported.reported:
        below = slices.get(reported.log) if reported.log is not None else None
        entries = run.entries if reported.log is None else {} if below is None else below.metrics
        if reported.metric in entries:
            means.append(OwnMean(reported, entries[reported.metric]))
    return means


# Import the logs of several tasks or models: one run per model and task, in a suite.


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
    """The logs in a folder, of any harness."""
    return [_listed(file, log_format(str(file.log)).info(file.path)) for file in log_files(path, format)]


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
        names = _folders(logs, record, output, overwrite=overwrite)
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


def _folders(logs: Sequence[FoundLog], record: SuiteRecord, suite: Location, *, overwrite: bool) -> list[str]:
    """MODEL/TASK for each log; different names that would share a folder are numbered.

    Further logs of a model and a task, such as those of other seeds or harnesses, have MODEL-2/TASK, MODEL-3/TASK ….
    """
    taken = {run.path: (run.model, run.task) for run in record.runs}
    done: set[str] = set()  # of these logs
    names = []

    def is_free(name: str, log: FoundLog) -> bool:
        is_same = overwrite or name not in taken or _is_of(member_folder(suite, name), log.file.path)
        return name not in done and is_same

    for log in logs:
        key, number, model, task = (log.model, log.task), 1, folder_name(log.model), folder_name(log.task)
        name = f"{model}/{task}"
        while taken.get(name, key) != key or not is_free(name, log):
            number += 1
            is_other = taken.get(f"{model}/{task}", key) != key
            name = f"{model}/{task}-{number}" if is_other else f"{model}-{number}/{task}"
        taken[name] = key
        names.append(name)
        if log.has_scores:
            done.add(name)
    return names


def _is_of(place: Location, log: Path) -> bool:
    """Whether the run in this folder, if there is one, is of this log."""
    try:
        described = RunFolder(place).read_info().imported
    except MultimodalEvalError:
        return True
    return described is None or str(log) in described.files


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
