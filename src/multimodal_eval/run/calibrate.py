"""Correct the scores of finished runs by human labels. Nothing is asked, and no score is computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from multimodal_eval.analysis.calibrated import corrected_estimates, why_not_corrected
from multimodal_eval.analysis.human_labels import (
    HumanLabels,
    column_labels,
    file_labels,
    labels_of_run,
    refuse_foreign_labels,
)
from multimodal_eval.analysis.judge_calibration import calibration
from multimodal_eval.analysis.pairing import (
    pair_runs,
    require_same_data,
    require_same_signatures,
    run_names,
    shared_clusters,
)
from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.figure import Figure, without_value
from multimodal_eval.core.judge_records import Calibration
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.labels.human import STORED, HumanLabel, read_labels
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.rescore import Earlier, rescoring_plan
from multimodal_eval.run.start import start
from multimodal_eval.stats.paired import compare_pairs
from multimodal_eval.stats.randomization import all_pairs

__all__ = [
    "CalibratedDifference",
    "CalibratedRun",
    "Labels",
    "calibrate",
    "calibrated_metrics",
    "calibrated_run",
    "differences",
    "labels_for",
    "labels_from",
    "of_run",
]


@dataclass(frozen=True)
class Labels:
    """Human labels as they were named: a column of the samples, or a file."""

    name: str
    records: list[HumanLabel] | None = None  # of a file
    left_out: int = 0  # labels of the file that are of other runs


@dataclass(frozen=True, repr=False)
class CalibratedRun(Displayed):
    """A run and what human labels say about its metrics."""

    name: str
    run: Run
    metrics: dict[str, Calibration]
    labels: dict[str, HumanLabels]
    left_out: int = 0  # labels of the file that are of other runs


class CalibratedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The second run minus the first, corrected by human labels."""

    metric: str
    first: str
    second: str
    difference: Figure


def labels_from(human: str | Path) -> Labels:
    """A file of labels if there is one with that name, or else a column of the samples' metadata."""
    path = Path(human)
    if path.is_file():
        return Labels(path.name, read_labels(path))
    if isinstance(human, Path) or path.suffix in (".jsonl", ".json", ".csv", ".tsv", ".parquet"):
        raise ConfigError(f"the file of human labels {str(human)!r} does not exist")
    return Labels(human)


def calibrate(
    runs: Sequence[Location | Run], human: str | Path, *, metrics: Sequence[str] | None = None
) -> list[CalibratedRun]:
    """What human labels say about metrics of runs: the corrected scores, agreement, a calibration curve.

    `human` is a column of the samples or a file of labels. By default, the metrics are those of judges, or the
    headline if a run has no judge.
    """
    labels = labels_from(human)
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    names = run_names(opened)
    if labels.records is not None:
        refuse_foreign_labels(labels.records, [run.folder for run in opened], labels.name)
    return [_calibrated(run, name, labels, metrics) for run, name in zip(opened, names, strict=True)]


def _calibrated(run: Run, name: str, labels: Labels, metrics: Sequence[str] | None) -> CalibratedRun:
    labels = of_run(labels, run)
    calibrations: dict[str, Calibration] = {}
    by_metric: dict[str, HumanLabels] = {}
    for metric in calibrated_metrics(run, labels, metrics):
        by_metric[metric] = labels_for(run, metric, labels)
        calibrations[metric] = calibration(run, metric, by_metric[metric])
    return CalibratedRun(name, run, calibrations, by_metric, labels.left_out)


def of_run(labels: Labels, run: Run) -> Labels:
    """Only the labels of the answers of a run. Raises UnknownNameError if a file has labels of other runs alone."""
    if labels.records is None:
        return labels
    records = labels_of_run(labels.records, run.folder, run.info)
    if not records:
        first = labels.records[0]
        raise UnknownNameError(f"run of this command ({labels.name}:{first.line})", str(first.run), [run.folder.name])
    return replace(labels, records=records, left_out=len(labels.records) - len(records))


def labels_for(run: Run, metric: str, labels: Labels) -> HumanLabels:
    """The labels of a metric of a run; those of a file come from `of_run`."""
    if labels.records is None:
        return column_labels(run.folder, run.info, metric, labels.name)
    return file_labels(run.folder, run.info, metric, labels.records, labels.name)


def calibrated_metrics(run: Run, labels: Labels, chosen: Sequence[str] | None = None) -> list[str]:
    """The metrics that the labels are about: the chosen ones, those that a file names, the judges, or the headline."""
    named = dict.fromkeys(label.metric for label in labels.records or () if label.metric is not None)
    names = list(chosen or named) or [name for name in run.metrics if name in run.info.config.judges]
    names = names or [name for name in (run.headline,) if name is not None and name != COMPOSITE]
    for name in names:
        if name not in run.metrics:
            raise UnknownNameError("metric of the run", name, run.metrics)
        if name not in run.info.means:
            raise ConfigError(f"{name} is not a mean over samples, so human labels cannot correct it")
        if run.info.config.strata is not None:
            raise ConfigError("weighted means cannot be corrected by human labels yet, and this run has strata")
    if not names:
        raise ConfigError(f"name the metric that the labels correct: --metrics {'|'.join(run.metrics)}")
    return names


def differences(results: Sequence[CalibratedRun]) -> list[CalibratedDifference]:
    """The corrected differences of all pairs of runs, which must have the same samples, as `compare` shows them."""
    if len(results) < 2:
        return []
    runs, names = [result.run for result in results], [result.name for result in results]
    order = pair_runs(runs)[1]
    require_same_data(runs, names, order)
    clusters = shared_clusters(runs, names, order)
    pairs: list[CalibratedDifference] = []
    for metric in results[0].metrics:
        if not all(metric in result.metrics for result in results):
            continue
        require_same_signatures(runs, names, metric)
        values = [
            float_values(run.scores([metric]).column(metric))[rows] for run, rows in zip(runs, order, strict=True)
        ]
        scored = ~np.isnan(values).any(axis=0)
        labels = [result.labels[metric].of(rows[scored]) for result, rows in zip(results, order, strict=True)]
        codes = None if clusters is None else clusters[scored]
        estimates = corrected_estimates([each[scored] for each in values], labels, codes)
        places = all_pairs(len(results))
        figures = [without_value(f"no calibrated value: {why_not_corrected(names, labels)}")] * len(places)
        if estimates is not None:
            figures = [each.difference for each in compare_pairs(estimates, places, codes)]
        for (a, b), difference in zip(places, figures, strict=True):
            pairs.append(CalibratedDifference(metric=metric, first=names[a], second=names[b], difference=difference))
    return pairs


def calibrated_run(
    run: Location | Run,
    human: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
) -> Run:
    """A new run with the same scores, and the labels: of a file, its content is recorded."""
    old = run if isinstance(run, Run) else Run(run)
    labels = of_run(labels_from(human), old)
    column = labels.name if labels.records is None else STORED
    settings = {"human": dict.fromkeys(calibrated_metrics(old, labels, metrics), column)}
    plan = rescoring_plan(old, settings)
    records = None if labels.records is None else [_recorded(label) for label in labels.records]
    return Run(*start(plan, Earlier(old, plan, records), output, progress=progress, overwrite=overwrite))


def _recorded(label: HumanLabel) -> HumanLabel:
    """The label without its line, which is that of another file, and without the run, which is the one it is in."""
    return msgspec.structs.replace(label, line=None, run=None)
