"""What a tracker gets of a run: numbers, settings, the report, all samples as a file and the first ones as a table."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow.parquet as pq

from multimodal_eval.analysis.pairing import run_names
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.accumulator import ScoreValue
from multimodal_eval.interop.export.files import UNCORRECTED, claim_of, published
from multimodal_eval.interop.export.row_tables import SampleTables

__all__ = ["OPTIONS", "TrackedRun", "environment", "flat_values", "run_values", "tracked_runs"]

OPTIONS = Options(
    project=Option(str, "multimodal-eval", help="the project, or experiment, of the tracker"),
    name=Option(str | None, None, help="the name of the tracker's run; null for the name of the run folder"),
    metrics=Option(list[str] | None, None, help="the metrics; null for all"),
    report=Option(bool, True, help="attach report.html"),
    samples=Option(bool, True, help="attach the samples with their texts and scores"),
    table_rows=Option(int, 1000, help="the number of samples in the table that the tracker displays"),
)
REPORT = "report.html"
SAMPLES = "samples.parquet"
_LEFT_OUT = ("_bytes", ":stats")  # media and numbers that only we can use

Cell = str | float | int | bool | None
Setting = str | float | int | bool


@dataclass(frozen=True)
class TrackedRun:
    """The content of one run."""

    name: str
    values: Mapping[str, float]
    settings: Mapping[str, Setting]
    files: Sequence[Path]  # the report and the samples, if they are wanted
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]  # the first samples

    @property
    def report(self) -> Path | None:
        """The page, if the run folder has one."""
        return next((path for path in self.files if path.name == REPORT), None)


def tracked_runs(runs: Sequence[Run], options: OptionValues) -> Iterator[TrackedRun]:
    """The content of each run; its files exist until the next one is asked for."""
    names = run_names(runs) if len(runs) > 1 else [runs[0].folder.name]
    if options["name"] is not None:
        names = [options["name"]] if len(runs) == 1 else [f"{options['name']}-{name}" for name in names]
    for run in runs:  # before anything is sent
        wrong = unknown_metric(run, options["metrics"] or ())
        if wrong is not None:
            raise UnknownNameError("metric of this run", wrong, run.entries)
    for run, name in zip(runs, names, strict=True):
        with TemporaryDirectory() as folder:
            yield _content(run, name, Path(folder), options)


def without_report(runs: Sequence[Run], options: OptionValues) -> tuple[str, ...]:
    """A note for each run whose report is wanted but missing."""
    if not options["report"]:
        return ()
    missing = [run for run in runs if not run.folder.storage.exists(REPORT)]
    return tuple(
        f"{run.folder.name} has no report. Write one with: mmeval report {run.folder.label}" for run in missing
    )


def _content(run: Run, name: str, folder: Path, options: OptionValues) -> TrackedRun:
    metrics = options["metrics"]
    files: list[Path] = []
    if options["report"] and run.folder.storage.exists(REPORT):
        files.append(folder / REPORT)
        files[-1].write_bytes(run.folder.storage.read_bytes(REPORT))
    columns: Sequence[str] = ()
    rows: list[list[Cell]] = []
    if options["samples"]:
        whole = None if metrics is None else list(dict.fromkeys(metric_and_part(m, run.entries)[0] for m in metrics))
        tables = SampleTables([run], whole, without=_LEFT_OUT)
        files.append(folder / SAMPLES)
        with pq.ParquetWriter(files[-1], tables.schema) as writer:
            for table in tables:
                writer.write_table(table)
        columns, rows = tables.schema.names, list(islice(_rows(tables), max(0, options["table_rows"])))
    return TrackedRun(name, run_values(run, metrics), _settings(run, metrics), files, columns, rows)


def _rows(tables: SampleTables) -> Iterator[list[Cell]]:
    for table in tables:
        for row in table.to_pylist():
            yield [_cell(value) for value in row.values()]


def _cell(value: object) -> Cell:
    """Lists and objects as JSON, since tables of trackers have plain cells."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return msgspec.json.encode(value).decode()


def _settings(run: Run, metrics: Sequence[str] | None) -> dict[str, Setting]:
    """What produced the numbers: task, data, signatures, model."""
    info = run.info
    settings: dict[str, Setting] = {"samples": len(run), "seed": info.seed, "created": info.created}
    if info.task is not None:
        settings["task"] = info.task
    if run.headline is not None:
        settings["headline"] = run.headline
    for library, version in info.versions.items():
        settings[f"version.{library}"] = version
    files = [file for file in info.input if file.path is not None]
    if files:
        settings["data"] = ", ".join(Path(str(file.path)).name for file in files)
        settings["data_sha256"] = ", ".join(str(file.sha256) for file in files)
    if info.generation is not None:
        settings["model"] = ", ".join(info.generation.models)
        settings["generation"] = info.generation.signature
    for name, signature in info.signatures.items():
        if metrics is None or any(metric_and_part(each, run.entries)[0] == name for each in metrics):
            settings[f"signature.{name}"] = signature.text
            if (claim := claim_of(run, name)) is not None:
                settings[f"note.{name}"] = claim
    return settings


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Environment variables inside the block; None removes one."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def flat_values(scores: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Every score with its interval, standard error and coverage, the share of the samples that are scored.

    A score that is NaN, because nothing is scored, is left out; its coverage of 0 is not. Plain numbers stay plain.
    """
    return {f"{prefix}{name}": value for name, value in _values(scores) if isfinite(value)}


def _values(scores: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for name, score in scores.items():
        yield name, float(score)
        if not isinstance(score, ScoreValue):
            continue
        for bound in ("low", "high", "stderr"):
            value = getattr(score, bound)
            if value is not None:
                yield f"{name}_{bound}", float(value)
        if score.n_total:
            yield f"{name}_coverage", (score.n_scored or 0) / score.n_total


def run_values(run: Run, metrics: Collection[str] | None = None) -> dict[str, float]:
    """The flat numbers of a run, or of some of its metrics, with their parts as `metric.part`.

    A score that human labels correct is the value; that of the judge is `metric.uncorrected`.
    """
    scores: dict[str, ScoreValue] = {}
    for metric, entry in run.entries.items():
        if metrics is None or metric in metrics:
            value, raw = published(entry)
            scores[metric] = ScoreValue.of(value)
            if raw is not None:
                scores[f"{metric}.{UNCORRECTED}"] = ScoreValue.of(raw)
        for part, figure in entry.parts.items():
            if metrics is None or metric in metrics or f"{metric}.{part}" in metrics:
                scores[f"{metric}.{part}"] = ScoreValue.of(figure)
    return flat_values(scores)


def unknown_metric(run: Run, metrics: Collection[str]) -> str | None:
    """The first name that is neither a metric of the run nor one of its parts."""
    for name in metrics:
        metric, part = metric_and_part(name, run.entries)
        if metric not in run.entries or (part and part not in run.entries[metric].parts):
            return name
    return None
