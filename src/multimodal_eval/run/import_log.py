"""Make a run of the logs of another harness, with the scores that the harness gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isclose
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import LOG, RECORDED, Entry, ImportInfo, ReportedScore
from multimodal_eval.data.logs.decoding import document_of
from multimodal_eval.data.logs.log_format import LogInfo, RecordedScore
from multimodal_eval.data.logs.recognised import LOG_FORMATS, log_format
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.column_names import REFERENCES, peeked
from multimodal_eval.data.readers.files import DataFile, file_set
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.opening import place, planned, removed_on_failure
from multimodal_eval.run.progress import shown
from multimodal_eval.run.start import start

__all__ = ["Imported", "Logs", "OwnMean", "import_log", "own_means", "read_logs"]


@dataclass(frozen=True)
class OwnMean:
    """What the harness reports for one of its scores, and the mean in the run."""

    reported: ReportedScore
    entry: Entry

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
        return self.entry.n_total - self.entry.n_scored - self.entry.unscored.get("missing_input", 0)

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
        unscored, failed = entry.n_total - entry.n_scored, self.failed
        for count in dict.fromkeys((failed, unscored)):
            if count and _is_close(stated, mean * entry.n_scored / (entry.n_scored + count)):
                return f"{text}, which counts {count:,} samples without a score as 0"
        if self.reported.samples not in (None, entry.n_total, entry.n_scored + failed):
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
    """The logs of an input: a description, and the settings of a run that looks up their scores."""

    info: ImportInfo
    settings: dict[str, Any]
    logs: tuple[LogInfo, ...]


@dataclass(frozen=True)
class Imported:
    """The run, what the logs say about themselves, and the harness' own means beside those of the run."""

    run: Run
    logs: tuple[LogInfo, ...]
    means: tuple[OwnMean, ...]


def read_logs(path: Path, format: str | None = None) -> Logs:
    """What a log, or the logs in a folder, say about themselves.

    `format` is the name of the log's format, if it is not recognised by its content.
    """
    files = file_set(path, format).files
    if files[0].log is None:
        _refuse_results(path)
        raise ConfigError(
            f"{path} is not recognised as a log. Known formats: {', '.join(LOG_FORMATS)} (see `mmeval ls formats`). "
            f"If it is one of them, name it with --format. Data of your own: mmeval score {path} --metrics …"
        )
    logs = [(file, log_format(files[0].log).info(file.path)) for file in files]
    scores = _scores([log for _, log in logs])
    if not scores:
        _refuse_damaged(files)
        notes = "".join(f"\n{note}" for _, log in logs for note in log.notes)
        raise ConfigError(f"{path} has no scores of samples. {_to_score(path, files[0])}{notes}")
    settings = recorded_settings(scores) | ({"by": [LOG]} if len(logs) > 1 else {})
    return Logs(_import_info(logs), settings, tuple(log for _, log in logs))


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


def _refuse_damaged(files: Sequence[DataFile]) -> None:
    """Refuse logs that cannot be read, if this is why no score was found."""
    problems = Problems()
    for file in files:
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
    """A run with the samples and scores of a log: a file, or a folder with one or several of one harness.

    `format` is the name of the log's format, if it is not recognised by its content. The other arguments are those
    of `evaluate`.
    """
    chosen = Engine.of(engine, workers)
    with limits.using(settings.get("max_expansion"), settings.get("max_record_mb")):
        logs = read_logs(Path(path), format)
    plan, source = planned(overlaid(None, **{**logs.settings, **settings, "format": format}), path, None)
    location, scratch = place(output, chosen)
    with removed_on_failure(scratch), chosen.executor(plan) as executor, shown(progress) as report:
        folder = start(
            plan,
            source,
            location,
            executor,
            report,
            is_durable=scratch is None,
            overwrite=overwrite,
            imported=logs.info,
        )
    run = Run(folder.reopened(), scratch)
    return Imported(run, logs.logs, tuple(own_means(run)))


def _scores(logs: list[LogInfo]) -> list[RecordedScore]:
    """The scores of all logs; of those with the same column, the first."""
    columns: dict[str, RecordedScore] = {}
    for score in (score for log in logs for score in log.scores):
        columns.setdefault(score.column, score)
    return list(columns.values())


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


def _import_info(logs: list[tuple[DataFile, LogInfo]]) -> ImportInfo:
    infos = [log for _, log in logs]
    return ImportInfo(
        harness=infos[0].harness,
        version=_listed(log.version for log in infos),
        model=_listed(log.model for log in infos),
        task=_listed(log.task for log in infos),
        files=[str(file.path) for file, _ in logs],
        settings=infos[0].settings if all(log.settings == infos[0].settings for log in infos) else {},
        reported=[
            ReportedScore(
                metric=score.column,
                value=score.own_mean,
                log=file.prefix.removesuffix("/") or None,
                samples=score.own_count,
                aggregation=score.aggregation,
                decimals=score.decimals,
            )
            for file, log in logs
            for score in log.scores
            if score.own_mean is not None
        ],
        notes=list(dict.fromkeys(_note(file, note) for file, log in logs for note in log.notes)),
    )


def _listed(values: Any) -> str | None:
    """The different values, in order."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _note(file: DataFile, note: str) -> str:
    return f"{file.prefix.removesuffix('/')}: {note}" if file.prefix else note


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
