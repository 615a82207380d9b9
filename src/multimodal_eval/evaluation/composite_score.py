"""The composite: one score per sample, the weighted sum of its metrics.

    captioning            0.25 clip_score + 0.50 semantic_similarity + 0.25 normalized_cider
    vqa                   0.10 clip_score + 0.40 semantic_similarity + 0.50 contextual_relevance
    contextual_relevance  0.40 clip_score + 0.30 normalized_cider + 0.30 semantic_similarity

CIDEr is normalised per sample and the composites are averaged afterwards, not the other way round: min(c/m, 1) is not
linear. No value is rounded here.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import isfinite, isnan
from typing import TYPE_CHECKING, get_args

from multimodal_eval.core.config import OnMissing
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Signature, is_number
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.score import OK, Score, Scores, unscored
from multimodal_eval.evaluation.tasks_config import PART_ALIASES, Task, get_task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["compute_composite", "normalize_cider"]


def normalize_cider(cider: float, max_cider: float = 1.0) -> float:
    """min(cider / max_cider, 1), or 0.0 if `cider` is negative, NaN or not a number.

    A bool is not a number; NumPy scalars are. `max_cider` must be above 0.
    """
    if not is_number(max_cider) or not max_cider > 0:
        raise ConfigError(f"max_cider must be a number above 0. Got {max_cider!r}.")
    if not is_number(cider) or isnan(cider) or cider < 0:
        return 0.0
    return min(float(cider) / float(max_cider), 1.0)


def compute_composite(
    metrics: Mapping[str, float | None], task_type: str = "captioning", *, on_missing: OnMissing = "error"
) -> float:
    """The composite of raw metric values (CIDEr is normalised here).

    A missing part is an error, unless `on_missing` is "zero" (it counts as 0) or "renormalise" (the other weights are
    scaled to sum to 1).
    """
    task = get_task(task_type)
    if on_missing not in get_args(OnMissing):
        raise ConfigError(f"on_missing must be one of {', '.join(get_args(OnMissing))}. Got {on_missing!r}.")
    if not task.weights:
        reason = f"the metric {task.headline!r} computes it" if task.headline else "it has no weights"
        raise ConfigError(f"task {task_type!r} has no composite formula: {reason}")
    values = {PART_ALIASES.get(name, name): value for name, value in metrics.items()}
    for part in task.weights:
        if (value := values.get(part)) is not None:
            _refuse_bad_part(part, value)
            if part in task.maximum and value > task.maximum[part]:
                warnings.warn(
                    f"{part} is {value!r}, above its maximum, and counts as {task.maximum[part]!r}", stacklevel=2
                )
    missing = [part for part in task.weights if values.get(part) is None]
    if missing and on_missing == "error":
        raise ConfigError(f"the composite of {task_type!r} is missing {', '.join(missing)}")
    composite = weighted_sum(task, values, on_missing)
    if composite is None:
        raise ConfigError(f"the composite of {task_type!r} cannot be computed: no part with a weight has a value")
    return composite


def _refuse_bad_part(part: str, value: object) -> None:
    if not is_number(value):
        raise ConfigError(f"{part} must be a number. Got {value!r} instead.")
    if not isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        raise ConfigError(f"{part} must be finite and not negative. Got {value!r} instead.")


def weighted_sum(task: Task, values: Mapping[str, float | None], on_missing: OnMissing) -> float | None:
    """Sum of w_m * s_m over the available parts; None if a part is missing and the task requires it."""
    present = {part: value for part in task.weights if (value := values.get(part)) is not None}
    if len(present) < len(task.weights) and on_missing == "error":
        return None
    terms = [task.weights[part] * _entering(task, part, value) for part, value in present.items()]
    if on_missing != "renormalise":
        return _left_to_right(terms)
    share = _left_to_right([task.weights[part] for part in present])
    return _left_to_right(terms) / share if share > 0 else None


def _entering(task: Task, part: str, value: float) -> float:
    if part in task.parts:
        (low, high), is_inverted = task.parts[part].range, task.parts[part].invert
        share = (high - value if is_inverted else value - low) / (high - low)
        return min(max(float(share), 0.0), 1.0)
    return normalize_cider(value, task.maximum[part]) if part in task.maximum else float(value)


def entering_column(task: Task, part: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values of a part as they enter the composite, between 0 and 1."""
    import numpy as np

    if part in task.parts:
        (low, high), is_inverted = task.parts[part].range, task.parts[part].invert
        share: NDArray[np.float64] = (high - values if is_inverted else values - low) / (high - low)
        return np.clip(share, 0.0, 1.0)
    return np.minimum(values / float(task.maximum[part]), 1.0) if part in task.maximum else values


def _left_to_right(terms: list[float]) -> float:
    """The sum from left to right, as the formula is written: the published example is then exactly 0.7525.

    Neither `math.fsum` nor the `sum` of Python 3.12 gives that value.
    """
    total = 0.0
    for term in terms:
        total += term
    return total


def composite_of_scores(task: Task, scores: Mapping[str, Score]) -> Score:
    """The composite of one sample in a run; unscored if a part is unscored, unless the task says otherwise."""
    if task.headline is not None:
        headline = scores.get(task.headline)
        return (
            unscored("missing_input", f"no {task.headline}")
            if headline is None
            else Score(headline.value, headline.status, headline.reason, headline.stats)
        )
    if not task.weights:
        return unscored("missing_input", f"task {task.name!r} has no composite")
    values = {part: scores[part].value for part in task.weights if part in scores}
    for part, value in values.items():
        if value is None or part in task.parts:
            continue
        if value < 0 or (value > 1 and part not in task.maximum):
            return unscored("error", f"RANGE: {part} is {value!r}, and a composite adds values from 0 to 1")
    composite = weighted_sum(task, values, task.on_missing)
    if composite is None:
        missing = [part for part in task.weights if values.get(part) is None]
        return unscored("missing_input", f"unscored: {', '.join(missing)}")
    return Score(composite)


def composite_of_columns(task: Task, scores: Mapping[str, Scores], count: int) -> Scores:
    """The composites of `count` samples. Rows that are not plain sums are computed one by one."""
    import numpy as np

    if task.headline is not None and task.headline in scores:
        headline = scores[task.headline]
        return Scores(headline.values.copy(), headline.status.copy(), dict(headline.reasons), stats=headline.stats)
    parts = [scores[part] for part in task.weights if part in scores]
    is_plain = np.full(count, bool(task.weights) and len(parts) == len(task.weights) and task.on_missing == "error")
    for part, rows in zip(task.weights, parts, strict=False):
        is_plain &= rows.status == OK
        if part not in task.parts:
            is_plain &= rows.values >= 0
        if not task.is_scaled(part):
            is_plain &= rows.values <= 1
    total = np.zeros(count)
    for part, rows in zip(task.weights, parts, strict=False):
        total = total + task.weights[part] * entering_column(task, part, rows.values)
    total[~is_plain] = np.nan
    composites = Scores(total, np.zeros(count, np.uint8))
    for row in np.flatnonzero(~is_plain).tolist():
        score = composite_of_scores(task, {name: column[row] for name, column in scores.items()})
        composites.put(row, score)
    return composites


def _scaled_parts(task: Task) -> list[str]:
    """The parts that are brought into [0, 1]: those with a maximum, then those with a range."""
    names = dict.fromkeys([*task.maximum, *task.parts])
    return [part for part in names if part in task.weights]


def composite_signature(task: Task) -> Signature:
    """The weights, the normalisation and the handling of missing parts."""
    if task.headline is not None:
        return Signature(COMPOSITE, "1", {"task": task.name, "headline": task.headline})
    scaled = [task.enters_as(part).replace(" ", "") for part in _scaled_parts(task)]
    settings: dict[str, object] = {"task": task.name, "weights": dict(task.weights)}
    if scaled:
        settings["norm"] = ",".join(scaled) + " a sample"
    settings["on_missing"] = task.on_missing
    return Signature(COMPOSITE, "1", settings)
