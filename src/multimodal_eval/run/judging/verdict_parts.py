"""The verdicts of one metric by parts: which questions have a reply, and which parts are stored.

When all questions about a part's samples have a reply, its exchanges are stored, then its verdicts: a part whose
verdicts exist is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow.compute as pc

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.records import JudgingInfo, RunInfo
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.outcomes import Exchange
from multimodal_eval.generate.prices import cost_of
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import (
    Judged,
    exchanges_kind,
    verdict_exchanges,
    verdict_table,
    verdicts_kind,
)
from multimodal_eval.run.generation.parts_left import PartsLeft, cost_of_usage, decoded, stored_usage, tallied, usage_of

__all__ = ["VerdictParts", "VerdictRecord", "counted", "journal_of", "paid", "records_of"]


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
    return decoded(journal, VerdictRecord)


class VerdictParts(PartsLeft):
    """The replies to the questions of a metric, of parts that are not committed.

    Every model of a judge lists its questions about a part. The part is complete when all of them have done so, and
    none of the questions is without a reply.
    """

    def __init__(self, folder: RunFolder, metric: str, sizes: list[int]) -> None:
        super().__init__(folder, verdicts_kind(metric), sizes)
        self.metric = metric
        self.done = self.rows - sum(sizes[part] for part in self.left)  # rows of committed parts
        self.replies = 0  # of the other parts
        self._known: dict[int, dict[tuple[int, Place], Exchange]] = {part: {} for part in self.left}
        self._unlisted: dict[int, int] = {}  # part -> models that have not listed all their questions about it
        self._missing: dict[int, int] = {}  # part -> questions that are listed and have no reply

    def list_again(self, models: int) -> None:
        """Forget the lists of questions: they are about to be made by this many models."""
        self._unlisted = dict.fromkeys(self.left, models)
        self._missing = dict.fromkeys(self.left, 0)

    def expect(self, part: int) -> None:
        """Note a question without a reply."""
        self._missing[part] += 1

    def end_list(self, part: int) -> bool:
        """Note that a model has listed its questions about a part. True if the part is now complete."""
        self._unlisted[part] -= 1
        return self._is_complete(part)

    def keep(self, row: int, place: Place, exchange: Exchange) -> None:
        """Note a reply."""
        known = self._known[self.part_of(row)]
        self.replies += (row, place) not in known
        known[row, place] = exchange

    def answered(self, row: int, place: Place, exchange: Exchange) -> bool:
        """Note the reply to a question that is listed. True if its part is now complete."""
        part = self.part_of(row)
        self.keep(row, place, exchange)
        self._missing[part] -= 1
        return self._is_complete(part)

    def drop(self, row: int) -> bool:
        """Note that a question about a row, which is listed, will not be asked. True if its part is now complete."""
        part = self.part_of(row)
        self._missing[part] -= 1
        return self._is_complete(part)

    def _is_complete(self, part: int) -> bool:
        return not self._unlisted[part] and not self._missing[part]

    def known(self, row: int, place: Place) -> Exchange | None:
        """The reply to a question, if its part is not committed."""
        return self._known[self.part_of(row)].get((row, place))

    def commit(self, part: int) -> None:
        """Store a complete part."""
        known = self._known[part]
        judged = [Judged(row, place, known[row, place]) for row, place in sorted(known)]
        self.folder.write_part(exchanges_kind(self.metric), part, verdict_exchanges(judged))
        self.folder.write_part(verdicts_kind(self.metric), part, verdict_table(judged))

    def forget(self, part: int) -> None:
        """Remove a part from memory that is stored."""
        self.replies -= len(self._known.pop(part))
        self.done += self.sizes[part]
        del self.left[part]

    def all_known(self) -> Iterator[VerdictRecord]:
        """The replies of parts that are not committed."""
        for known in self._known.values():
            for (row, place), exchange in known.items():
                yield VerdictRecord(row, place, exchange)


def paid(folder: RunFolder, info: RunInfo, metric: str, config: JudgeConfig) -> float:
    """What the verdicts of a metric have cost so far. Those from our cache are free."""
    prices = [model.price for model in config.models]
    parts = VerdictParts(folder, metric, info.parts)
    total = 0.0
    for part in range(len(info.parts)):
        if part not in parts.left:
            kinds = verdicts_kind(metric), exchanges_kind(metric)
            judges = folder.read_part(kinds[0], part, ["judge"]).column("judge").to_pylist()
            for judge, usage in zip(judges, stored_usage(folder, *kinds, part), strict=True):
                price = prices[judge]
                total += 0.0 if price is None else cost_of_usage(price, usage)
    journal = folder.journal(journal_of(metric)) if folder.is_kept and parts.left else Journal(None)
    records = {(each.row, each.place): each for each in records_of(journal) if parts.is_left(each.row)}
    for record in records.values():  # of several records of a question, the last one counts
        price = prices[record.place.judge] if 0 <= record.place.judge < len(prices) else None
        total += 0.0 if price is None else cost_of_usage(price, usage_of(record.exchange))
    return total


def counted(folder: RunFolder, info: RunInfo, metric: str, config: JudgeConfig) -> JudgingInfo:
    """The description of a judge's work, with the counts of all stored verdicts."""
    tally = tallied(folder, verdicts_kind(metric), len(info.parts))
    priced = [model.price for model in config.models if model.price is not None]
    return msgspec.structs.replace(
        info.judging[metric],
        models=list(tally.models),
        statuses=dict(sorted(tally.statuses.items())),
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        cost=_cost(folder, info, metric, config) if priced else None,
        currency=priced[0].currency if priced else None,
    )


def _cost(folder: RunFolder, info: RunInfo, metric: str, config: JudgeConfig) -> float:
    """What all stored verdicts cost, each by the price of its model."""
    tokens = [[0, 0] for _ in config.models]
    for part in range(len(info.parts)):
        table = folder.read_part(verdicts_kind(metric), part, ["judge", "input_tokens", "output_tokens"])
        for judge, sums in enumerate(tokens):
            rows = table.filter(pc.equal(table.column("judge"), judge))
            for place, name in enumerate(("input_tokens", "output_tokens")):
                sums[place] += sum(filter(None, rows.column(name).to_pylist()))
    return sum(_price_of(config, judge, sums) for judge, sums in enumerate(tokens))


def _price_of(config: JudgeConfig, judge: int, tokens: Sequence[int]) -> float:
    price = config.models[judge].price
    return 0.0 if price is None else cost_of(price, *tokens)
