"""How often something is so, with an interval."""

from __future__ import annotations

from multimodal_eval.core.judge_records import Rate
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.intervals import Codes, Vector, wilson_interval

__all__ = ["rate_of"]


def rate_of(hits: Vector, clusters: Codes | None, *, is_limited: bool = True) -> Rate:
    """The share of hits, which are 1 and 0, with Wilson's interval; clustered if units belong together.

    `is_limited` is as in `wilson_interval`.
    """
    if not len(hits):
        return Rate(count=0, total=0, value=None, low=None, high=None)
    share = wilson_interval(mean_estimate(Rows(hits)), clusters, is_limited=is_limited)
    return Rate(count=int(hits.sum()), total=len(hits), value=share.value, low=share.low, high=share.high)
