"""The tables of verdicts in a run folder.

verdicts/METRIC.part-00000.parquet    one row per question: the sample's row, the place, and the reply
exchanges/METRIC.part-00000.parquet   one row per question: times, attempts and the raw reply, which always differ
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from multimodal_eval.core.batch import Batch
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import answer_table, exchange_table, exchanges_of
from multimodal_eval.generate.protocol import Exchange
from multimodal_eval.judges.form import Place, Verdict

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Judged",
    "column_name",
    "exchanges_kind",
    "rows_of",
    "verdict_column",
    "verdict_exchanges",
    "verdict_table",
    "verdicts_in",
    "verdicts_kind",
    "with_verdicts",
]

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(list[Verdict])


class Judged(NamedTuple):
    """The reply to one question about the sample in a row."""

    row: int
    place: Place
    exchange: Exchange


def verdicts_kind(metric: str) -> str:
    """The parts with the verdicts of a metric."""
    return f"verdicts/{metric}"


def exchanges_kind(metric: str) -> str:
    """The parts with the exchanges with the judges of a metric."""
    return f"exchanges/{metric}"


def verdict_table(judged: Sequence[Judged]) -> pa.Table:
    """What was replied."""
    return _placed(answer_table(0, [each.exchange for each in judged]), judged)


def verdict_exchanges(judged: Sequence[Judged]) -> pa.Table:
    """How each exchange went."""
    return _placed(exchange_table(0, [each.exchange for each in judged]), judged)


def _placed(table: pa.Table, judged: Sequence[Judged]) -> pa.Table:
    """The table with the rows of the samples and the places of the questions."""
    import pyarrow as pa

    table = table.set_column(0, "row", pa.array([each.row for each in judged], pa.int64()))
    for number, name in enumerate(("judge", "repeat", "order"), 1):
        values = pa.array([getattr(each.place, name) for each in judged], pa.int64())
        table = table.add_column(number, name, values)
    return table


def rows_of(table: pa.Table) -> list[Judged]:
    """The replies in a table of verdicts, without what differs from time to time."""
    places = zip(*(table.column(name).to_pylist() for name in ("row", "judge", "repeat", "order")), strict=True)
    return [
        Judged(row, Place(judge, repeat, order), exchange)
        for (row, judge, repeat, order), exchange in zip(places, exchanges_of(table), strict=True)
    ]


def column_name(metric: str) -> str:
    """The column of a batch with the verdicts that a metric scores."""
    return f"verdicts:{metric}"


def verdict_column(table: pa.Table, first_row: int, count: int) -> pa.Array:
    """The verdicts on every sample of a part, as JSON text: see `verdicts_in`."""
    import pyarrow as pa

    rows: list[list[Verdict]] = [[] for _ in range(count)]
    for row, place, exchange in rows_of(table):
        rows[row - first_row].append(Verdict(place, exchange.outcome))
    return pa.array(
        [_ENCODER.encode(sorted(verdicts, key=attrgetter("place"))).decode() for verdicts in rows], pa.string()
    )


def with_verdicts(batch: Batch, folder: RunFolder, part: int, first_row: int, metrics: Sequence[str]) -> Batch:
    """The samples of a part with the verdicts on them. Raises MissingFileError if a part of verdicts is missing."""
    for metric in metrics:
        table = folder.read_part(verdicts_kind(metric), part)
        batch = batch.with_column(column_name(metric), verdict_column(table, first_row, len(batch)))
    return batch


def verdicts_in(text: str) -> list[Verdict]:
    """The verdicts on a sample, by their places."""
    return _DECODER.decode(text)
