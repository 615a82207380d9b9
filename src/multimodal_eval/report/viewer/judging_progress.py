"""How far the judges of a run in progress are."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.judging.verdict_parts import VerdictParts, journal_of, records_of

__all__ = ["Judged", "judged"]


class Judged(NamedTuple):
    """The samples that the slowest of the metrics has judged, and its committed parts."""

    rows: int
    parts: int


def judged(folder: RunFolder, info: RunInfo, *, with_journal: bool = True) -> Judged:
    """What all metrics with a judge have done: metrics are judged one after the other.

    Without the journal, only what is in committed parts.
    """
    done = (_judged(folder, info, metric, with_journal=with_journal) for metric in info.judging)
    return min(done, default=Judged(0, 0))


def _judged(folder: RunFolder, info: RunInfo, metric: str, *, with_journal: bool) -> Judged:
    parts = VerdictParts(folder, metric, info.parts)
    if not with_journal:
        return Judged(parts.done, len(info.parts) - len(parts.left))
    known = {
        (record.row, record.place)
        for record in records_of(folder.journal(journal_of(metric)))
        if parts.is_left(record.row)
    }
    replies = Counter(row for row, _ in known)
    most = max(replies.values(), default=0)  # as many as there are questions about a sample
    complete = sum(count == most for count in replies.values())
    return Judged(parts.done + complete, len(info.parts) - len(parts.left))
