"""Which samples of a run humans should label next, and how narrow the corrected interval will be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import cluster_codes, read_scores
from multimodal_eval.analysis.human_labels import HumanLabels
from multimodal_eval.analysis.judge_verdicts import stored_verdicts
from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.labels.human import WEIGHT
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.calibrate import Labels, calibrated_metrics, labels_for, labels_from, of_run
from multimodal_eval.stats.intervals import ROUNDING, Codes, Vector
from multimodal_eval.stats.label_budget import (
    LabelBudget,
    budget_of,
    combined_probabilities,
    drawn,
    expected_errors,
    gain,
    selection_probabilities,
)
from multimodal_eval.stats.ppi import ppi_mean

__all__ = ["Forecast", "LabelPlan", "plan_labels"]

_SHOWN = ("question", "prompt", "choices", "image", "images", "audio", "video")  # of a sample, beside the answers
_SAME = 1e-9  # probabilities that differ less are equal
_LONGEST = 2000  # letters of a medium's address; longer ones are the medium itself

Rows = NDArray[np.int64]


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Half the width of the corrected 95% interval, as far as the labels so far tell."""

    labels: int  # that there will be
    half_width: float
    uniform: float  # with as many labels, drawn uniformly
    alone: float  # with as many labels, and without a judge
    worth: float  # labels without a judge that would be as good
    calls_per_label: float | None  # how many more judged samples are as good as one more label
    correlation: float
    needed: int | None  # labels for the wanted width; None if none is wanted, or no number of labels is enough


class LabelPlan(Displayed, msgspec.Struct, frozen=True, kw_only=True):
    """The samples to label, and what is known about them."""

    metric: str
    samples: int  # with a score
    known: int  # labels so far
    drawn: int
    half_width: float | None  # of the labels so far
    forecast: Forecast | None
    notes: list[str]


@dataclass(frozen=True)
class _Draw:
    """What is written: rows of the run, and the probability of every row of the run to be labelled."""

    rows: Rows  # to label, in random order
    probability: Vector
    labels: Labels | None
    values: Vector  # the labels so far; NaN if there is none


@dataclass(frozen=True)
class _Judged:
    """The scored samples."""

    rows: Rows  # of the run
    values: Vector
    clusters: Codes | None
    bounds: tuple[float, float]
    spread: Vector
    human: Vector
    probability: Vector | None  # of the labels so far

    @property
    def known(self) -> int:
        return int((~np.isnan(self.human)).sum())


def plan_labels(
    run: Location | Run,
    *,
    metric: str | None = None,
    labels: int | None = None,
    human: str | Path | None = None,
    width: float | None = None,
    seed: int = 0,
    output: Path | None = None,
) -> LabelPlan:
    """Draw samples for labelling, where the judge is likely to be wrong, and write them to `output` (JSONL).

    `human` are the labels so far: a column of the samples, or a file. `width` is the wanted half width of the corrected
    interval, from which the number of labels follows if there are labels so far. `labels` is the number of new labels.
    """
    opened = run if isinstance(run, Run) else Run(run)
    if labels is None and width is None:
        raise ConfigError("say how many samples should be labelled (--labels), or how narrow the interval should be")
    named = None if human is None else of_run(labels_from(human), opened)
    (name,) = _one_metric(opened, named, metric)
    known = None if named is None else labels_for(opened, name, named)
    judged = _judged(opened, name, known)
    budget = budget_of(judged.values, judged.human, clusters=judged.clusters, probability=judged.probability)
    errors = _errors(judged)
    count = _number_of_labels(judged, errors, budget, labels, width)
    draw, notes = _drawn(judged, errors, count, seed, sum(opened.info.parts), named)
    plan = LabelPlan(
        metric=name,
        samples=len(judged.rows),
        known=judged.known,
        drawn=len(draw.rows),
        half_width=_half_width(judged),
        forecast=None
        if budget is None
        else _forecast(budget, judged.known, count, _gain(judged, errors, count), width),
        notes=notes,
    )
    if output is not None:
        _write(opened, name, draw, output)
    return plan


def _one_metric(run: Run, labels: Labels | None, metric: str | None) -> list[str]:
    names = calibrated_metrics(run, labels or Labels(""), None if metric is None else [metric])
    if len(names) > 1:
        raise ConfigError(f"the run has several judges. Name the metric: --metrics {'|'.join(names)}")
    return names


def _judged(run: Run, metric: str, labels: HumanLabels | None) -> _Judged:
    table = read_scores(run.folder, len(run.info.parts), [metric, "group"])
    values, clusters = float_values(table.column(metric)), cluster_codes(table.column("group"))
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        raise ConfigError(f"no sample has a score of {metric}: there is nothing to label")
    low, high = run.info.bounds_of(metric)
    scored = values[rows]
    bounds = float(scored.min()) if low is None else low, float(scored.max()) if high is None else high
    spread = np.zeros(len(values))
    if metric in run.info.judging and metric in run.info.config.judges:
        verdicts = stored_verdicts(run.folder, run.info, metric).values.reshape(len(values), -1)
        complete = ~np.isnan(verdicts).any(axis=1)
        spread[complete] = verdicts[complete].std(axis=1)
    kept = None if labels is None else labels.of(rows)
    return _Judged(
        rows,
        scored,
        None if clusters is None else clusters[rows],
        bounds,
        spread[rows],
        np.full(len(rows), np.nan) if kept is None else kept.values,
        None if kept is None else kept.probability,
    )


def _errors(judged: _Judged) -> Vector:
    """The expected errors of the judge; all equal if there is nothing to tell them by."""
    low, high = judged.bounds
    if high <= low:
        return np.ones(len(judged.values))
    return expected_errors(judged.values, judged.bounds, spread=judged.spread, human=judged.human)


def _gain(judged: _Judged, errors: Vector, count: int) -> float:
    """The variance of new labels, compared with labels that are drawn uniformly."""
    left = errors[np.isnan(judged.human)]
    return gain(left, selection_probabilities(left, count))


def _number_of_labels(
    judged: _Judged, errors: Vector, budget: LabelBudget | None, labels: int | None, width: float | None
) -> int:
    left = len(judged.rows) - judged.known
    if not left:
        raise ConfigError(f"all {judged.known:,} samples with a score have a label: there is nothing left to label")
    if labels is not None:
        if not 0 < labels <= left:
            raise ConfigError(f"--labels must be between 1 and {left:,}, the samples without a label. Got {labels:,}.")
        return labels
    assert width is not None
    if budget is None:
        raise ConfigError(
            "--width needs at least 20 labels that are not all equal (--human). Draw the first ones with --labels 100"
        )
    needed = budget.labels_for(width)
    if needed is None:
        raise ConfigError(
            f"±{width:g} cannot be reached: labels of all {len(judged.rows):,} samples give "
            f"±{budget.half_width(len(judged.rows)):.4f}. More samples are needed"
        )
    if needed <= judged.known:
        raise ConfigError(f"±{width:g} needs {needed:,} labels, and there are {judged.known:,}: no more are needed")
    uniform = min(needed - judged.known, left)
    return max(1, ceil(uniform * _gain(judged, errors, uniform)))


def _drawn(
    judged: _Judged, errors: Vector, count: int, seed: int, rows: int, labels: Labels | None
) -> tuple[_Draw, list[str]]:
    """The drawn rows, and what to know about them."""
    labelled, notes = ~np.isnan(judged.human), []
    if float(errors.max() - errors.min()) <= ROUNDING * float(errors.max()):
        notes.append("drawn uniformly: nothing indicates on which samples the judge errs")
    chance = np.zeros(len(errors))
    chance[~labelled] = selection_probabilities(errors[~labelled], count)
    chosen = drawn(chance, seed=seed, clusters=judged.clusters)
    before = _probability_before(judged)
    if before is None:
        combined = np.where(labelled, 1.0, chance)
        notes.append("it is not known how all earlier labels were drawn: each counts once")
    else:
        again = np.where(labelled, selection_probabilities(errors, count), chance) if labelled.any() else chance
        combined = combined_probabilities(before, again)
        if labelled.any() and judged.probability is None:
            notes.append("the earlier labels are assumed to be of randomly chosen samples")
    probability = np.full(rows, np.nan)
    probability[judged.rows] = combined
    values = np.full(rows, np.nan)
    values[judged.rows] = judged.human
    order = np.random.default_rng(seed).permutation(judged.rows[chosen])
    return _Draw(order, probability, labels, values), notes


def _probability_before(judged: _Judged) -> Vector | None:
    """The probability with which every sample has a label by now; None if it is known for the labelled samples alone.

    An earlier plan without labels can be computed again: its probabilities depend on the verdicts only.
    """
    count, labelled = len(judged.values), ~np.isnan(judged.human)
    if judged.probability is None:
        return np.full(count, judged.known / count)
    given = judged.probability[labelled]
    if float(given.max() - given.min()) <= _SAME:
        return np.full(count, judged.known / count)
    nothing = np.full(count, np.nan)
    errors = expected_errors(judged.values, judged.bounds, spread=judged.spread, human=nothing)
    single = selection_probabilities(errors, 1)  # all below 1: those of more labels are proportional until they reach 1
    planned = round(float((given / single[labelled]).max()))
    if not 1 <= planned <= count:
        return None
    earlier = selection_probabilities(errors, planned)
    if float(np.abs(earlier[labelled] - given).max()) > _SAME:
        return None
    return earlier * judged.known / planned  # only some of the planned samples may be labelled, in random order


def _half_width(judged: _Judged) -> float | None:
    if not judged.known:
        return None
    interval = ppi_mean(judged.values, judged.human, clusters=judged.clusters, probability=judged.probability).interval
    return None if interval.low is None or interval.high is None else (interval.high - interval.low) / 2


def _forecast(budget: LabelBudget | None, known: int, count: int, ratio: float, width: float | None) -> Forecast | None:
    """What `count` labels more will give, if one of them is as good as 1 / `ratio` labels that are drawn uniformly."""
    if budget is None:
        return None
    labels = known + count
    uniform = None if width is None else budget.labels_for(width)
    return Forecast(
        labels=labels,
        half_width=budget.half_width(labels, gain=labels / (known + count / ratio)),
        uniform=budget.half_width(labels),
        alone=budget.alone(labels),
        worth=budget.worth(labels),
        calls_per_label=budget.calls_per_label(labels),
        correlation=budget.correlation,
        needed=None if uniform is None else min(uniform, known) + ceil(max(uniform - known, 0) * ratio),
    )


def _write(run: Run, metric: str, draw: _Draw, path: Path) -> None:
    """Write the labels so far, then the samples to label in random order, one JSON object per line.

    Whoever labels can stop at any time: what is labelled then is still a random sample. The judge's verdict is not
    shown, so that it does not influence the labels.
    """
    lines = list(_lines(run, metric, draw))
    try:
        with path.open("xb") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
    except FileExistsError:
        raise ConfigError(f"{path} exists, and may have labels. Choose another name") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from None


def _lines(run: Run, metric: str, draw: _Draw) -> Iterator[JsonObject]:
    wanted = set(draw.rows.tolist())
    samples: dict[int, Sample] = {}
    labelled: dict[str, int] = {}
    for row, sample in enumerate(run.samples()):
        if row in wanted:
            samples[row] = sample
        if not np.isnan(draw.values[row]):
            labelled[sample.id] = row
    records = None if draw.labels is None else draw.labels.records
    if records is None:
        for sample_id, row in labelled.items():
            weight = float(draw.probability[row])
            yield {"id": sample_id, "metric": metric, "label": float(draw.values[row]), WEIGHT: weight}
    for record in records or ():
        if record.id in labelled and record.metric in (None, metric):
            weight = float(draw.probability[labelled[record.id]])
            named = {} if record.annotator is None else {"annotator": record.annotator}
            yield {"id": record.id, "metric": metric, "label": record.label, **named, WEIGHT: weight}
    baseline = run.info.config.judges[metric].baseline if metric in run.info.config.judges else None
    for row in draw.rows.tolist():
        sample = samples[row]
        weight = float(draw.probability[row])
        yield {"id": sample.id, "metric": metric, "label": None, WEIGHT: weight, **_shown(sample, baseline)}


def _shown(sample: Sample, baseline: str | None) -> JsonObject:
    """What is needed to label a sample."""
    content: JsonObject = {}
    for name in _SHOWN:
        value = getattr(sample, name)
        if value is not None:
            content[name] = [_address(each) for each in value] if name == "images" else _address(value)
    content["answer"] = sample.generated_answer
    if baseline is not None and baseline in sample.metadata:
        content[baseline] = sample.metadata[baseline]
    if sample.reference_texts:
        content["references"] = sample.reference_texts
    return content


def _address(value: object) -> object:
    """A text or the address of a medium; media that are part of the sample are not written."""
    is_medium = isinstance(value, bytes) or (
        isinstance(value, str) and value.startswith("data:") and len(value) > _LONGEST
    )
    return "in the run: see `mmeval view`" if is_medium else value
