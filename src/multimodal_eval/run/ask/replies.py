"""The replies to what a run asks, by parts: a journal until a part is complete, then the tables of the part.

A reply has a key: the row of its sample, and the place of the question about it; an answer of a model has one place.
Every reply is appended to the journal as soon as it arrives, so that a killed process loses only the requests in
flight. When a part is complete, its tables are stored, that of the replies last: a part that has it is committed.
Whatever a killed process has written before that is written again, with the same content.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from shlex import quote
from typing import Any, NamedTuple

import msgspec

from multimodal_eval.core.config import Price
from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_content import Kind
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.meter import cost_of
from multimodal_eval.generate.protocol import Exchange
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import Judged, exchanges_kind, verdicts_kind

__all__ = ["ANSWERS", "Answered", "OpenSample", "Replies", "ReplyFiles", "counted", "paid", "resuming", "verdict_files"]

Key = tuple[int, Place]


class OpenSample(NamedTuple):
    """A sample without an outcome, and why it has none."""

    id: str
    reason: str


class Answered(NamedTuple):
    """A line of the journal of answers. One of verdicts is a `Judged`."""

    row: int
    exchange: Exchange


@dataclass(frozen=True)
class ReplyFiles:
    """Where the replies of one kind are in a run folder."""

    kind: Kind
    exchanges: Kind
    journal: str  # with the replies of parts that are not committed
    line: type[Answered] | type[Judged] = Judged

    def records(self, journal: Journal) -> Iterator[Judged]:
        """The records of a journal. One that this version does not understand is left out: it is asked again."""
        for content in journal.records():
            try:
                record = msgspec.json.decode(content, type=self.line)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue
            yield record if isinstance(record, Judged) else Judged(record.row, Place(), record.exchange)

    def append(self, journal: Journal, reply: Judged) -> None:
        """Add a reply to a journal."""
        journal.append(msgspec.json.encode(reply if self.line is Judged else Answered(reply.row, reply.exchange)))


ANSWERS = ReplyFiles("answers", "exchanges", "answers/journal.jsonl", Answered)


def verdict_files(metric: str) -> ReplyFiles:
    """Where the verdicts of a metric are."""
    return ReplyFiles(verdicts_kind(metric), exchanges_kind(metric), f"verdicts/{metric}.jsonl")


def resuming(folder: RunFolder, info: RunInfo) -> str:
    """The command that continues a run."""
    return f"mmeval {info.command} --resume {quote(folder.label)}"


class Replies:
    """The replies of the parts that are not committed, and how many of each part are missing.

    Every stream of requests lists what it asks about a part. The part is complete when all streams have done so and
    nothing that is listed is without a reply.
    """

    def __init__(self, folder: RunFolder, files: ReplyFiles, sizes: Sequence[int]) -> None:
        self.folder, self.files, self.sizes = folder, files, list(sizes)
        self.starts = [0, *accumulate(sizes)][: len(sizes)]
        self.left = dict.fromkeys(part for part in range(len(sizes)) if not folder.has_part(files.kind, part))
        self.rows = sum(sizes)
        self.done = self.rows - sum(sizes[part] for part in self.left)  # rows of committed parts
        self.count = 0  # replies of the other parts
        self._known: dict[int, dict[Key, Exchange]] = {part: {} for part in self.left}
        self._unlisted = dict.fromkeys(self.left, 1)  # streams that have not listed all their requests about a part
        self._missing = dict.fromkeys(self.left, 0)  # requests about a part that are listed and have no reply

    def part_of(self, row: int) -> int:
        """The part of a row."""
        return bisect_right(self.starts, row) - 1

    def is_left(self, row: int) -> bool:
        """Whether the part of a row is not committed. False for rows that the run does not have."""
        return 0 <= row < self.rows and self.part_of(row) in self.left

    def get(self, row: int, place: Place) -> Exchange | None:
        """The reply to a request, if its part is not committed."""
        return self._known.get(self.part_of(row), {}).get((row, place))

    def keep(self, reply: Judged) -> None:
        """Note a reply."""
        row, place, exchange = reply
        part = self.part_of(row)
        known = self._known[part]
        if (row, place) not in known:
            self.count += 1
            self._missing[part] -= 1
        known[row, place] = exchange

    def of_part(self, part: int) -> list[Judged]:
        """The replies of a part that is not committed, in order."""
        known = self._known[part]
        return [Judged(row, place, known[row, place]) for row, place in sorted(known)]

    def list_again(self, streams: int) -> None:
        """Forget what is listed: this many streams are about to list it. None if each row has one request."""
        self._unlisted = dict.fromkeys(self.left, streams)
        self._missing = {part: 0 if streams else self.sizes[part] - len(self._known[part]) for part in self.left}

    def end_list(self, part: int, count: int) -> None:
        """Note that a stream has listed all its requests about a part, and how many of them have no reply."""
        if self._unlisted.get(part):
            self._unlisted[part] -= 1
            self._missing[part] += count

    def drop(self, row: int) -> None:
        """Note that a request about a row will have no reply."""
        self._missing[self.part_of(row)] -= 1

    def is_complete(self, part: int) -> bool:
        """Whether a part can be stored."""
        return part in self.left and not self._unlisted[part] and not self._missing[part]

    def forget(self, part: int) -> None:
        """Remove a part from memory that is stored."""
        del self.left[part]
        self.count -= len(self._known.pop(part))
        self.done += self.sizes[part]

    def restrict(self, sizes: Sequence[int]) -> None:
        """Keep only the first rows, as many as the parts now have. Their replies are all known."""
        self.sizes, self.starts, self.rows = list(sizes), self.starts[: len(sizes)], sum(sizes)
        self.left = {part: None for part in self.left if part < len(sizes)}
        known = {part: self._known[part] for part in self.left}
        self._known = {
            part: {key: each for key, each in replies.items() if key[0] < self.rows} for part, replies in known.items()
        }
        self.count = sum(map(len, self._known.values()))

    def __iter__(self) -> Iterator[Judged]:
        for part in self.left:
            yield from self.of_part(part)


# What replies have cost, and what they are.


def paid(folder: RunFolder, info: RunInfo, files: ReplyFiles, prices: Sequence[Price | None]) -> float:
    """What the replies of a run have cost so far, each at the price of its model.

    Those from our cache are free, as are those without token counts.
    """
    replies = Replies(folder, files, info.parts)
    total = 0.0
    for part in range(len(info.parts)):
        if part not in replies.left:
            for model, is_cached, *tokens in _stored_usage(folder, files, part):
                total += _cost(prices, model, is_cached, tokens)
    if not folder.is_kept or not replies.left:
        return total
    for reply in files.records(folder.journal(files.journal)):
        if replies.is_left(reply.row):  # of several records of a request, the last one counts
            replies.keep(reply)
    for reply in replies:
        answer, is_cached = reply.exchange.outcome.answer, reply.exchange.is_cached
        usage = (answer.input_tokens, answer.output_tokens, answer.cached_tokens)
        total += _cost(prices, reply.place.judge, is_cached, usage)
    return total


def _cost(prices: Sequence[Price | None], model: int, is_free: object, tokens: Sequence[int | None]) -> float:
    price = prices[model] if 0 <= model < len(prices) else None
    return 0.0 if price is None or is_free else cost_of(price, *(number or 0 for number in tokens))


def _stored_usage(folder: RunFolder, files: ReplyFiles, part: int) -> Iterator[tuple[Any, ...]]:
    """The replies of a stored part: their models, whether they are from our cache, and their tokens."""
    table = folder.read_part(files.kind, part, ["judge", "input_tokens", "output_tokens"])
    tokens = [table.column(name).to_pylist() for name in ("input_tokens", "output_tokens")]
    try:
        exchanges = folder.read_part(files.exchanges, part, ["cached_tokens", "is_cached"])
    except MissingFileError:
        return zip(_models(table), [False] * len(table), *tokens, strict=True)
    cached = [exchanges.column(name).to_pylist() for name in ("is_cached", "cached_tokens")]
    return zip(_models(table), cached[0], *tokens, cached[1], strict=True)


def _models(table: Any) -> list[int]:
    """The number of the model of each stored reply: a run has one model that answers, but panels of judges."""
    return table.column("judge").to_pylist() if "judge" in table.column_names else [0] * len(table)


def counted(folder: RunFolder, info: RunInfo, files: ReplyFiles, prices: Sequence[Price | None]) -> dict[str, Any]:
    """The counts of all stored replies, as run.json describes them."""
    names: dict[str, None] = {}  # as the endpoints name them
    statuses: Counter[str] = Counter()
    used: dict[int, list[int]] = {model: [0, 0] for model in range(len(prices))}
    for part in range(len(info.parts)):
        table = folder.read_part(files.kind, part, ["judge", "status", "model", "input_tokens", "output_tokens"])
        statuses.update(table.column("status").to_pylist())
        names |= dict.fromkeys(name for name in table.column("model").unique().to_pylist() if name)
        tokens = (table.column(name).to_pylist() for name in ("input_tokens", "output_tokens"))
        for model, given, written in zip(_models(table), *tokens, strict=True):
            sums = used.setdefault(model, [0, 0])
            sums[0] += given or 0
            sums[1] += written or 0
    costs = [cost_of(price, *used[model]) for model, price in enumerate(prices) if price is not None]
    return {
        "models": list(names),
        "statuses": dict(sorted(statuses.items())),
        "input_tokens": sum(given for given, _ in used.values()),
        "output_tokens": sum(written for _, written in used.values()),
        "cost": sum(costs) if costs else None,
        "currency": next((price.currency for price in prices if price is not None), None),
    }
