"""Why samples of a run are unscored, or scored with a warning: the metrics, how many samples, and their first ids."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.analysis.columns import column_names
from multimodal_eval.analysis.pairing import part_count
from multimodal_eval.data.runs.run import Run

__all__ = ["UnscoredReason", "unscored_reasons", "warned_samples"]

_SHOWN_IDS = 20


@dataclass(frozen=True)
class UnscoredReason:
    """A reason for which samples have no score, or are scored with a warning."""

    reason: str
    status: str
    count: int
    total: int
    ids: tuple[str, ...]  # of the first of these samples
    metrics: tuple[str, ...]  # that say this of exactly these samples


def unscored_reasons(run: Run) -> list[UnscoredReason]:
    """The reasons of all metrics, the most frequent ones first. Metrics with the same samples share one."""
    return _said(run, [name for name, e in run.entries.items() if e.coverage.scored < e.coverage.total], "reason")


def warned_samples(run: Run) -> list[UnscoredReason]:
    """The warnings about scored samples, such as answers in which a rule found nothing."""
    return _said(run, [name for name, e in run.entries.items() if e.coverage.warnings], "warning")


def _said(run: Run, metrics: list[str], what: str) -> list[UnscoredReason]:
    """What the column `m:reason` or `m:warning` of these metrics says, if the run has stored it."""
    stored = column_names(run.folder, part_count(run)) if metrics else ()
    metrics = [name for name in metrics if name in stored]
    if not metrics:
        return []
    table = run.scores(["id", *(f"{name}:{column}" for name in metrics for column in ("status", what))])
    ids, shared = table.column("id"), dict[tuple[str, str, tuple[int, ...]], list[str]]()
    for name in metrics:
        rows: dict[tuple[str, str], list[int]] = {}
        statuses = table.column(f"{name}:status").to_pylist()
        for row, (status, reason) in enumerate(zip(statuses, table.column(f"{name}:{what}").to_pylist(), strict=True)):
            if reason is not None:
                rows.setdefault((reason, status), []).append(row)
        for (reason, status), places in rows.items():
            shared.setdefault((reason, status, tuple(places)), []).append(name)
    reasons = [
        UnscoredReason(
            reason,
            status,
            len(places),
            len(table),
            tuple(ids[place].as_py() for place in places[:_SHOWN_IDS]),
            tuple(names),
        )
        for (reason, status, places), names in shared.items()
    ]
    return sorted(reasons, key=lambda each: -each.count)
