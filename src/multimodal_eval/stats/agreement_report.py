"""The full report on a set of ratings: agreement, annotators, pairs, consensus labels, and accuracy against gold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np

from multimodal_eval.core.levels import Level
from multimodal_eval.stats.alpha import krippendorff_alpha
from multimodal_eval.stats.dawid_skene import DawidSkene, dawid_skene, majority_ties, majority_vote
from multimodal_eval.stats.kappa import Weights, fleiss_kappa, pairwise_kappas, percent_agreement, unequal_raters
from multimodal_eval.stats.ratings import Codes, Ratings
from multimodal_eval.stats.resampling import (
    RESAMPLES,
    Agreement,
    Resampling,
    Vector,
    estimate,
    ratio,
    side_by_side,
    undefined,
    with_interval,
)

MAX_PAIRED_ANNOTATORS = 20  # the number of pairs grows quadratically
MAX_CLASSES = 200  # in a confusion matrix


@dataclass(frozen=True, slots=True)
class Units:
    """The number of units, and how many of them have no, one or several ratings."""

    total: int
    no_rating: int
    one_rating: int
    compared: int
    unanimous: int


@dataclass(frozen=True, slots=True)
class Annotator:
    """One annotator: label counts, agreement with the others, and accuracy."""

    name: str
    n_ratings: int
    labels: dict[str, int]
    agreement: Agreement
    estimated_accuracy: Agreement | None = None
    gold_accuracy: Agreement | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Cohen's kappa between two annotators."""

    annotators: tuple[str, str]
    kappa: Agreement


@dataclass(frozen=True, slots=True)
class Consensus:
    """One label per unit by Dawid-Skene, compared with the majority vote."""

    n_units: int
    differs_from_majority: int
    majority_ties: int
    priors: dict[str, float]
    iterations: int
    converged: bool
    log_likelihood: float
    majority_gold_accuracy: Agreement | None = None
    dawid_skene_gold_accuracy: Agreement | None = None


@dataclass(frozen=True, slots=True)
class ReportedSettings:
    """The settings that affect the results, as shown in the report."""

    weights: Weights | None
    grouped: bool
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """The report. `labels` counts the ratings, most frequent first; None at the interval and ratio levels."""

    level: Level
    settings: ReportedSettings
    units: Units
    figures: list[Agreement]
    annotators: list[Annotator]
    pairs: list[Pair] = field(default_factory=list)
    labels: dict[str, int] | None = None
    consensus: Consensus | None = None
    notes: list[str] = field(default_factory=list)


class Bootstrap(TypedDict):
    """The arguments that every function with a bootstrap takes."""

    groups: Codes | None
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a report."""

    level: Level = "nominal"
    weights: Weights | None = None
    groups: Codes | None = None
    resamples: int = RESAMPLES
    seed: int = 0

    @property
    def resampling(self) -> Bootstrap:
        """The arguments that every function with a bootstrap takes."""
        return {"groups": self.groups, "resamples": self.resamples, "seed": self.seed}

    @property
    def reported(self) -> ReportedSettings:
        """The settings that affect the results."""
        return ReportedSettings(self.weights, self.groups is not None, self.resamples, self.seed)


def agreement_report(
    ratings: Ratings, annotators: list[str], settings: Settings, gold: Codes | None = None
) -> AgreementReport:
    """The report on ratings whose columns are `annotators`; `gold` has one code per unit, -1 if there is none."""
    notes: list[str] = []
    categories = settings.level in ("nominal", "ordinal")
    shares = percent_agreement(ratings, **settings.resampling)
    figures = [krippendorff_alpha(ratings, settings.level, **settings.resampling), shares.overall]
    pairs: list[Pair] = []
    model = None
    if categories:
        kappas, pairs = _kappas(ratings, annotators, settings, notes)
        figures[1:1] = kappas
        model = _model(ratings, notes)
    else:
        notes.append(f"kappa and Dawid-Skene need labels; at the level {settings.level!r} use alpha")
    counts = _counts_by_annotator(ratings)
    names = [_shown(value) for value in ratings.values.tolist()]
    people = [
        Annotator(
            name,
            int(label_totals.sum()),
            {label: int(n) for label, n in zip(names, label_totals, strict=True) if n} if categories else {},
            shares.annotators[index],
            _estimated_accuracy(model, ratings.codes[:, index], settings) if model else None,
            _gold_accuracy(ratings.codes[:, index], gold, settings) if gold is not None else None,
        )
        for index, (name, label_totals) in enumerate(zip(annotators, counts, strict=True))
    ]
    totals = sorted(zip(names, counts.sum(axis=0).tolist(), strict=True), key=lambda item: (-item[1], item[0]))
    return AgreementReport(
        settings.level,
        settings.reported,
        _units(ratings),
        figures,
        people,
        pairs,
        {name: int(count) for name, count in totals} if categories else None,
        _consensus(model, ratings, names, gold, settings) if model else None,
        notes,
    )


def _shown(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _units(ratings: Ratings) -> Units:
    per_unit = ratings.per_unit
    compared = per_unit >= 2
    lowest = np.where(ratings.codes < 0, len(ratings.values), ratings.codes).min(axis=1)
    unanimous = compared & (lowest == ratings.codes.max(axis=1))
    unrated, single = int((per_unit == 0).sum()), int((per_unit == 1).sum())
    return Units(len(per_unit), unrated, single, int(compared.sum()), int(unanimous.sum()))


def _counts_by_annotator(ratings: Ratings) -> Vector:
    """Label counts, annotators x labels."""
    labels = len(ratings.values)
    return np.array([np.bincount(codes[codes >= 0], minlength=labels) for codes in ratings.codes.T], dtype=np.float64)


def _kappas(
    ratings: Ratings, annotators: list[str], settings: Settings, notes: list[str]
) -> tuple[list[Agreement], list[Pair]]:
    rated = ratings.per_unit
    reason = unequal_raters(rated[rated > 0])
    if reason:
        fleiss = undefined("Fleiss' kappa", int((rated > 0).sum()), ratings.annotators, reason)
    else:
        fleiss = fleiss_kappa(ratings, **settings.resampling)
    if len(annotators) > MAX_PAIRED_ANNOTATORS:
        notes.append(f"no pairs: {len(annotators)} annotators, but pairs are shown for up to {MAX_PAIRED_ANNOTATORS}")
        return [fleiss], []
    kappas = pairwise_kappas(ratings, weights=settings.weights, **settings.resampling)
    pairs = [Pair((annotators[a], annotators[b]), kappa) for (a, b), kappa in kappas.pairs.items()]
    return [fleiss, kappas.mean], pairs


def _model(ratings: Ratings, notes: list[str]) -> DawidSkene | None:
    if len(ratings.values) > MAX_CLASSES:
        notes.append(f"no Dawid-Skene: {len(ratings.values):,} labels, but it takes up to {MAX_CLASSES}")
        return None
    model = dawid_skene(ratings)
    if not model.converged:
        notes.append(f"Dawid-Skene has not converged after {model.iterations} iterations; interpret it with care")
    return model


def _consensus(
    model: DawidSkene, ratings: Ratings, names: list[str], gold: Codes | None, settings: Settings
) -> Consensus:
    majority = majority_vote(ratings)
    rated = majority >= 0
    by_vote = by_model = None
    if gold is not None:
        by_vote, by_model = (_gold_accuracy(labels, gold, settings) for labels in (majority, model.labels))
    return Consensus(
        int(rated.sum()),
        int((majority != model.labels).sum()),
        majority_ties(ratings),
        dict(zip(names, model.priors.tolist(), strict=True)),
        model.iterations,
        model.converged,
        model.log_likelihood,
        by_vote,
        by_model,
    )


def _estimated_accuracy(model: DawidSkene, codes: Codes, settings: Settings) -> Agreement:
    """How often the annotator is right according to the model: the mean posterior of their labels."""
    rated = np.flatnonzero(codes >= 0)
    right = model.posterior[rated, codes[rated]]
    return _mean("accuracy estimated by Dawid-Skene", right, rated, settings, ", given the fitted model")


def _gold_accuracy(codes: Codes, gold: Codes, settings: Settings) -> Agreement:
    """The share of labels that equal the gold label, over the units that have both."""
    both = np.flatnonzero((codes >= 0) & (gold >= 0))
    return _mean("accuracy against gold", (codes[both] == gold[both]).astype(np.float64), both, settings)


def _mean(name: str, values: Vector, units: Codes, settings: Settings, method_suffix: str = "") -> Agreement:
    """The mean of one value per unit, with a bootstrap interval."""
    if not len(values):
        return undefined(name, 0, 1, "no unit has both labels")
    distinct, pattern = np.unique(values, return_inverse=True)
    groups = None if settings.groups is None else settings.groups[units]
    plan = Resampling(settings.resamples, settings.seed, groups)
    statistics = side_by_side([distinct, np.ones(len(distinct))])
    pseudo = side_by_side([np.array([0.0, 1.0]), np.ones(2)])
    (interval,) = estimate(statistics, pattern, lambda totals: ratio(totals[:, :1], totals[:, 1:]), plan, pseudo)
    assert interval is not None
    mean = with_interval(name, interval, len(values), 1)
    return replace(mean, method=mean.method + method_suffix)
