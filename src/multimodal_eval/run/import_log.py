"""Import another harness's logs, with the scores that it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isclose
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError
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
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.opening import planned
from multimodal_eval.run.start import start

__all__ = ["Imported", "Logs", "OwnMean", "import_log", "imported", "own_means", "read_log", "read_logs"]

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
                return f"{text}, which counts {count:,} samples without a score as 0"
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
