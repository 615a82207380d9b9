"""The slices of runs as heat maps: those that a run stores, and those by every column with few values."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from multimodal_eval.analysis.run_slices import slices_of
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.slice_heat import HeatMap, heat_map

__all__ = ["SliceCache", "stored_maps"]

KEPT = 16  # runs


def stored_maps(run: ViewedRun) -> list[HeatMap]:
    """The slices that the run was asked for."""
    entries = run.run.entries
    return [
        heat_map(
            column,
            {value: each.metrics for value, each in slices.items()},
            {value: each.n for value, each in slices.items()},
            entries,
        )
        for column, slices in run.run.outcome.slices.items()
    ]


class SliceCache:
    """The slices of the latest runs, by all columns with few values."""

    def __init__(self) -> None:
        self._maps: OrderedDict[object, list[HeatMap]] = OrderedDict()
        self._lock = Lock()

    def known(self, run: ViewedRun) -> list[HeatMap] | None:
        """The slices of a run, if they have been computed."""
        return self._maps.get(run.identity)

    def of(self, run: ViewedRun) -> list[HeatMap]:
        """The slices of a run. They are computed one run at a time."""
        with self._lock:
            maps = self._maps.get(run.identity)
            if maps is None:
                entries = run.run.entries
                maps = [heat_map(each.column, each.values, each.counts, entries) for each in slices_of(run.run)]
                self._maps[run.identity] = maps
                while len(self._maps) > KEPT:
                    self._maps.popitem(last=False)
            return maps
