"""Why samples of a run are unscored: each reason with the metrics, how many samples, and their first ids."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.analysis.columns import column_names
from multimodal_eval.analysis.pairing import part_count
from multimodal_eval.data.runs.run import Run

__all__ = ["UnscoredReason", "unscored_reasons"]

_SHOWN_IDS = 20


@dataclass(frozen=True)
class UnscoredReason:
    """A reason for which samples have no score."""

    reason: str
    status: str
    count: int
    total: int
    ids: tuple[str, ...]  # of the first of these samples
    metrics: tuple[str, ...]  # that do not score exactly these samples for this reason


def unscored_reasons(run: Run) -> list[UnscoredReason]:
    """The reasons of all metrics, the most frequent ones first. Metrics with the same samples share one."""
    stored = column_names(run.folder, part_count(run))
    entries = run.entries.items()
    metrics = [name for name, each in entries if each.coverage.scored < each.coverage.total and name in stored]
    if not metrics:
        return []
    table = run.scores(["id", *(f"{name}:{what}" for name in metrics for what in ("status", "reason"))])
    ids, shared = table.column("id"), dict[tuple[str, str, tuple[int, ...]], list[str]]()
    for name in metrics:
        rows: dict[tuple[str, str], list[int]] = {}
        statuses = table.column(f"{name}:status").to_pylist()
        for row, (status, reason) in enumerate(zip(statuses, table.column(f"{name}:reason").to_pylist(), strict=True)):
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
