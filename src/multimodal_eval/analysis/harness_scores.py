"""The scores that another harness gave to the answers of a run, beside the scores of our metrics.

An imported run has them as metrics. A run over the samples of a log, scored by our metrics, has them in the metadata of
its samples under the same names: `lm-eval.exact_match`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Averaging, cluster_codes, column_names, read_scores, read_values
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import COMPOSITE, RECORDED
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.data.logs.recognised import LOG_FORMATS
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.paired import compare

__all__ = ["SideBySide", "harness_beside_ours"]

_MOST = 40  # pairs of metrics
_LOOKED_AT = 200  # samples, to see whether they are from a log

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SideBySide:
    """The means of a score of the harness and of one of our metrics, over the samples that have both."""

    harness_metric: str
    our_metric: str
    harness: Figure
    ours: Figure
    difference: Figure  # ours minus that of the harness
    samples: int
    differing: int  # samples with different scores


def harness_beside_ours(run: Run) -> list[SideBySide]:
    """Every score of the harness with each of our metrics whose range it has. Empty without both."""
    variants, bounds = run.info.config.variants, run.info.bounds_of
    scored = [name for name, entry in run.entries.items() if entry.n_scored and name in run.info.signatures]
    ours = [
        name
        for name in scored
        if variants.get(name) != RECORDED
        and name != COMPOSITE
        and run.kind_of(name) == "mean"
        and None not in bounds(name)
    ]
    if not ours or run.info.config.strata is not None:
        return []
    theirs = _recorded(run, [name for name in scored if variants.get(name) == RECORDED]) | _in_metadata(run)
    if not theirs:
        return []
    parts = len(run.info.parts)
    values = dict(zip(ours, read_values(run.folder, parts, column_names(run.folder, parts), ours), strict=True))
    averaging = Averaging(cluster_codes(read_scores(run.folder, parts, ["group"]).column("group")))
    pairs = [(their, our) for their, our in product(theirs, ours) if _is_within(theirs[their], *bounds(our))]
    compared = (_compared(their, theirs[their], our, values[our], averaging) for their, our in pairs[:_MOST])
    return [each for each in compared if each is not None]


def _recorded(run: Run, names: list[str]) -> dict[str, Vector]:
    """The scores that an imported run has as metrics."""
    parts = len(run.info.parts)
    columns = read_values(run.folder, parts, column_names(run.folder, parts), names) if names else []
    return dict(zip(names, columns, strict=True))


def _in_metadata(run: Run) -> dict[str, Vector]:
    """The scores in the metadata of samples that come from a log."""
    if not run.info.parts or not any(_names(sample) for sample in _metadata(run, 0, _LOOKED_AT)):
        return {}
    samples = [sample for part in range(len(run.info.parts)) for sample in _metadata(run, part)]
    names = dict.fromkeys(name for sample in samples for name in _names(sample))
    return {name: np.array([_number(sample.get(name)) for sample in samples]) for name in names}


def _metadata(run: Run, part: int, most: int | None = None) -> Iterator[dict[str, Any]]:
    column = run.folder.read_part("samples", part, ["metadata"]).column("metadata")
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    yield from ({} if text is None else decode(text) for text in column.slice(0, most).to_pylist())


def _names(sample: dict[str, Any]) -> list[str]:
    """The keys that are scores of a harness: its name, a point, and a number as the value."""
    return [
        key
        for key, value in sample.items()
        if key.partition(".")[0] in LOG_FORMATS and isinstance(value, int | float) and "." in key
    ]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def _is_within(values: Vector, low: float | None, high: float | None) -> bool:
    known = values[~np.isnan(values)]
    if not len(known) or low is None or high is None:
        return False
    return bool(low <= known.min() and known.max() <= high)


def _compared(their: str, theirs: Vector, our: str, ours: Vector, averaging: Averaging) -> SideBySide | None:
    both = ~np.isnan(theirs) & ~np.isnan(ours)
    samples = int(both.sum())
    if not samples:
        return None
    averaging = averaging.of(both)
    first, second = Rows(theirs[both], None), Rows(ours[both], None)
    estimates = [averaging.estimate(mean_estimate, rows) for rows in (first, second)]
    (comparison,) = compare(estimates[:1], estimates[1:], averaging.clusters)
    return SideBySide(
        their,
        our,
        averaging.figure(mean_estimate, first),
        averaging.figure(mean_estimate, second),
        comparison.difference,
        samples,
        int((theirs[both] != ours[both]).sum()),
    )
