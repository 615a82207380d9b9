"""The aggregate of a metric, checked: a wrong one is refused and never becomes a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import MetricError, shorten
from multimodal_eval.core.metric import Aggregate, Bounds, Kind, M, Metric, part_bounds, within
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.score import MEAN, Estimate, Mean, Rows, mean_estimate
from multimodal_eval.core.scoring import value_fault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["aggregate_of", "averages", "estimate_of", "kind_of"]

AGGREGATE = "AGGREGATE"
_COMPOSITE_BOUNDS = (0.0, 1.0)
_WHAT_TO_DO = "An aggregate must return Estimate(value within the bounds, one finite influence value per row)"


def aggregate_of(metric: Metric, part: str = "") -> Aggregate:
    """The function that aggregates the values of a metric, or of one of its parts."""
    aggregate = metric.aggregate
    if isinstance(aggregate, Mapping):
        return aggregate.get(part, MEAN)
    return MEAN if part else aggregate


def kind_of(metric: Metric, part: str = "") -> Kind:
    """What the result of the metric, or of one of its parts, is: the mean of the samples, or a corpus score."""
    return "mean" if isinstance(aggregate_of(metric, part), Mean) else "corpus"


def averages(metric: Metric) -> bool:
    """Whether the metric's result is the mean of its values, to which weights and labels of samples can be applied."""
    aggregate = aggregate_of(metric)
    return isinstance(aggregate, Mean) and not aggregate.multiplies


def with_seen_bounds(metric: M, values: NDArray[np.float64]) -> M:
    """The metric with the range that the values of a run show, if it concludes it from them."""
    hook: Callable[..., Bounds] | None = getattr(type(metric), "seen_bounds", None)
    return within(metric, hook(metric, values)) if hook is not None and len(values) else metric


def estimate_of(metric: Metric | None, rows: Rows, part: str = "") -> Estimate:
    """The metric's aggregate of its values, or of one part. None is a composite that is a mean.

    Refused if the value is not finite or outside the metric's bounds, or if there is not one finite influence value per
    row.
    """
    from dataclasses import replace

    if metric is None:
        return replace(mean_estimate(rows), bounds=_COMPOSITE_BOUNDS)
    name = f"{metric.name}.{part}" if part else metric.name
    with blamed_on(name, "aggregating its scores"):
        estimate = aggregate_of(metric, part)(rows)
    if not isinstance(estimate, Estimate):
        raise _refusal(name, f"it returned {shorten(estimate)}")
    bounds = part_bounds(metric).get(part, estimate.bounds) if part else metric.bounds
    if fault := value_fault(estimate.value, bounds):
        raise _refusal(name, fault.partition(": ")[2])
    influence = _vector(name, "influence", estimate.influence, len(rows))
    vectors: dict[str, Any] = {}
    if influence is not estimate.influence:
        vectors["influence"] = influence
    for what in ("strata", "contributions"):
        given = getattr(estimate, what)
        if given is not None:
            _vector(name, what, given, len(rows))
    if bounds != estimate.bounds:
        vectors["bounds"] = bounds
    if not vectors and type(estimate.value) is float:
        return estimate
    return replace(estimate, value=float(estimate.value), **vectors)


def _vector(name: str, what: str, values: object, count: int) -> NDArray[np.float64]:
    """One finite number per row; float64 arrays are returned as they are."""
    import numpy as np

    try:
        vector = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise _refusal(name, f"`{what}` is {shorten(values)}") from None
    if vector.dtype.kind not in "fiu":
        raise _refusal(name, f"`{what}` has values of type {vector.dtype}, which are not numbers")
    if vector.shape != (count,):
        size = f"{len(vector):,} values" if vector.ndim == 1 else f"the shape {vector.shape}"
        raise _refusal(name, f"`{what}` has {size} for {count:,} rows")
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise _refusal(name, f"`{what}` is {vector[row]} in row {row}")
    return vector if vector.dtype == np.float64 else vector.astype(np.float64)


def _refusal(name: str, fault: str) -> MetricError:
    return MetricError(f"{AGGREGATE}: {name}: {fault}. {_WHAT_TO_DO}")
