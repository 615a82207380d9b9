"""What a run of pairwise comparisons says: how often one system wins, and how far the judge can be trusted."""

from __future__ import annotations

import msgspec
import numpy as np

from multimodal_eval.analysis.averaging import figure_of
from multimodal_eval.analysis.columns import cluster_codes, column_names, read_column, read_scores
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import Figure, MetricEntry
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.paired import MIN_UNITS, ROUNDS, randomization_p_values

__all__ = ["Failure", "Preference", "preference_of", "preferences_of"]

_ALPHA = 0.05
_SHOWN_FAILURES = 10


class Failure(msgspec.Struct, frozen=True):
    """A pair that is unscored, and why."""

    id: str
    reason: str


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a system with a baseline."""

    metric: str
    system: str
    baseline: str
    pairs: int
    scored: int
    wins: int
    ties: int
    losses: int
    identical: int  # pairs of equal answers, which are ties
    win_rate: Figure  # of the system; a tie counts half
    length_controlled: Figure | None = None  # the win rate if both answers had the same length
    flips: Figure | None = None  # pairs whose winner changes with the order of the answers
    first: Figure | None = None  # verdicts, without ties, for the answer that is shown first
    p_value: float | None = None  # of the paired randomization test that neither is better
    better: str | None = None  # the system that wins more often, beyond chance
    failures: list[Failure] = []  # the first unscored pairs


def preferences_of(run: Run, *, rounds: int = ROUNDS, seed: int = 0) -> list[Preference]:
    """The comparison of every pairwise metric of a run."""
    names = [name for name, judge in run.info.config.judges.items() if judge.form == "pairwise" and name in run.metrics]
    return [preference_of(run, name, rounds=rounds, seed=seed) for name in names]


def preference_of(run: Run, metric: str, *, rounds: int = ROUNDS, seed: int = 0) -> Preference:
    """The comparison of a pairwise metric. All its pairs must be of the same two systems."""
    parts = len(run.info.parts)
    column = read_column(run.folder, parts, column_names(run.folder, parts), metric, run.info.bounds_of(metric))
    shares = column.values[column.scored]
    clusters = cluster_codes(read_scores(run.folder, parts, ["group"]).column("group"))
    if clusters is not None:
        clusters = clusters[column.scored]
    units = len(shares) if clusters is None else len(np.unique(clusters))
    p_value = None
    if units >= MIN_UNITS:
        (p_value,) = randomization_p_values([2 * shares - 1], clusters, rounds=rounds, seed=seed)
    entry = run.outcome.metrics[metric]
    system, baseline, identical = _systems(run, metric)
    return Preference(
        metric=metric,
        system=system,
        baseline=baseline,
        pairs=len(column.values),
        scored=len(shares),
        wins=int((shares > 0.5).sum()),
        ties=int((shares == 0.5).sum()),
        losses=int((shares < 0.5).sum()),
        identical=identical,
        win_rate=figure_of(entry),
        length_controlled=entry.parts.get("length_controlled"),
        flips=entry.parts.get("flip"),
        first=entry.parts.get("first"),
        p_value=p_value,
        better=_better(entry, p_value, system, baseline),
        failures=_failures(run, metric),
    )


def _better(entry: MetricEntry, p_value: float | None, system: str, baseline: str) -> str | None:
    if entry.value is None or p_value is None or p_value >= _ALPHA:
        return None
    return system if entry.value > 0.5 else baseline


def _systems(run: Run, metric: str) -> tuple[str, str, int]:
    """The names of both systems, and how many pairs have equal answers."""
    column = run.info.config.judges[metric].baseline
    names: set[tuple[str, str]] = set()
    identical = 0
    for sample in run.samples({"metadata", "generated_answer"}):
        metadata = sample.metadata
        names.add((str(metadata.get("system", "answer")), str(metadata.get("baseline_system", "baseline"))))
        identical += sample.generated_answer is not None and sample.generated_answer == metadata.get(column)
    if len(names) > 1:
        raise ConfigError(f"{run.folder.label} compares several pairs of systems: rank them instead")
    ((system, baseline),) = names
    return system, baseline, identical


def _failures(run: Run, metric: str) -> list[Failure]:
    failures: list[Failure] = []
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("scores", part, ["id", f"{metric}:reason", metric])
        rows = zip(*(table.column(name).to_pylist() for name in ("id", metric, f"{metric}:reason")), strict=True)
        failures += (Failure(name, reason or "unscored") for name, value, reason in rows if value is None)
        if len(failures) >= _SHOWN_FAILURES:
            break
    return failures[:_SHOWN_FAILURES]
