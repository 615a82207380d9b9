"""The number that stands for a run, the same in its report and in the list of runs."""

from __future__ import annotations

from collections.abc import Mapping

from multimodal_eval.core.records import COMPOSITE, CompositeEntry, MetricEntry

Entries = Mapping[str, MetricEntry | CompositeEntry]


def headline(*runs: Entries) -> str:
    """Of the numbers that all runs have: the composite where it has a value, else the first that has one in all."""
    shared = [name for name in runs[0] if all(name in entries for entries in runs)]
    order = sorted(shared, key=lambda name: name != COMPOSITE)
    return next((name for name in order if all(entries[name].value is not None for entries in runs)), order[0])
