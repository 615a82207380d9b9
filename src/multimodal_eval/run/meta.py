"""Meta-evaluation of published sets of judgments, a file with human scores, or a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.human_labels import column_of
from multimodal_eval.analysis.judge_calibration import calibration
from multimodal_eval.analysis.meta import JudgedSamples, MetaEvaluation, MetaSuite, meta_evaluation
from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.errors import (
    ConfigError,
    InputError,
    NothingNamedError,
    Problem,
    UnknownNameError,
    did_you_mean,
    shorten,
)
from multimodal_eval.core.metric import is_number, metric_and_part
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.labels.human import WORDS
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.flickr8k import ANNOTATIONS, formats_in, read_flickr8k
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.judged_captions import SUFFIXES, JudgedSet, form_of, read_judged, sets_in
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, located
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.evaluation.tasks_config import PRESETS
from multimodal_eval.run.calibrate import calibrated_metrics, labels_for, labels_from, of_run
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.stats.correlation import COEFFICIENTS
from multimodal_eval.stats.intervals import Vector

__all__ = ["Request", "meta_evaluate", "meta_suite"]

FLICKR8K_METRICS = ("bleu.bleu_1", "coco")
# What a form is compared by: the coefficient of the published figures.
COMPARED = {
    "ratings": "tau_c",
    "pairs": "accuracy",
    "foils": "accuracy",
    "tokens": "auroc",
    "systems": "system_spearman",
}
_DELIMITED = (".csv", ".tsv")
_FLAGS = {"format_in": "--format-in", "options": "--option", "plugins": "--plugin"}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The human scores, the metrics and the settings of a meta-evaluation."""

    human: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()  # those of `scores` for which lower is better
    format_in: str | None = None
    coefficient: str | None = None  # by which the metrics are compared
    options: dict[str, JsonObject] | None = None
    plugins: tuple[str, ...] = ()
    map: dict[str, str] | None = None
    limit: int | None = None
    allow_partial: bool = False
    format: str | None = None  # of a log of another harness; None: by its content


def meta_evaluate(data: Location, request: Request | None = None, *, progress: Progress = silent) -> MetaEvaluation:
    """Compute every coefficient of every metric with its interval, and compare all pairs of metrics.

    `data` is a folder with the Flickr8k judgments, a published set of judgments, a file with columns of human scores,
    or a run folder.
    """
    request = request or Request()
    if request.coefficient is not None and request.coefficient not in COEFFICIENTS:
        raise UnknownNameError("coefficient", request.coefficient, COEFFICIENTS)
    if set(request.metrics) & set(request.scores):
        raise ConfigError("a metric and a column of scores have the same name")
    table = _table(located(data), request, progress)
    return meta_evaluation(table, request.coefficient, allow_partial=request.allow_partial, progress=progress)


def meta_suite(data: Sequence[Location], request: Request | None = None, *, progress: Progress = silent) -> MetaSuite:
    """The meta-evaluation of every set: files, folders with such files, and folders with the Flickr8k judgments."""
    request = request or Request()
    _refuse(request, "several sets of judgments", "human", "scores", "lower", "map", "limit", "format_in")
    evaluations: list[MetaEvaluation] = []
    for place in map(located, data):
        if isinstance(place, Path) and place.is_dir() and not (place / "run.json").is_file():
            kinds = [msgspec.structs.replace(request, format_in=kind) for kind in formats_in(place)]
            evaluations += [meta_evaluate(place, kind, progress=progress) for kind in kinds]
            files = sets_in(place)
            if not kinds and not files:
                raise _no_judgments(place, [])
        else:
            files = [Path(place)]
        evaluations += [meta_evaluate(file, request, progress=progress) for file in files]
    return MetaSuite(evaluations)


def is_suite(data: Sequence[Location]) -> bool:
    """Whether the places have several sets of judgments: several places, or a folder with files of judgments."""
    first = located(data[0])
    if len(data) > 1 or isinstance(first, str):
        return len(data) > 1
    return first.is_dir() and not (first / "run.json").is_file() and bool(sets_in(first))


def _table(path: Location, request: Request, progress: Progress) -> JudgedSamples:
    if isinstance(path, str) or (path / "run.json").is_file():  # a URL can only be a run
        _refuse(request, "a run folder", "format_in", "options", "map", "limit", "plugins")
        _require_human(request)
        return _labelled_table(Run(path), request)
    if path.is_dir():
        return _flickr8k_table(path, request, progress)
    if request.format_in is not None:
        raise ConfigError(f"--format-in {request.format_in} needs a folder, but {path} is not a folder")
    if not request.human and path.is_file() and bare_suffix(path) in SUFFIXES and form_of(path):
        return _judged_table(read_judged(path), request, progress)
    return _file_table(path, request, progress)


def _judged_table(judged: JudgedSet, request: Request, progress: Progress) -> JudgedSamples:
    _refuse(request, "a published set of judgments", "scores", "lower", "map", "limit")
    metrics = request.metrics or FLICKR8K_METRICS
    run = _scored(judged.samples, request, metrics, progress)
    table = _run_table(run, msgspec.structs.replace(request, human=judged.human), metrics)
    table.name, table.form, table.coefficient = judged.name, judged.form, COMPARED[judged.form]
    table.choices, table.wrong_words = judged.choices, judged.wrong_words
    return table


def _labelled_table(run: Run, request: Request) -> JudgedSamples:
    """The scores of a run with labels in columns of its samples or in a file, and how well judges are calibrated."""
    labels = of_run(labels_from(",".join(request.human)), run)
    if labels.records is None:
        table = _run_table(run, request, request.metrics)
        judged = [name for name in run.metrics if column_of(run.info.config, name) or name in run.info.config.judges]
        chosen = [name for name in request.metrics or judged if name in judged]
    else:
        chosen = calibrated_metrics(run, labels, request.metrics)
        ratings = [labels_for(run, name, labels).ratings for name in chosen]
        if any(not np.array_equal(ratings[0], each, equal_nan=True) for each in ratings[1:]):
            raise ConfigError(
                f"{labels.name} has different labels for {' and '.join(chosen)}. Name one: --metrics NAME"
            )
        table = _run_table(run, msgspec.structs.replace(request, human=()), chosen)
        table.human = ratings[0]
    for name in chosen if run.info.config.strata is None else ():
        if name in run.info.means:
            table.calibrations[name] = calibration(run, name, labels_for(run, name, labels))
    return table


def _require_human(request: Request) -> None:
    if not request.human:
        raise NothingNamedError("name the column of human scores: --human COLUMN")


def _refuse(request: Request, what: str, *settings: str) -> None:
    """Refuse settings that would have no effect."""
    for setting in settings:
        if getattr(request, setting):
            raise ConfigError(f"{_FLAGS.get(setting, f'--{setting}')} has no effect on {what}")


def _flickr8k_table(folder: Path, request: Request, progress: Progress) -> JudgedSamples:
    present = formats_in(folder)
    kind = request.format_in or (present[0] if len(present) == 1 else None)
    if kind is None:
        raise _no_judgments(folder, present)
    if kind not in ANNOTATIONS:
        raise UnknownNameError("format", kind, ANNOTATIONS)
    _refuse(request, "the Flickr8k judgments", "human", "scores", "lower", "map", "limit")
    judged = read_flickr8k(folder, kind, allow_partial=request.allow_partial)
    metrics = request.metrics or FLICKR8K_METRICS
    run = _scored(judged.samples, request, metrics, progress)
    table = _run_table(run, msgspec.structs.replace(request, human=judged.human), metrics)
    table.left_out = judged.left_out
    table.notes = [*judged.notes, *table.notes]
    table.name = kind
    if kind == "flickr8k-expert":  # the coefficient of the published figures
        table.coefficient = "tau_c"
    return table


def _no_judgments(folder: Path, present: Sequence[str]) -> InputError:
    has = " and ".join(ANNOTATIONS[kind] for kind in present)
    has = has or f"neither run.json nor {', '.join(ANNOTATIONS.values())} nor files of judgments"
    choice = f" Choose with --format-in {' or '.join(present)}." if present else ""
    return InputError([Problem(code="FORMAT", message=f"the folder has {has}.{choice}", file=str(folder))])


def _file_table(path: Path, request: Request, progress: Progress) -> JudgedSamples:
    _require_human(request)
    if not request.metrics and not request.scores:
        raise NothingNamedError("name metrics (--metrics cider_d) or columns of scores (--scores COLUMN)")
    if request.metrics:
        return _run_table(_scored(path, request, request.metrics, progress), request, request.metrics)
    _refuse(request, "columns of scores", "options", "plugins")
    problems, summary = Problems(), Summary()
    source = FileInput(path, None, parse_map(request.map), request.allow_partial, log=request.format)
    samples = list(source.samples(problems, summary, request.limit))
    problems.raise_if_any()
    refuse_empty(summary, str(path))
    return _sample_table(samples, request, str(path))


def _scored(data: Any, request: Request, metrics: Sequence[str], progress: Progress) -> Run:
    """A run on the input; a part such as `bleu.bleu_1` is computed by its metric."""
    names = list(dict.fromkeys(name if name in PRESETS else name.partition(".")[0] for name in metrics))
    return evaluate(
        data,
        metrics=names or None,
        options=request.options,
        plugins=list(request.plugins) or None,
        map=request.map,
        limit=request.limit,
        allow_partial=request.allow_partial,
        format=request.format,
        allow_empty=True,
        progress=progress,
    )


def _run_table(run: Run, request: Request, metrics: Sequence[str]) -> JudgedSamples:
    """The human scores of a run's samples and the scores of the run."""
    source = run.info.source
    table = _sample_table(list(run.samples()), request, None if source is None else source.data)
    scores = run.scores()
    known = [name for name in scores.column_names if ":" not in name and name not in ("row", "id", "group")]
    for name in _columns_of(run, metrics, known):
        if name not in known:
            raise UnknownNameError("metric of the run", name, known)
        metric, _ = metric_and_part(name, run.entries)
        values = float_values(scores.column(name))
        entry = run.entries[metric]
        lower = entry.direction == "lower"
        table.metrics[name] = -values if lower else values
        if entry.signed is not None:
            table.signatures[name] = entry.signed
        if lower:
            table.notes.append(f"lower values of {name} are better; their sign is reversed")
    table.notes += _absent(run, metrics)
    return table


def _columns_of(run: Run, metrics: Sequence[str], known: Sequence[str]) -> list[str]:
    """The requested columns of the run; a preset selects those of its metrics that the run has."""
    if not metrics:
        return [name for name in run.entries if name in known]
    names = [[m for m in PRESETS[name] if m in run.metrics] if name in PRESETS else [name] for name in metrics]
    return list(dict.fromkeys(name for group in names for name in group))


def _absent(run: Run, metrics: Sequence[str]) -> list[str]:
    """Notes on the metrics of presets that the run does not have."""
    absent = [name for preset in metrics for name in PRESETS.get(preset, ()) if name not in run.metrics]
    return [f"{name} is left out. {resolve(name).unavailable() or 'The run does not have it.'}" for name in absent]


def _sample_table(samples: Sequence[Sample], request: Request, file: str | None) -> JudgedSamples:
    """Human scores and columns of scores, from the samples' metadata."""
    for name in request.lower:
        if name not in request.scores:
            raise ConfigError(f"--lower {name}: not one of --scores {','.join(request.scores)}")
    problems = Problems()
    delimited = file is not None and bare_suffix(Path(file)) in _DELIMITED
    known = sorted(set().union(*(sample.metadata for sample in samples)))
    columns: dict[str, Vector] = {}
    for name in (*request.human, *request.scores):
        if name in known:
            columns[name] = np.array([_number(s, name, delimited, problems, file) for s in samples], dtype=np.float64)
        else:
            message = f"no sample has a column {name!r}.{did_you_mean(name, known)}"
            problems.add("UNKNOWN_COLUMN", message, file=file, field=name)
    problems.raise_if_any()
    signs = {name: -1.0 if name in request.lower else 1.0 for name in request.scores}
    return JudgedSamples(
        clusters=[f"id {s.id}" if s.group is None else f"group {s.group}" for s in samples],
        human=np.stack([columns[name] for name in request.human] or [np.full(len(samples), np.nan)], axis=1),
        metrics={name: signs[name] * columns[name] for name in request.scores},
        notes=[f"lower values of {name} are better; their sign is reversed" for name in request.lower],
    )


def _number(sample: Sample, column: str, delimited: bool, problems: Problems, file: str | None) -> float:
    """The sample's number in a column; NaN if it is missing. In a CSV file numbers are text."""
    value: Any = sample.metadata.get(column)
    if value is None:
        return np.nan
    if delimited and isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, str):  # yes and no, win, tie and loss
        value = WORDS.get(value.strip().lower(), value)
    where = {"file": file, "id": sample.id, "field": column, "value": shorten(value)}
    if not is_number(value):
        problems.add("TYPE", f"`{column}` must be a number. Got {shorten(value)} instead.", **where)
    elif not isfinite(value):
        problems.add("NONFINITE", f"`{column}` is {value}", **where)
    else:
        return float(value)
    return np.nan
