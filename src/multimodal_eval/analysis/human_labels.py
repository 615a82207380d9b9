"""The human labels of a run's samples: from a column of their metadata, or from a file of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from hashlib import sha256

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import ComparedSystems, compared_systems
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnknownNameError, did_you_mean, shorten
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.metric import Bounds, Metric
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.scoring import averages
from multimodal_eval.data.labels.human import (
    MIRRORED,
    STORED,
    WEIGHT,
    HumanLabel,
    LabelError,
    label_value,
    probability_of,
    stored_labels,
)
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.stats.intervals import Codes, Vector

__all__ = [
    "HumanLabels",
    "check_human",
    "column_labels",
    "column_of",
    "file_labels",
    "human_columns",
    "labels_of",
    "labels_of_run",
    "refuse_foreign_labels",
]


@dataclass(frozen=True)
class HumanLabels:
    """The labels of all samples of a run for one metric, in input order."""

    column: str  # or the name of the file
    ratings: Vector  # samples x annotators; NaN if there is no label
    probability: Vector | None  # with which a sample was chosen for labelling; NaN if that is not known
    digest: str
    of_file: bool = False  # whether the corrected score is about these samples alone
    bounds: Bounds = (None, None)  # of the metric, and so of the corrected score

    @property
    def values(self) -> Vector:
        """The mean of the annotators' labels; NaN if a sample has none."""
        counts = (~np.isnan(self.ratings)).sum(axis=1)
        sums = np.nansum(self.ratings, axis=1)
        means: Vector = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return means

    def of(self, rows: NDArray[np.bool_] | Codes) -> HumanLabels:
        """The labels of the selected rows."""
        probability = None if self.probability is None else self.probability[rows]
        return changed(self, ratings=self.ratings[rows], probability=probability)


def column_of(config: RunConfig, metric: str) -> str | None:
    """The column with the labels of a metric; None if it has none."""
    shared = config.human.get("") if metric in config.judges else None
    return config.human.get(metric, shared)


def human_columns(config: RunConfig) -> set[str]:
    """The columns that hold human labels or their probabilities, which no model may see."""
    return {name for text in config.human.values() for name in _split(text)} | ({WEIGHT} if config.human else set())


def check_human(config: RunConfig, metrics: Sequence[Metric]) -> None:
    """Refuse labels that no metric of the run can use."""
    by_name = {metric.name: metric for metric in metrics}
    for name, column in config.human.items():
        if not _split(column):
            raise ConfigError("`human` must name a column of the samples. Got an empty name.")
        if name == "" and not any(metric in config.judges for metric in by_name):
            raise ConfigError(
                f"--human {column}: this run has no judge. Name the metric that the labels correct: "
                f"--human METRIC={column}. It computes {', '.join(by_name)}"
            )
        if name and name not in by_name:
            hint = did_you_mean(name, list(by_name))
            raise ConfigError(f"--human {name}={column}: this run does not compute {name!r}.{hint}")
        if name and not averages(by_name[name]):
            raise ConfigError(f"{name} is not a mean over samples, so human labels cannot correct it")
    if config.human and config.strata is not None:
        raise ConfigError("`human` and `strata` exclude each other: weighted means cannot be corrected by labels yet")


def labels_of(folder: RunFolder, info: RunInfo, metric: str) -> HumanLabels | None:
    """The labels that the run has for a metric; None if it has none. Raises InputError with all problems."""
    column = column_of(info.config, metric)
    if column is None:
        return None
    if column == STORED:
        labels = file_labels(folder, info, metric, stored_labels(folder), STORED)
    else:
        labels = column_labels(folder, info, metric, column)
    if info.config.human_target == "population":
        return labels
    if labels.probability is not None:
        raise ConfigError(f"`human_target: file` needs labels of a simple random sample, without the column {WEIGHT}")
    return changed(labels, of_file=True)


def column_labels(folder: RunFolder, info: RunInfo, metric: str, column: str) -> HumanLabels:
    """The labels in a column of the samples' metadata, or in several, one per annotator and separated by commas."""
    names, bounds, problems = _split(column), info.bounds_of(metric), Problems()
    ids: list[str] = []
    ratings: list[list[float]] = []
    weights: list[float] = []
    seen: dict[str, None] = {}
    for part in range(len(info.parts)):
        for sample in folder.read_samples(part, ("metadata",)):
            seen.update(dict.fromkeys(sample.metadata))
            ids.append(sample.id)
            ratings.append([_label(sample.metadata.get(name), bounds, name, sample.id, problems) for name in names])
            weights.append(_weight(sample.metadata.get(WEIGHT), sample.id, problems))
    for name in names:
        if name not in seen:
            known = did_you_mean(name, list(seen)) if seen else " The samples have no further columns."
            hint = f" For labels in a file: mmeval judge calibrate RUN --human {name}" if "." in name else ""
            raise ConfigError(f"--human {name}: no sample has a value in that column.{known}{hint}")
    problems.raise_if_any()
    labels = _labels(column, ids, np.array(ratings, dtype=np.float64), np.array(weights, dtype=np.float64))
    return changed(labels, bounds=bounds)


def file_labels(folder: RunFolder, info: RunInfo, metric: str, labels: Iterable[HumanLabel], name: str) -> HumanLabels:
    """The labels of a file for a metric; all are of this run (`labels_of_run`). `name` is that of the file."""
    ids: list[str] = []
    for part in range(len(info.parts)):
        ids += folder.read_part("samples", part, ["id"]).column("id").to_pylist()
    rows = {sample: row for row, sample in enumerate(ids)}
    problems, bounds = Problems(), info.bounds_of(metric)
    chosen = [each for each in labels if each.metric in (None, metric)]
    annotators = {each: column for column, each in enumerate(dict.fromkeys(label.annotator for label in chosen))}
    ratings = np.full((len(ids), max(1, len(annotators))), np.nan)
    weights = np.full(len(ids), np.nan)
    for label in chosen:  # the last label of an annotator counts
        where = {"file": name, "line": label.line, "id": label.id}
        row = rows.get(label.id)
        if row is None:
            problems.add("UNMATCHED", "the label belongs to no sample of the run.", **where)
            continue
        try:
            value = label_value(label.label, bounds)
        except LabelError as fault:
            problems.add("LABEL", f"{fault}.", **where)
            continue
        ratings[row, annotators[label.annotator]] = np.nan if value is None else value
        if label.human_weight is not None:
            weights[row] = label.human_weight
    problems.raise_if_any()
    return changed(_labels(name, ids, ratings, weights), bounds=bounds)


def _labels(column: str, ids: Sequence[str], ratings: Vector, weights: Vector) -> HumanLabels:
    """The checked labels: some sample has one, and inclusion probabilities are known for all labelled samples or none.

    Probabilities without a label do not matter.
    """
    labelled = ~np.isnan(ratings).all(axis=1)
    if not labelled.any():
        message = f"--human {column}: none of {len(ids):,} samples has a label: every value is null or blank."
        raise InputError([Problem(code="EMPTY", message=message, field=column)])
    weighted = labelled & ~np.isnan(weights)
    if weighted.any() and not weighted[labelled].all():
        without = np.flatnonzero(labelled & ~weighted).tolist()
        message = (
            f"`{WEIGHT}` is missing for {len(without):,} of {int(labelled.sum()):,} labelled samples. "
            "It must have the probability with which each of them was chosen: 1 for samples that are always labelled."
        )
        raise InputError([Problem(code="WEIGHT", message=message, id=ids[without[0]], field=WEIGHT)])
    content = [
        (ids[row], ratings[row].tolist(), float(weights[row]) if weighted.any() else None)
        for row in np.flatnonzero(labelled).tolist()
    ]
    digest = sha256(msgspec.json.encode(sorted(content, key=lambda item: item[0]))).hexdigest()[:12]
    return HumanLabels(column, ratings, weights if weighted.any() else None, digest)


def _label(value: object, bounds: Bounds, column: str, sample: str, problems: Problems) -> float:
    try:
        number = label_value(value, bounds)
    except LabelError as fault:
        problems.add("LABEL", f"`{column}`: {fault}.", id=sample, field=column, value=shorten(value))
        return np.nan
    return np.nan if number is None else number


def _weight(value: object, sample: str, problems: Problems) -> float:
    try:
        number = probability_of(value)
    except LabelError as fault:
        problems.add("WEIGHT", f"{fault}.", id=sample, field=WEIGHT, value=shorten(value))
        return np.nan
    return np.nan if number is None else number


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


# Which labels of a file are about the answers of a run. One file may have the labels of several runs.


def labels_of_run(labels: Sequence[HumanLabel], folder: RunFolder, info: RunInfo) -> list[HumanLabel]:
    """The labels of the run's answers; those of other runs are left out.

    A comparison of two runs is a label for a run in which a judge compares the same two: of the sample that compares
    their answers, and mirrored if that sees them from the other side.
    """
    comparisons = _Comparisons(folder, info)
    kept: list[HumanLabel] = []
    for label in labels:
        if label.baseline is None:
            kept += [label] if label.run is None or _is_same(label.run, folder.address) else []
        elif comparisons.exist:
            kept += comparisons.translated(label)
    return kept


def refuse_foreign_labels(labels: Sequence[HumanLabel], folders: Sequence[RunFolder], file: str) -> None:
    """Refuse labels that do not say of which of several runs they are, and files with labels of other runs alone."""
    names = [folder.name for folder in folders]
    matched = False
    for label in labels:
        if label.baseline is not None:
            matched = True  # of which systems it is, only a run of comparisons can tell
        elif label.run is None:
            if len(folders) > 1:
                raise ConfigError(
                    f"{file}:{label.line}: the label does not say which run its answer is from. With several runs, "
                    f"every label needs the column `run`: {' or '.join(names)}"
                )
            matched = True
        else:
            count = sum(_is_same(label.run, folder.address) for folder in folders)
            if count > 1:
                raise ConfigError(f"{file}:{label.line}: {count} runs of this command are named {shorten(label.run)}")
            matched |= count == 1
    if not matched:
        raise UnknownNameError(f"run of this command ({file}:{labels[0].line})", str(labels[0].run), names)


class _Comparisons:
    """The comparisons in a run, by the sample and the two systems."""

    def __init__(self, folder: RunFolder, info: RunInfo) -> None:
        self._folder, self._parts = folder, len(info.parts)
        self.exist = any(judge.form in COMPARING for judge in info.config.judges.values())
        self._known: dict[str, list[tuple[str, ComparedSystems]]] | None = None  # the original sample -> comparisons
        self._systems: set[tuple[str, str]] = set()

    def _by_sample(self) -> dict[str, list[tuple[str, ComparedSystems]]]:
        if self._known is None:
            self._known = {}
            ids: list[str] = []
            for part in range(self._parts):
                ids += self._folder.read_part("samples", part, ["id"]).column("id").to_pylist()
            for identifier, compared in zip(ids, compared_systems(self._folder, self._parts), strict=True):
                if len(compared.others) == 1:
                    self._known.setdefault(compared.sample, []).append((identifier, compared))
                    self._systems.add((compared.system, compared.others[0]))
        return self._known

    def translated(self, label: HumanLabel) -> list[HumanLabel]:
        """The label as one of a sample of this run; none if the run compares other systems."""
        assert label.run is not None or label.baseline is not None
        system, other = label.run or "", label.baseline or ""
        for identifier, compared in self._by_sample().get(label.id, ()):
            if _is_same(system, compared.system) and _is_same(other, compared.others[0]):
                return [replace(label, id=identifier, run=None, baseline=None)]
            if _is_same(system, compared.others[0]) and _is_same(other, compared.system):
                return [replace(label, id=identifier, label=_mirrored(label), run=None, baseline=None)]
        is_of_these = any({_tail(system), _tail(other)} == {_tail(a), _tail(b)} for a, b in self._systems)
        return [label] if is_of_these else []  # the sample is not in this run, which is an error later on


def _mirrored(label: HumanLabel) -> str:
    word = str(label.label).strip().lower()
    if word not in MIRRORED:
        raise ConfigError(f"line {label.line}: the label of a comparison must be win, tie or loss. Got {shorten(word)}")
    return MIRRORED[word]


def _is_same(name: str, path: str) -> bool:
    """Whether a name, or the end of a path, names a folder."""
    ends = [text.rstrip("/").split("/") for text in (name, path)]
    length = min(map(len, ends))
    return ends[0][-length:] == ends[1][-length:]


def _tail(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]
