"""Meta-evaluation of what a user brings: judgments of Flickr8k, a file with human scores, or a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import floats
from multimodal_eval.analysis.meta import JudgedSamples, MetaEvaluation, meta_evaluation
from multimodal_eval.core.errors import (
    ConfigError,
    InputError,
    NothingNamedError,
    Problem,
    UnknownNameError,
    did_you_mean,
    shorten,
)
from multimodal_eval.core.metric import is_number
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.flickr8k import ANNOTATIONS, formats_in, read_flickr8k
from multimodal_eval.data.readers.inputs import FileInput, Summary, refuse_empty
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, located
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.evaluation.tasks_config import PRESETS
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.stats.correlation import COEFFICIENTS
from multimodal_eval.stats.intervals import Vector

FLICKR8K_METRICS = ("bleu.bleu_1", "coco")
_DELIMITED = (".csv", ".tsv")
_FLAGS = {"format_in": "--format-in", "options": "--option", "plugins": "--plugin"}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared with what."""

    human: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()  # those of `scores` that are better when lower
    format_in: str | None = None
    coefficient: str | None = None  # that the metrics are compared by
    options: dict[str, JsonObject] | None = None
    plugins: tuple[str, ...] = ()
    map: dict[str, str] | None = None
    limit: int | None = None
    allow_partial: bool = False


def meta_evaluate(data: Location, request: Request | None = None, *, progress: Progress = silent) -> MetaEvaluation:
    """Every coefficient of every metric with its interval, and all pairs of metrics compared.

    `data` is a folder with the judgments of Flickr8k, a file with columns of human scores, or a run folder.
    """
    asked = request or Request()
    if asked.coefficient is not None and asked.coefficient not in COEFFICIENTS:
        raise UnknownNameError("coefficient", asked.coefficient, COEFFICIENTS)
    if set(asked.metrics) & set(asked.scores):
        raise ConfigError("a metric and a column of scores have the same name")
    table = _table(located(data), asked, progress)
    return meta_evaluation(table, asked.coefficient, allow_partial=asked.allow_partial, progress=progress)


def _table(path: Location, asked: Request, progress: Progress) -> JudgedSamples:
    if isinstance(path, str) or (path / "run.json").is_file():  # of a URL only runs are read
        _refuse(asked, "a run folder", "format_in", "options", "map", "limit", "plugins")
        _require_human(asked)
        return _run_table(Run(path), asked, asked.metrics)
    if path.is_dir():
        return _flickr8k_table(path, asked, progress)
    if asked.format_in is not None:
        raise ConfigError(f"--format-in {asked.format_in} reads a folder, and {path} is none")
    return _file_table(path, asked, progress)


def _require_human(asked: Request) -> None:
    if not asked.human:
        raise NothingNamedError("name the column of human scores: --human COLUMN")


def _refuse(asked: Request, what: str, *settings: str) -> None:
    """A setting that would have no effect is a mistake."""
    for setting in settings:
        if getattr(asked, setting):
            raise ConfigError(f"{_FLAGS.get(setting, f'--{setting}')} has no effect on {what}")


def _flickr8k_table(folder: Path, asked: Request, progress: Progress) -> JudgedSamples:
    here = formats_in(folder)
    kind = asked.format_in or (here[0] if len(here) == 1 else None)
    if kind is None:
        names = (
            " and ".join(ANNOTATIONS[kind] for kind in here)
            or f"neither run.json nor {', '.join(ANNOTATIONS.values())}"
        )
        choice = f" Choose with --format-in {' or '.join(here)}." if here else ""
        raise InputError([Problem(code="FORMAT", message=f"the folder holds {names}.{choice}", file=str(folder))])
    if kind not in ANNOTATIONS:
        raise UnknownNameError("format", kind, ANNOTATIONS)
    _refuse(asked, "the judgments of Flickr8k", "human", "scores", "lower", "map", "limit")
    judged = read_flickr8k(folder, kind, allow_partial=asked.allow_partial)
    metrics = asked.metrics or FLICKR8K_METRICS
    run = _scored(judged.samples, asked, metrics, progress)
    table = _run_table(run, msgspec.structs.replace(asked, human=judged.human), metrics)
    table.left_out = judged.left_out
    table.notes = [*judged.notes, *table.notes]
    if kind == "flickr8k-expert":  # the coefficient of the published figures
        table.coefficient = "tau_c"
    return table


def _file_table(path: Path, asked: Request, progress: Progress) -> JudgedSamples:
    _require_human(asked)
    if not asked.metrics and not asked.scores:
        raise NothingNamedError("name metrics (--metrics cider_d) or columns of scores (--scores COLUMN)")
    if asked.metrics:
        return _run_table(_scored(path, asked, asked.metrics, progress), asked, asked.metrics)
    _refuse(asked, "columns of scores", "options", "plugins")
    problems, summary = Problems(), Summary()
    source = FileInput(path, None, parse_map(asked.map), asked.allow_partial)
    samples = list(source.samples(problems, summary, asked.limit))
    problems.raise_if_any()
    refuse_empty(summary, str(path))
    return _sample_table(samples, asked, str(path))


def _scored(data: Any, asked: Request, metrics: Sequence[str], progress: Progress) -> Run:
    """A run over the input; a part `bleu.bleu_1` is computed by its metric."""
    names = list(dict.fromkeys(name if name in PRESETS else name.partition(".")[0] for name in metrics))
    return evaluate(
        data,
        metrics=names or None,
        options=asked.options,
        plugins=list(asked.plugins) or None,
        map=asked.map,
        limit=asked.limit,
        allow_partial=asked.allow_partial,
        progress=progress,
    )


def _run_table(run: Run, asked: Request, metrics: Sequence[str]) -> JudgedSamples:
    """The human scores of a run's samples beside its own numbers."""
    source = run.info.source
    table = _sample_table(list(run.samples()), asked, None if source is None else source.data)
    scores = run.scores()
    known = [name for name in scores.column_names if ":" not in name and name not in ("row", "id", "group")]
    for name in _columns_of(run, metrics, known):
        if name not in known:
            raise UnknownNameError("metric of the run", name, known)
        metric = name.partition(".")[0]
        values = floats(scores.column(name))
        entry = run.entries[metric]
        lower = entry.direction == "lower"
        table.metrics[name] = -values if lower else values
        if entry.signature is not None:
            table.signatures[name] = entry.signature
        if lower:
            table.notes.append(f"{name} is better when lower; its values are taken with the opposite sign")
    table.notes += _absent(run, metrics)
    return table


def _columns_of(run: Run, metrics: Sequence[str], known: Sequence[str]) -> list[str]:
    """The run's columns that are asked for: a preset stands for those of its metrics that the run has."""
    if not metrics:
        return [name for name in run.entries if name in known]
    names = [[m for m in PRESETS[name] if m in run.metrics] if name in PRESETS else [name] for name in metrics]
    return list(dict.fromkeys(name for some in names for name in some))


def _absent(run: Run, metrics: Sequence[str]) -> list[str]:
    """What is asked for by a preset and not there."""
    absent = [name for preset in metrics for name in PRESETS.get(preset, ()) if name not in run.metrics]
    return [f"{name} is left out. {resolve(name).unavailable() or 'The run does not hold it.'}" for name in absent]


def _sample_table(samples: Sequence[Sample], asked: Request, file: str | None) -> JudgedSamples:
    """Human scores and columns of scores, from the samples' metadata."""
    for name in asked.lower:
        if name not in asked.scores:
            raise ConfigError(f"--lower {name}: that is none of --scores {','.join(asked.scores)}")
    problems = Problems()
    delimited = file is not None and bare_suffix(Path(file)) in _DELIMITED
    known = sorted(set().union(*(sample.metadata for sample in samples)))
    columns: dict[str, Vector] = {}
    for name in (*asked.human, *asked.scores):
        if name in known:
            columns[name] = np.array([_number(s, name, delimited, problems, file) for s in samples], dtype=np.float64)
        else:
            message = f"no sample has a column {name!r}.{did_you_mean(name, known)}"
            problems.add("UNKNOWN_COLUMN", message, file=file, field=name)
    problems.raise_if_any()
    signs = {name: -1.0 if name in asked.lower else 1.0 for name in asked.scores}
    return JudgedSamples(
        clusters=[f"id {s.id}" if s.group is None else f"group {s.group}" for s in samples],
        human=np.stack([columns[name] for name in asked.human], axis=1),
        metrics={name: signs[name] * columns[name] for name in asked.scores},
        notes=[f"{name} is better when lower; its values are taken with the opposite sign" for name in asked.lower],
    )


def _number(sample: Sample, column: str, delimited: bool, problems: Problems, file: str | None) -> float:
    """The sample's number in a column; NaN where there is none. A CSV file holds numbers as text."""
    value: Any = sample.metadata.get(column)
    if value is None:
        return np.nan
    if delimited and isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    where = {"file": file, "id": sample.id, "field": column, "value": shorten(value)}
    if not is_number(value):
        problems.add("TYPE", f"`{column}` must be a number. Got {shorten(value)} instead.", **where)
    elif not isfinite(value):
        problems.add("NONFINITE", f"`{column}` is {value}", **where)
    else:
        return float(value)
    return np.nan
