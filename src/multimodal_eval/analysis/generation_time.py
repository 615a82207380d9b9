"""How long a model was asked: the time in which at least one request was in flight."""

from __future__ import annotations

import numpy as np

from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["busy_seconds"]


def busy_seconds(folder: RunFolder, parts: int) -> float:
    """The length of the union of all requests' times, so that a pause between two sessions does not count."""
    starts, ends = [np.empty(0)], [np.empty(0)]
    for part in range(parts):
        try:
            table = folder.read_part("exchanges", part, ["started", "latency", "is_cached"])
        except MissingFileError:
            continue
        started, latency = float_values(table.column("started")), float_values(table.column("latency"))
        was_sent = (latency > 0) & ~np.array(table.column("is_cached").to_pylist(), dtype=bool)
        starts.append(started[was_sent])
        ends.append((started + latency)[was_sent])
    return union_length(np.concatenate(starts), np.concatenate(ends))


def union_length(starts: np.ndarray, ends: np.ndarray) -> float:
    """The length of the union of intervals."""
    if not len(starts):
        return 0.0
    order = np.argsort(starts, kind="stable")
    starts, covered = starts[order], np.maximum.accumulate(ends[order])
    gaps = np.maximum(starts[1:] - covered[:-1], 0).sum()
    return float(covered[-1] - starts[0] - gaps)
