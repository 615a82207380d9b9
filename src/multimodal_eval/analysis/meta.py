"""Meta-evaluation: metrics against human judgments.

Ratings become a table of judgments with the human score, the values of the metrics, and the cluster. A sample
judged by three people gives three judgments with the same metric values. Judgments for which a metric has no value are
left out for all metrics, so that all coefficients are computed on the same judgments. Choices, labels of words and
battles of systems become coefficients of their own (`stats.judged_forms`); everything after that is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import msgspec
import numpy as np
from msgspec.structs import asdict

from multimodal_eval.analysis.pairing import MAX_LEFT_OUT
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import Calibration
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import JsonObject
from multimodal_eval.data.readers.judged_captions import Choice, Form
from multimodal_eval.stats.correlation import (
    COEFFICIENTS,
    Coefficient,
    Difference,
    coefficient_interval,
    paired_difference,
)
from multimodal_eval.stats.intervals import LEVEL, Codes, Vector
from multimodal_eval.stats.judged_forms import (
    Resampled,
    auroc,
    choice_accuracies,
    resampled_difference,
    resampled_figure,
    system_ranks,
)
from multimodal_eval.stats.paired import holm
from multimodal_eval.stats.power import detectable_effect

_CORRELATIONS = ("tau_b", "tau_c", "spearman", "pearson")  # the others are shares


@dataclass
class JudgedSamples:
    """One row per sample, with the scores of all annotators."""

    clusters: list[str]
    human: Vector  # samples x annotators; NaN if there is no judgment
    metrics: dict[str, Vector]
    left_out: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    coefficient: str = "tau_b"
    calibrations: dict[str, Calibration] = field(default_factory=dict)  # of the metrics of a run
    name: str = ""  # of a judged set
    form: Form = "ratings"
    choices: list[Choice] = field(default_factory=list)  # by the numbers of the samples
    wrong_words: list[float] = field(default_factory=list)  # the share of each sample


@dataclass(frozen=True)
class Judgments:
    """One element per judgment."""

    human: Vector
    metrics: dict[str, Vector]
    clusters: Codes
    left_out: dict[str, int]


class CoefficientFigure(Figure, frozen=True, kw_only=True, omit_defaults=True):
    """A coefficient with its interval; if it is undefined, the value is None and `method` says why."""

    epsilon: float | None = None  # the tie threshold of pairwise accuracy


class LeftOut(msgspec.Struct, frozen=True):
    """Judgments that are left out of all coefficients."""

    reason: str
    judgments: int


class MetricPair(msgspec.Struct, frozen=True, kw_only=True):
    """The coefficient of one metric minus that of another."""

    metric: str
    other: str
    difference: float | None
    stderr: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_holm: float | None
    better: str | None  # None if the difference is not significant
    detectable: float | None
    method: str


@dataclass(frozen=True, repr=False)
class MetaEvaluation(Displayed):
    """How well metrics agree with people."""

    n_judgments: int
    n_samples: int
    n_clusters: int
    left_out: list[LeftOut]
    notes: list[str]
    level: float
    metrics: dict[str, dict[str, CoefficientFigure]]  # metric -> coefficient -> figure
    signatures: dict[str, str | None]
    coefficient: str  # used to compare the pairs
    pairs: list[MetricPair]
    calibrations: dict[str, Calibration] = field(default_factory=dict)  # of a run's metrics on the scale of the labels
    name: str = ""  # of a judged set
    form: Form = "ratings"
    ceiling: dict[str, CoefficientFigure] = field(default_factory=dict)  # one annotator against the others

    def to_dict(self) -> JsonObject:
        """The results as a JSON object."""
        content: JsonObject = msgspec.to_builtins(
            {
                "n_judgments": self.n_judgments,
                "n_samples": self.n_samples,
                "n_clusters": self.n_clusters,
                "left_out": self.left_out,
                "notes": self.notes,
                "level": self.level,
                "metrics": {
                    name: {**figures, "signature": self.signatures[name]} for name, figures in self.metrics.items()
                },
                "comparison": {"coefficient": self.coefficient, "correction": "Holm", "pairs": self.pairs},
            }
        )
        if self.calibrations:
            content["calibrations"] = msgspec.to_builtins(self.calibrations)
        if self.ceiling:
            content["ceiling"] = msgspec.to_builtins(self.ceiling)
        return {"name": self.name, "form": self.form, **content} if self.name else content


@dataclass(frozen=True, repr=False)
class MetaSuite(Displayed):
    """How well metrics agree with people on several sets of human judgments."""

    sets: list[MetaEvaluation]

    def to_dict(self) -> JsonObject:
        """The results of each set."""
        return {"sets": [each.to_dict() for each in self.sets]}


def meta_evaluation(
    table: JudgedSamples, coefficient: str | None = None, *, allow_partial: bool = False, progress: Progress
) -> MetaEvaluation:
    """Every coefficient of every metric with its interval, and all pairs of metrics compared by one coefficient."""
    form = table.form
    if table.choices:
        judgments, coefficients = _choices(table, allow_partial=allow_partial)
    elif table.wrong_words:
        table.human = 1 - np.array(table.wrong_words)[:, None]
        judgments, coefficients = _judgments(table, allow_partial=allow_partial), _word_labels
    else:
        judgments, coefficients = _judgments(table, allow_partial=allow_partial), _ratings
    computed: dict[str, dict[str, Coefficient | Resampled]] = {}
    for done, (name, values) in enumerate(judgments.metrics.items(), 1):
        computed[name] = coefficients(judgments, values)
        progress("comparing", done, len(judgments.metrics))
    compared = (coefficient if form == "ratings" else None) or table.coefficient
    return MetaEvaluation(
        n_judgments=len(judgments.human),
        n_samples=len(table.choices) or int((~np.isnan(table.human)).any(axis=1).sum()),
        n_clusters=len(np.unique(judgments.clusters)),
        left_out=[LeftOut(reason, count) for reason, count in judgments.left_out.items()],
        notes=table.notes,
        level=LEVEL,
        metrics={
            name: {kind: _figure(kind, value, judgments.clusters) for kind, value in values.items()}
            for name, values in computed.items()
        },
        signatures={name: table.signatures.get(name) for name in computed},
        coefficient=compared,
        pairs=_pairs({name: values[compared] for name, values in computed.items()}, judgments.clusters),
        calibrations=table.calibrations,
        name=table.name,
        form=form,
        ceiling=_ceiling(table) if form == "ratings" and table.name else {},
    )


Coefficients = dict[str, Coefficient | Resampled]


def _ratings(judgments: Judgments, values: Vector) -> Coefficients:
    return {kind: compute(judgments.human, values) for kind, compute in COEFFICIENTS.items()}


def _word_labels(judgments: Judgments, values: Vector) -> Coefficients:
    """Right captions against those with a wrong word, and the metric against the share of right words."""
    tau, r = (COEFFICIENTS[kind](judgments.human, values) for kind in ("tau_b", "pearson"))
    return {"auroc": auroc(judgments.human == 1, values), "tau_b": tau, "pearson": r}


def _ceiling(table: JudgedSamples) -> dict[str, CoefficientFigure]:
    """How well one annotator agrees with the others, as if it were a metric: the mean over the annotators.

    Only samples that every annotator judged count. Each of the other annotators' scores is a judgment.
    """
    full = ~np.isnan(table.human).any(axis=1)
    human = table.human[full]
    count = human.shape[1]
    if count < 2 or not len(human):
        return {}
    codes = np.unique(np.array(table.clusters), return_inverse=True)[1][full]
    clusters = np.repeat(codes, count - 1)
    ceiling: dict[str, CoefficientFigure] = {}
    for kind, compute in COEFFICIENTS.items():
        each = [
            compute(np.delete(human, place, axis=1).ravel(), np.repeat(human[:, place], count - 1))
            for place in range(count)
        ]
        values = [coefficient.value for coefficient in each if coefficient.value is not None]
        influences = [coefficient.influence for coefficient in each if coefficient.influence is not None]
        if len(values) == count:
            mean = Coefficient(float(np.mean(values)), np.mean(influences, axis=0))
            ceiling[kind] = _figure(kind, mean, clusters)
    return ceiling


def _choices(table: JudgedSamples, *, allow_partial: bool) -> tuple[Judgments, Callable[..., Coefficients]]:
    """One judgment per choice, and the function that computes its coefficients."""
    choices = table.choices
    is_arena = table.form == "systems"
    ends = {
        name: np.stack([values[[choice.better for choice in choices]], values[[choice.worse for choice in choices]]])
        for name, values in table.metrics.items()
    }
    tied = np.array([choice.is_tie for choice in choices])
    shares = np.where(tied, 0.5, 1.0)
    wanted = JudgedSamples(
        clusters=[choice.image for choice in choices],
        human=np.where(tied & (not is_arena), np.nan, shares)[:, None],
        metrics={name: better - worse for name, (better, worse) in ends.items()},
        left_out=table.left_out,
    )
    judgments = _judgments(wanted, allow_partial=allow_partial, missing="people see no difference")
    margins = np.stack(list(wanted.metrics.values()))
    kept = [choices[row] for row in np.flatnonzero(~np.isnan(margins).any(axis=0) & ~np.isnan(wanted.human[:, 0]))]

    def accuracies(judged: Judgments, values: Vector) -> Coefficients:
        categories = [choice.category for choice in kept]
        return dict(choice_accuracies(values, categories, by_category=table.form == "pairs"))

    def ranks(judged: Judgments, values: Vector) -> Coefficients:
        names = sorted({name for choice in kept for name in choice.systems or ()})
        numbers = {name: number for number, name in enumerate(names)}
        systems = [np.array([numbers[(choice.systems or ())[end]] for choice in kept]) for end in (0, 1)]
        shares = (values > 0) + (values == 0) / 2.0
        images = np.unique(judged.clusters, return_inverse=True)[1]
        untied = np.where(judged.human == 0.5, np.nan, values)
        computed: Coefficients = dict(system_ranks((systems[0], systems[1]), images, judged.human, shares, len(names)))
        return {**computed, "accuracy": _untied_accuracy(untied)}

    return judgments, ranks if is_arena else accuracies


def _untied_accuracy(margins: Vector) -> Coefficient:
    """The accuracy of the choices in which people prefer a caption."""
    decided = ~np.isnan(margins)
    if not decided.any():
        return Coefficient(None, reason="people see no difference in any choice")
    computed = choice_accuracies(margins[decided], [""] * int(decided.sum()))["accuracy"]
    influence = np.zeros(len(margins))
    influence[decided] = computed.influence * (len(margins) / decided.sum())
    return Coefficient(computed.value, influence)


def _figure(kind: str, coefficient: Coefficient | Resampled, clusters: Codes) -> CoefficientFigure:
    if isinstance(coefficient, Resampled):
        return CoefficientFigure(**asdict(resampled_figure(coefficient).bare))
    interval = coefficient_interval(coefficient, clusters, share=kind not in _CORRELATIONS)
    if interval is None:
        reason = f"undefined: {coefficient.reason}"
        return CoefficientFigure(value=None, stderr=None, low=None, high=None, method=reason)
    return CoefficientFigure(**asdict(interval.bare), epsilon=coefficient.epsilon)


def _difference(first: Coefficient | Resampled, second: Coefficient | Resampled, clusters: Codes) -> Difference:
    if isinstance(first, Resampled) and isinstance(second, Resampled):
        return resampled_difference(first, second)
    assert isinstance(first, Coefficient)
    assert isinstance(second, Coefficient)
    return paired_difference(first, second, clusters)


def _pairs(coefficients: Coefficients, clusters: Codes) -> list[MetricPair]:
    names = list(combinations(coefficients, 2))
    differences = [_difference(coefficients[metric], coefficients[other], clusters) for metric, other in names]
    adjusted = holm([difference.p_value for difference in differences])
    return [
        MetricPair(
            metric=metric,
            other=other,
            difference=difference.value,
            stderr=difference.stderr,
            low=difference.low,
            high=difference.high,
            p_value=difference.p_value,
            p_holm=p_holm,
            better=_better(metric, other, difference, p_holm),
            detectable=_detectable(difference),
            method=difference.method,
        )
        for (metric, other), difference, p_holm in zip(names, differences, adjusted, strict=True)
    ]


def _better(metric: str, other: str, difference: Difference, p_holm: float | None) -> str | None:
    if difference.value is None or p_holm is None or p_holm > 1 - LEVEL:
        return None
    return metric if difference.value > 0 else other


def _detectable(difference: Difference) -> float | None:
    """The smallest difference that a test on these judgments detects with 80 % probability."""
    return None if difference.stderr is None else detectable_effect(difference.stderr)


def _judgments(table: JudgedSamples, *, allow_partial: bool, missing: str = "no human score") -> Judgments:
    """One element per judgment, without the judgments for which a metric has no value."""
    judged = ~np.isnan(table.human)
    rows = np.nonzero(judged)[0]
    if not len(rows):
        raise InputError([Problem(code="EMPTY", message="no sample has a human score")])
    left_out = dict(table.left_out)
    if not judged.all() and not table.name:  # in a set, captions have different numbers of ratings
        left_out[missing] = int((~judged).sum())
    unscored = {name: np.isnan(values)[rows] for name, values in table.metrics.items()}
    dropped = np.any(list(unscored.values()), axis=0)
    if dropped.any():
        by_metric = ", ".join(f"{name} {int(mask.sum()):,}" for name, mask in unscored.items() if mask.any())
        reason = f"a metric has no value (by metric: {by_metric})"
        if dropped.mean() > MAX_LEFT_OUT and not allow_partial:
            message = f"{int(dropped.sum()):,} of {len(rows):,} judgments cannot be used: {reason}."
            hint = "Use --allow-partial to leave them out for all metrics."
            raise InputError([Problem(code="UNSCORED", message=message, hint=hint)])
        left_out[reason] = int(dropped.sum())
    kept = rows[~dropped]
    if not len(kept):
        raise InputError([Problem(code="EMPTY", message="there is no judgment for which every metric has a value")])
    codes = np.unique(np.array(table.clusters), return_inverse=True)[1]
    return Judgments(
        human=table.human[judged][~dropped],
        metrics={name: values[kept] for name, values in table.metrics.items()},
        clusters=codes[kept],
        left_out=left_out,
    )
