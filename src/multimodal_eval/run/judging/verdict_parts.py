"""The verdicts of one metric by parts: which questions have a reply, and which parts are stored.

When all questions about a part's samples have a reply, its exchanges are stored, then its verdicts: a part whose
verdicts exist is committed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

import msgspec

from multimodal_eval.core.records import JudgingInfo, RunInfo
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.exchange import Exchange
from multimodal_eval.judges.question import Place
from multimodal_eval.judges.verdict_tables import (
    Judged,
    exchanges_kind,
    verdict_exchanges,
    verdict_table,
    verdicts_kind,
)

__all__ = ["VerdictParts", "VerdictRecord", "counted", "journal_of", "records_of"]


class VerdictRecord(msgspec.Struct, array_like=True):
    """A line of the journal."""

    row: int
    place: Place
    exchange: Exchange


def journal_of(metric: str) -> str:
    """The file with the verdicts of parts that are not committed."""
    return f"verdicts/{metric}.jsonl"


def records_of(journal: Journal) -> Iterator[VerdictRecord]:
    """The records of a journal. One that this version does not understand is left out: its question is asked again."""
    for content in journal.records():
        try:
            yield msgspec.json.decode(content, type=VerdictRecord)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue


class VerdictParts:
    """The replies to the questions of a metric, of parts that are not committed."""

    def __init__(self, folder: RunFolder, metric: str, sizes: list[int]) -> None:
        self.folder, self.metric = folder, metric
        self.starts = [0, *accumulate(sizes)][: len(sizes)]
        self.rows = sum(sizes)
        kind = verdicts_kind(metric)
        self.left = [part for part in range(len(sizes)) if not folder.has_part(kind, part)]
        self._known: dict[int, dict[tuple[int, Place], Exchange]] = {part: {} for part in self.left}
        self._open: dict[int, int] = {}  # part -> questions without a reply, once it was asked

    def is_left(self, row: int) -> bool:
        """Whether the part of a row is not committed. False for rows that the run does not have."""
        return 0 <= row < self.rows and self._part_of(row) in self._known

    def keep(self, row: int, place: Place, exchange: Exchange) -> None:
        """Note a reply."""
        self._known[self._part_of(row)][row, place] = exchange

    def known(self, row: int, place: Place) -> Exchange | None:
        """The reply to a question, if its part is not committed."""
        return self._known[self._part_of(row)].get((row, place))

    def count(self, part: int) -> int:
        """How many replies a part has that is not committed."""
        return len(self._known[part])

    def commit(self, part: int) -> None:
        """Store a complete part."""
        known = self._known[part]
        judged = [Judged(row, place, known[row, place]) for row, place in sorted(known)]
        self.folder.write_part(exchanges_kind(self.metric), part, verdict_exchanges(judged))
        self.folder.write_part(verdicts_kind(self.metric), part, verdict_table(judged))
        del self._known[part]

    def all_known(self) -> Iterator[VerdictRecord]:
        """The replies of parts that are not committed."""
        for known in self._known.values():
            for (row, place), exchange in known.items():
                yield VerdictRecord(row, place, exchange)

    def _part_of(self, row: int) -> int:
        return bisect_right(self.starts, row) - 1


def counted(folder: RunFolder, info: RunInfo, metric: str, judging: JudgingInfo) -> JudgingInfo:
    """The description of a judge's work, with the counts of all stored verdicts."""
    statuses: Counter[str] = Counter()
    models: dict[str, None] = {}
    tokens = [0, 0]
    for part in range(len(info.parts)):
        columns = ["status", "model", "input_tokens", "output_tokens"]
        table = folder.read_part(verdicts_kind(metric), part, columns)
        statuses.update(table.column("status").to_pylist())
        models |= dict.fromkeys(name for name in table.column("model").unique().to_pylist() if name)
        for place, name in enumerate(("input_tokens", "output_tokens")):
            tokens[place] += sum(filter(None, table.column(name).to_pylist()))
    return msgspec.structs.replace(
        judging,
        models=list(models),
        statuses=dict(sorted(statuses.items())),
        input_tokens=tokens[0],
        output_tokens=tokens[1],
    )
