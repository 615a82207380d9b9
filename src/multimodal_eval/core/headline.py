"""The headline of a run: the metric that leads. Tables, lists, reports, the viewer and leaderboards all ask here.

The rule: the metric that the user chose; else the composite; else the headline of a preset (`cider_d` for `coco`);
else the first metric that the task has or that was asked for. A metric without a value leads only if the user chose it,
or if no metric has a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import COMPOSITE, Results, RunInfo

__all__ = ["PRESET_HEADLINES", "headline_of", "leading_metric", "shared_headline"]

PRESET_HEADLINES = {"coco": "cider_d"}  # preset -> the metric that leads its runs

Entries = Mapping[str, Figure]


def leading_metric(
    names: Sequence[str],
    *,
    chosen: str | None = None,
    presets: Sequence[str] = (),
    values: Mapping[str, float | None] | None = None,
) -> str | None:
    """The metric of `names` that leads; None if there are none.

    `names` are in the order of the run; `chosen` is the user's choice; `values` are known after scoring.
    """
    if chosen is not None:
        name = COMPOSITE if chosen == "composite" else chosen
        if name not in names:
            raise UnknownNameError("metric of this run", chosen, names)
        return name
    preferred = [COMPOSITE, *(PRESET_HEADLINES[preset] for preset in presets if preset in PRESET_HEADLINES)]
    order = [*(name for name in preferred if name in names), *(name for name in names if name not in preferred)]
    with_value = (name for name in order if values is None or values.get(name) is not None)
    return next(with_value, order[0] if order else None)


def headline_of(info: RunInfo, results: Results | None = None) -> str | None:
    """The headline that the run declares; for a run of an older version, the same rule.

    Without `results`, for a run that is not finished, no values are known.
    """
    stored = info.headline if results is None else results.headline
    names = [*info.metrics, *info.unavailable] if results is None else list(results.entries)
    if stored in names:
        return stored
    values = None if results is None else {name: entry.value for name, entry in results.entries.items()}
    chosen = info.config.headline
    return leading_metric(names, chosen=chosen if chosen in names else None, presets=info.config.presets, values=values)


def shared_headline(runs: Sequence[tuple[RunInfo, Results]]) -> str:
    """The headline of several runs side by side: the first run's that all runs have a value of."""
    entries: list[Entries] = [results.entries for _, results in runs]
    shared = [name for name in entries[0] if all(name in others for others in entries)]
    headlines = [headline_of(info, results) for info, results in runs]
    order = [*dict.fromkeys(name for name in headlines if name in shared), *shared]
    if len(runs) == 1:
        return order[0]
    with_value = (name for name in order if all(others[name].value is not None for others in entries))
    return next(with_value, order[0])
