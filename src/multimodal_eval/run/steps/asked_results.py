"""What the results of a run say more if it asked a model or a judge, or has human labels.

Epochs, an early stop of generation or judging, and labels that correct a mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isclose

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Averaging, Column
from multimodal_eval.analysis.human_labels import HumanLabels, column_of, human_columns, labels_of
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.records import JudgingInfo, RunInfo
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.core.scoring import averages
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.steps.aggregate import EPOCH_SD
from multimodal_eval.stats.betting import confidence_sequence, sequence_method
from multimodal_eval.stats.estimates import between_epochs, is_binary, ks_of, pass_at_k, reduced

__all__ = ["AskedAdditions", "refuse_bad_labels"]


@dataclass(frozen=True)
class AskedAdditions:
    """What the settings and the stops of a run add to its results."""

    folder: RunFolder
    info: RunInfo

    def labels(self, metric: str) -> HumanLabels | None:
        """The human labels of a metric."""
        return labels_of(self.folder, self.info, metric) if self.info.config.human else None

    def entry(self, entry: Figure, metric: Metric, column: Column, averaging: Averaging) -> Figure:
        """The entry with what epochs, and an early stop of generation or judging, add to a mean."""
        config = self.info.config
        if metric.name in config.judges:
            entry = with_decision(entry, metric.name, self.info)
        if config.generation is None or not averages(metric):
            return entry
        values = np.where(column.scored, column.values, np.nan)
        if config.generation.epochs > 1:
            entry = with_epochs(entry, values, averaging, config, self.answers)
        return entry if config.generation.until is None else with_sequence(entry, metric.name, values, self.info)

    def answers(self) -> list[str]:
        """The answers of the model, without differences of case and space."""
        parts = (self.folder.read_part("samples", part, ["generated_answer"]) for part in range(len(self.info.parts)))
        texts = chain.from_iterable(part.column("generated_answer").to_pylist() for part in parts)
        return [" ".join((text or "").casefold().split()) for text in texts]

    def notes(self) -> list[str]:
        """What the results say about stops and labels."""
        info, draws = self.info, 0 if self.info.generation is None else self.info.generation.second_draws
        notes: list[str] = []
        if draws:
            what = "answers are second draws: the first was empty, cut off or refused"
            notes.append(f"{draws:,} of {sum(info.parts):,} {what}")
        if info.config.generation is not None and info.config.generation.until is not None:
            notes += notes_of(info)
        notes += [note for name, judging in info.judging.items() if judging.pairs for note in _notes(name, judging)]
        return [*notes, *notes_on_labels(info)] if info.config.human else notes


def with_epochs(
    entry: Figure,
    values: NDArray[np.float64],
    averaging: Averaging,
    config: RunConfig,
    answers: Callable[[], Sequence[str]],
) -> Figure:
    """The entry of a metric with pass@k, if its values are 0 or 1, reducers, and the standard deviation between epochs.

    `values` has one row per sample and epoch; the epochs of a sample follow each other.
    """
    epochs = 1 if config.generation is None else config.generation.epochs
    if epochs == 1 or len(values) % epochs:
        return entry
    table = values.reshape(-1, epochs)
    parts: dict[str, Figure] = {}
    by_sample = averaging.of(np.arange(0, len(values), epochs))  # the groups of the samples
    reducers = [] if config.generation is None else config.generation.reducers
    reductions: dict[str, NDArray[np.float64]] = {}
    if is_binary(values):
        reductions = {f"pass@{k}": pass_at_k(table, k) for k in ks_of(epochs)}
    for name in reducers:
        if is_binary(values) or not name.startswith(("at_least_", "pass^")):  # which count right answers
            keys = np.reshape(answers(), table.shape).tolist() if name == "majority" else ()
            reductions[name] = reduced(table, name, keys)
    for name, each in reductions.items():
        kept = np.isfinite(each)
        if kept.any():
            aggregate = _chance if is_binary(values) else mean_estimate
            part = _separate(by_sample.of(kept)).figure(aggregate, Rows(each[kept]))
            counts = {} if np.isfinite(values).all() else {"n_scored": int(kept.sum()), "n_total": len(kept)}
            parts[name] = msgspec.structs.replace(part, **counts)
    if "pass@1" in parts:
        first_try = parts["pass@1"].value
        if first_try is not None and entry.value is not None and isclose(first_try, entry.value, rel_tol=1e-12):
            parts["pass@1"] = entry.bare  # the same figure, from all answers
    deviation = between_epochs(table)
    if deviation is not None:
        method = f"standard deviation of the means of {epochs} epochs"
        parts[EPOCH_SD] = Figure(value=deviation, stderr=None, low=None, high=None, method=method)
    return msgspec.structs.replace(entry, parts={**entry.parts, **parts})


def _chance(rows: Rows) -> Estimate:
    return replace(mean_estimate(rows), bounds=(0.0, 1.0))


def _separate(averaging: Averaging) -> Averaging:
    """The averaging without clusters, if each has one row."""
    clusters = averaging.clusters
    if clusters is None or len(np.unique(clusters)) < len(clusters):
        return averaging
    return msgspec.structs.replace(averaging, clusters=None)


def with_sequence(entry: Figure, name: str, values: NDArray[np.float64], info: RunInfo) -> Figure:
    """The entry of the metric that generation was stopped by, with an interval that is valid at any stopping time."""
    config, generation = info.config.generation, info.generation
    if config is None or generation is None or not generation.stopped or generation.population is None:
        return entry
    low, high = info.bounds_of(name)
    if config.until is None or config.until.metric != name or low is None or high is None or entry.value is None:
        return entry
    interval = confidence_sequence(
        np.where(np.isfinite(values), values, np.nan),
        generation.population,
        (float(low), float(high)),
        width=config.until.width,
        level=config.until.confidence,
        size=config.epochs,
    )
    return msgspec.structs.replace(entry, stderr=None, low=interval.low, high=interval.high, method=interval.method)


def notes_of(info: RunInfo) -> list[str]:
    """What the results say about the stop."""
    config, generation = info.config.generation, info.generation
    if config is None or generation is None or config.until is None:
        return []
    rows, total = sum(info.parts), sum(info.parts) if info.counts is None else info.counts.samples
    if not generation.stopped:
        return [f"all {rows // config.epochs:,} samples were needed: {config.until.metric} was not certain before"]
    drawn, samples, name = rows // config.epochs, total // config.epochs, config.until.metric
    saved = f"{1 - rows / total:.0%} of the requests saved"
    notes = [f"stopped after {drawn:,} of {samples:,} samples, {saved}: {generation.stopped}"]
    if len(info.metrics) > 1:
        notes.append(f"the interval of {name} accounts for the stop; those of other metrics do not")
    return notes


def with_decision(entry: Figure, name: str, info: RunInfo) -> Figure:
    """The win rate of a pair whose comparisons stopped early, with an interval that is valid at any stopping time."""
    judge, judging = info.config.judges.get(name), info.judging.get(name)
    if judge is None or judge.until is None or judging is None or len(judging.pairs) != 1:
        return entry
    (pair,) = judging.pairs
    if not pair.is_stopped:
        return entry
    method = sequence_method(judge.until.confidence, pair.compared, pair.population)
    return msgspec.structs.replace(entry, value=pair.win_rate, stderr=None, low=pair.low, high=pair.high, method=method)


def _notes(name: str, judging: JudgingInfo) -> list[str]:
    pairs = judging.pairs
    compared, population = sum(pair.compared for pair in pairs), sum(pair.population for pair in pairs)
    if not any(pair.is_stopped for pair in pairs):
        return [f"all {population:,} comparisons were needed"]
    if len(pairs) == 1:
        return [
            f"stopped after {compared:,} of {population:,} pairs: the others were not needed",
            f"the interval of {name} accounts for the stop; those of its parts do not",
        ]
    stopped = sum(pair.is_stopped for pair in pairs)
    saved = f"{1 - compared / population:.0%} of the comparisons saved"
    which = f"{stopped} of {len(pairs)} pairs of systems were decided before all samples were compared"
    return [
        f"{compared:,} of {population:,} comparisons, {saved}: {which}",
        "the intervals of the pairs account for the stop; those of the results do not",
    ]


def notes_on_labels(info: RunInfo) -> list[str]:
    """What the results say about labels that were there before the answers."""
    if info.generation is None or info.rescored_from is not None:
        return []
    columns = dict.fromkeys(column_of(info.config, name) for name in info.metrics)
    return [
        f"the human labels in {column!r} were in the input, before the answers were generated: "
        "they must be labels of these answers"
        for column in columns
        if column is not None
    ]


# `metadata`, but not `metadata.key` or `metadata["key"]`. Templates call no functions.
_ALL_METADATA = re.compile(r"""\bmetadata\b(?!\s*\.\s*\w|\s*\[\s*['"])""")
_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)  # what a template computes


def refuse_bad_labels(plan: Plan, folder: RunFolder, info: RunInfo) -> None:
    """Refuse labels that are not on the scale of their metric, columns without labels, and prompts that show labels."""
    if not plan.config.human:
        return
    _refuse_shown_labels(plan.config)
    for metric in plan.metrics:
        labels_of(folder, info, metric.name)


def _refuse_shown_labels(config: RunConfig) -> None:
    """Refuse a template that writes a column of human labels, or all metadata, into a prompt.

    Judges see no metadata but the answers that are compared.
    """
    columns = human_columns(config)
    template = None if config.generation is None else config.generation.template
    code = " ".join(_CODE.findall(template or ""))
    for column in sorted(columns):
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", code):
            raise ConfigError(f"the prompt names {column!r}, a column of human labels. No model may see it")
    if _ALL_METADATA.search(code):
        labels = ", ".join(sorted(columns))
        raise ConfigError(f"the prompt writes all metadata, also the human labels ({labels}). Name what it needs")
    for name, judge in config.judges.items():
        if judge.baseline in columns:
            raise ConfigError(f"the judge {name!r} shows {judge.baseline!r}, which is a column of human labels")
