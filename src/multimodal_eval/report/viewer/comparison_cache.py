"""A cache of comparisons: a comparison of large runs takes seconds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.viewer.runs import ViewedRun

Compare = Callable[[Sequence[Run]], RunComparison]

KEPT_COMPARISONS = 16


class ComparisonCache:
    """The latest comparisons."""

    def __init__(self, compare: Compare) -> None:
        self._compare = compare
        self._comparisons: OrderedDict[Any, RunComparison] = OrderedDict()
        self._lock = Lock()

    def has(self, runs: Sequence[ViewedRun]) -> bool:
        """Whether the comparison of these runs is known, so that `of` answers at once."""
        return _key(runs) in self._comparisons

    def of(self, runs: Sequence[ViewedRun]) -> RunComparison:
        """The comparison of these runs. Comparisons run one at a time, since each takes all cores."""
        key = _key(runs)
        known = self._comparisons.get(key)
        if known is not None:
            return known
        with self._lock:
            if key not in self._comparisons:
                self._comparisons[key] = self._compare([run.run for run in runs])
                while len(self._comparisons) > KEPT_COMPARISONS:
                    self._comparisons.popitem(last=False)
            return self._comparisons[key]


def _key(runs: Sequence[ViewedRun]) -> tuple[Any, ...]:
    return tuple(run.identity for run in runs)
