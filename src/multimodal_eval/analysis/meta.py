"""Meta-evaluation: metrics against human judgments.

Every input becomes a table of judgments with the human score, the values of the metrics, and the cluster. A sample
judged by three people gives three judgments with the same metric values. Judgments for which a metric has no value are
left out for all metrics, so that all coefficients are computed on the same judgments.
"""

from __future__ import annotations

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
from multimodal_eval.stats.correlation import (
    COEFFICIENTS,
    Coefficient,
    Difference,
    coefficient_interval,
    paired_difference,
)
from multimodal_eval.stats.intervals import LEVEL, Codes, Vector
from multimodal_eval.stats.paired import holm
from multimodal_eval.stats.power import detectable_effect


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
        return content


def meta_evaluation(
    table: JudgedSamples, coefficient: str | None = None, *, allow_partial: bool = False, progress: Progress
) -> MetaEvaluation:
    """Every coefficient of every metric with its interval, and all pairs of metrics compared by one coefficient."""
    judgments = _judgments(table, allow_partial=allow_partial)
    coefficients: dict[str, dict[str, Coefficient]] = {}
    for done, (name, values) in enumerate(judgments.metrics.items(), 1):
        coefficients[name] = {kind: compute(judgments.human, values) for kind, compute in COEFFICIENTS.items()}
        progress("comparing", done, len(judgments.metrics))
    compared = coefficient or table.coefficient
    return MetaEvaluation(
        n_judgments=len(judgments.human),
        n_samples=int((~np.isnan(table.human)).any(axis=1).sum()),
        n_clusters=len(np.unique(judgments.clusters)),
        left_out=[LeftOut(reason, count) for reason, count in judgments.left_out.items()],
        notes=table.notes,
        level=LEVEL,
        metrics={
            name: {kind: _figure(kind, value, judgments.clusters) for kind, value in values.items()}
            for name, values in coefficients.items()
        },
        signatures={name: table.signatures.get(name) for name in coefficients},
        coefficient=compared,
        pairs=_pairs({name: values[compared] for name, values in coefficients.items()}, judgments.clusters),
        calibrations=table.calibrations,
    )


def _figure(kind: str, coefficient: Coefficient, clusters: Codes) -> CoefficientFigure:
    interval = coefficient_interval(coefficient, clusters, share=kind == "acc_eq")
    if interval is None:
        reason = f"undefined: {coefficient.reason}"
        return CoefficientFigure(value=None, stderr=None, low=None, high=None, method=reason)
    return CoefficientFigure(**asdict(interval.bare), epsilon=coefficient.epsilon)


def _pairs(coefficients: dict[str, Coefficient], clusters: Codes) -> list[MetricPair]:
    names = list(combinations(coefficients, 2))
    differences = [paired_difference(coefficients[metric], coefficients[other], clusters) for metric, other in names]
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


def _judgments(table: JudgedSamples, *, allow_partial: bool) -> Judgments:
    """One element per judgment, without the judgments for which a metric has no value."""
    judged = ~np.isnan(table.human)
    rows = np.nonzero(judged)[0]
    if not len(rows):
        raise InputError([Problem(code="EMPTY", message="no sample has a human score")])
    left_out = dict(table.left_out)
    missing = int((~judged).sum())
    if missing:
        left_out["no human score"] = missing
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
