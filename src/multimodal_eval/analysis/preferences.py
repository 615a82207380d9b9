"""What a run of pairwise comparisons says: how often one system wins, and how far the judge can be trusted."""

from __future__ import annotations

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import cluster_codes, column_names, read_column, read_scores
from multimodal_eval.core.display import Displayed, p_comparison
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_config import DECIDED
from multimodal_eval.core.records import ComparedPair
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.intervals import LEVEL
from multimodal_eval.stats.power import MIN_UNITS
from multimodal_eval.stats.randomization import ROUNDS, randomization_p_values

__all__ = ["Failure", "Preference", "conclusion", "preference_of", "preferences_of"]

_ALPHA = 0.05
_SHOWN_FAILURES = 10


class Failure(msgspec.Struct, frozen=True):
    """A pair that is unscored, and why."""

    id: str
    reason: str


class Preference(Displayed, msgspec.Struct, frozen=True, kw_only=True):
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
    p_value: float | None = None  # of the paired randomization test that neither is better; None after an early stop
    better: str | None = None  # the system that wins more often, beyond chance
    stopped: ComparedPair | None = None  # what was certain when the comparisons stopped early
    confidence: float | None = None  # of that
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
    stopped = _stopped(run, metric)
    p_value = None
    if units >= MIN_UNITS and stopped is None:
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
        win_rate=entry.bare,
        length_controlled=entry.parts.get("length_controlled"),
        flips=entry.parts.get("flip"),
        first=entry.parts.get("first"),
        p_value=p_value,
        better=_certain(stopped) if stopped is not None else _better(entry, p_value, system, baseline),
        stopped=stopped,
        confidence=None if stopped is None else _confidence(run, metric),
        failures=_failures(run, metric),
    )


def conclusion(preference: Preference) -> str:
    """Which system is better by the judge, if this is known, and by which method."""
    if preference.stopped is not None:
        level = f"{100 * (preference.confidence or LEVEL):g}% confidence"
        method = f"{level} about these {preference.stopped.population:,} pairs, valid at any stopping time"
        if preference.stopped.outcome == "equal":
            return f"the two are equally good, within the margin, by this judge ({method})"
    elif preference.p_value is None:
        return "too few pairs to say which is better"
    else:
        method = f"{p_comparison(preference.p_value)}, paired randomization"
    if preference.better is None:
        return f"neither is shown to be better ({method})"
    return f"{preference.better} is better, by this judge ({method})"


def _stopped(run: Run, metric: str) -> ComparedPair | None:
    """The decision with which the comparisons stopped; None if all pairs were compared."""
    judging = run.info.judging.get(metric)
    pairs = [] if judging is None else judging.pairs
    return pairs[0] if len(pairs) == 1 and pairs[0].is_stopped else None


def _confidence(run: Run, metric: str) -> float | None:
    until = run.info.config.judges[metric].until
    return None if until is None else until.confidence


def _certain(pair: ComparedPair) -> str | None:
    return {"better": pair.system, "worse": pair.baseline_system}.get(pair.outcome)


def _better(entry: Figure, p_value: float | None, system: str, baseline: str) -> str | None:
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
        failures += (Failure(name, reason or "unscored") for name, value, reason in rows if _is_failure(value, reason))
        if len(failures) >= _SHOWN_FAILURES:
            break
    return failures[:_SHOWN_FAILURES]


def _is_failure(value: float | None, reason: str | None) -> bool:
    """Whether a pair should have a score. One that was not compared after an early stop need not."""
    return value is None and reason != DECIDED
