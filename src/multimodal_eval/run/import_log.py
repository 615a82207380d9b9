"""Make a run of a log of another harness, with the scores that the harness gave."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RECORDED
from multimodal_eval.data.logs.log_format import LogInfo, RecordedScore
from multimodal_eval.data.logs.recognised import log_format, log_formats
from multimodal_eval.data.readers.files import DataFile, file_set
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.evaluate import evaluate

__all__ = ["Imported", "OwnMean", "import_log"]


@dataclass(frozen=True)
class OwnMean:
    """The mean that the harness reports for one of its scores, and ours."""

    metric: str
    own: float
    ours: float | None

    @property
    def is_equal(self) -> bool:
        """Whether both are the same number, but for the rounding of sums."""
        return self.ours is not None and isclose(self.own, self.ours, rel_tol=1e-9, abs_tol=1e-12)


@dataclass(frozen=True)
class Imported:
    """The run, what the logs say about themselves, and the harness' own means beside ours."""

    run: Run
    logs: tuple[LogInfo, ...]
    means: tuple[OwnMean, ...]


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

    `format` is the name of the log's format, if it is not recognised by its content.
    """
    files = file_set(Path(path), format).files
    if files[0].log is None:
        raise ConfigError(f"{path} is not the log of a harness that is known: {', '.join(log_formats())}")
    logs = tuple(_info(file) for file in files)
    scores = _scores(logs)
    if not scores:
        raise ConfigError(f"{path} has no scores. Its answers can be scored: mmeval score {path} --metrics …")
    run = evaluate(
        path,
        output=output,
        overwrite=overwrite,
        progress=progress,
        engine=engine,
        workers=workers,
        **{**settings, "format": format, **recorded_settings(scores)},
    )
    return Imported(run, logs, tuple(_own_means(run, logs)))


def _info(file: DataFile) -> LogInfo:
    assert file.log is not None
    return log_format(file.log).info(file.path)


def _scores(logs: tuple[LogInfo, ...]) -> list[RecordedScore]:
    """The scores of all logs; of those with the same column, the first."""
    return list({score.column: score for log in reversed(logs) for score in reversed(log.scores)}.values())[::-1]


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


def _own_means(run: Run, logs: tuple[LogInfo, ...]) -> list[OwnMean]:
    """The harness' own means, of a log that is alone in the run."""
    if len(logs) > 1:
        return []
    entries = run.entries
    return [
        OwnMean(score.column, score.own_mean, entries[score.column].value)
        for score in logs[0].scores
        if score.own_mean is not None and score.column in entries
    ]
