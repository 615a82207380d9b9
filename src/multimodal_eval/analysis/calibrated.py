"""Scores and differences of scores, corrected by human labels of a part of the samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.human_labels import HumanLabels
from multimodal_eval.core.figure import Figure, without_value
from multimodal_eval.core.metric import Signature
from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import LEVEL, Codes, Vector, moved_within
from multimodal_eval.stats.ppi import MIN_UNITS, PpiEstimate, ppi_estimates, ppi_mean, selection_p_value

__all__ = [
    "FEW_LABELS",
    "MIN_LABELS",
    "calibrated",
    "corrected_estimates",
    "estimate_by_labels",
    "label_notes",
    "why_not_corrected",
]

MIN_LABELS = 10  # of a slice: with fewer, there is no calibrated value
FEW_LABELS = 30  # with fewer, the interval is wide and relies on the t distribution
NOT_RANDOM = 0.001  # the p-value below which labelled samples are said to differ from the others
VERSION = "1"  # of the method


def signature_of(labels: HumanLabels) -> str:
    """The method and the labels of a calibrated score."""
    settings = {"human": labels.column, "labels": labels.digest} | ({"target": "file"} if labels.of_file else {})
    return str(Signature("ppi++", VERSION, settings | ({} if labels.probability is None else {"weights": "inverse"})))


def estimate_by_labels(
    values: Vector,
    labels: HumanLabels,
    clusters: Codes | None = None,
    level: float = LEVEL,
    *,
    power: float | None = None,
) -> PpiEstimate | None:
    """The PPI++ estimate over the scored samples; `values` is NaN if unscored. None without a label among them.

    `power` is lambda: 1 is classical PPI.
    """
    scored = ~np.isnan(values)
    human = labels.values[scored]
    if np.isnan(human).all():
        return None
    probability = None if labels.probability is None else labels.probability[scored]
    codes = None if clusters is None else clusters[scored]
    finite = labels.of_file
    return ppi_mean(
        values[scored],
        human,
        clusters=codes,
        probability=probability,
        power=power,
        level=level,
        finite=finite,
        bounds=labels.bounds,
    )


def calibrated(
    values: Vector, labels: HumanLabels, clusters: Codes | None = None, *, minimum: int = 1, level: float = LEVEL
) -> Figure:
    """The corrected score; without a value if fewer than `minimum` scored samples have a label."""
    count = int((~np.isnan(values) & ~np.isnan(labels.values)).sum())
    estimate = estimate_by_labels(values, labels, clusters, level) if count >= minimum else None
    if estimate is None:
        needed = f", and {minimum} are needed" if count else ""
        figure = without_value(f"no calibrated value: {count} human label{'' if count == 1 else 's'}{needed}")
    else:
        figure = moved_within(estimate.interval, labels.bounds)
        target = f"these {int((~np.isnan(values)).sum()):,} samples" if labels.of_file else "the population"
        figure = msgspec.structs.replace(figure, method=f"{figure.method}, for the mean over {target}")
    return msgspec.structs.replace(figure, labels=count, column=labels.column, signature=signature_of(labels))


def why_not_corrected(names: Sequence[str], labels: Sequence[HumanLabels | None]) -> str | None:
    """Why human labels of some runs do not correct a comparison; None if they do, or if no run has any."""
    unlabelled = [name for name, each in zip(names, labels, strict=True) if each is None]
    known = [each for each in labels if each is not None]
    if not known:
        return None
    if unlabelled:
        return f"no human labels in {', '.join(unlabelled)}, so that the comparison is that of the judge"
    if any((~np.isnan(each.values)).sum() < MIN_UNITS for each in known):
        return f"not corrected: a run has fewer than {MIN_UNITS} human labels of the compared samples"
    for each in known[1:]:
        both = ~np.isnan(known[0].values) & ~np.isnan(each.values)
        if not _are_equal(known[0].probability, each.probability, both):
            return "not corrected: the runs chose samples for labelling with different probabilities"
    return None


def corrected_estimates(
    values: Sequence[Vector], labels: Sequence[HumanLabels | None], clusters: Codes | None = None
) -> list[Estimate] | None:
    """The scores of runs over the same samples, corrected by human labels, as estimates that a paired test compares.

    All samples must be scored. None if not all runs have labels that correct them: see `why_not_corrected`.
    """
    known = [each for each in labels if each is not None]
    if len(known) < len(values) or why_not_corrected([""] * len(known), known) is not None:
        return None
    probabilities = [each.probability for each in known if each.probability is not None]
    return ppi_estimates(
        [(judge, each.values) for judge, each in zip(values, known, strict=True)],
        clusters=clusters,
        probability=np.fmax.reduce(probabilities) if probabilities else None,
        bounds=[each.bounds for each in known],
    )


def _are_equal(first: Vector | None, second: Vector | None, both: NDArray[np.bool_]) -> bool:
    """Whether samples that are labelled in both runs were drawn with the same probabilities."""
    if first is None or second is None:
        return first is second
    return bool(np.array_equal(first[both], second[both]))


def label_notes(name: str, values: Vector, labels: HumanLabels, clusters: Codes | None = None) -> Iterator[str]:
    """What to know about the labels of a metric before its calibrated score is believed."""
    scored, labelled = ~np.isnan(values), ~np.isnan(labels.values)
    count = int((scored & labelled).sum())
    if unscored := int((labelled & ~scored).sum()):
        yield f"{name}: {unscored:,} of {int(labelled.sum()):,} human labels are of unscored samples and are not used"
    if 0 < count < FEW_LABELS:
        labels_are = f"only {count} human label{' is' if count == 1 else 's are'}"
        yield f"{name}: {labels_are} used: the calibrated interval is wide. Label at least {FEW_LABELS} samples"
    if labels.probability is None and count:
        codes = None if clusters is None else clusters[scored]
        p_value = selection_p_value(values[scored], labelled[scored], codes)
        if p_value is not None and p_value < NOT_RANDOM:
            here, others = (float(values[scored & rows].mean()) for rows in (labelled, ~labelled))
            yield (
                f"{name}: the labelled samples differ from the others (mean score {here:.4f} and {others:.4f}, "
                f"p < {NOT_RANDOM:g}). If they were not chosen at random, the calibrated value is wrong. "
                "Give the probability with which each was chosen in the column `human_weight`"
            )
    yield from _agreement_note(name, labels)


def _agreement_note(name: str, labels: HumanLabels) -> Iterator[str]:
    """How well several annotators agree."""
    if labels.ratings.shape[1] < 2:
        return
    from multimodal_eval.stats.alpha import krippendorff_alpha

    rated = ~np.isnan(labels.ratings)
    twice = int((rated.sum(axis=1) >= 2).sum())
    if not twice:
        yield f"{name}: no sample was labelled by two annotators, so their agreement is unknown"
        return
    alpha = krippendorff_alpha(labels.ratings, level="interval", resamples=0)
    shown = alpha.reason if alpha.value is None else f"{alpha.value:.2f}"
    annotators = labels.ratings.shape[1]
    yield f"{name}: {annotators} annotators, {twice:,} samples with several labels, Krippendorff's alpha {shown}"
