"""The stored verdicts on one sample, as a page shows them. A run folder of another program may contain anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.judges.verdict_tables import exchanges_kind, verdicts_kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ShownVerdict", "verdicts_of_sample"]

_PLACE = ("judge", "repeat", "order")
_REPLY = ("status", "reason", "text", "reasoning", "refusal", "model", "input_tokens", "output_tokens", "request")
_EXCHANGE = ("latency", "is_cached", "reply")


@dataclass(frozen=True)
class ShownVerdict:
    """One reply of a judge. `fields` are what was read from it, if the sample has a score."""

    model: str  # as it is configured
    answered_as: str | None  # as the endpoint names it
    repeat: int
    order: int
    status: str
    reason: str | None
    text: str | None
    reasoning: str | None
    fields: Mapping[str, object] | None
    input_tokens: int | None
    output_tokens: int | None
    request: str | None  # the digest of the request
    reply: str | None  # as it came from the endpoint
    is_cached: bool


def verdicts_of_sample(
    folder: RunFolder, metric: str, part: int, row: int, models: Sequence[str], details: object
) -> list[ShownVerdict]:
    """The verdicts of a metric on the sample in a row, which is counted from the start of the run.

    `models` are those of the judge's configuration, and `details` those of the sample's score.
    """
    if not folder.has_part(verdicts_kind(metric), part):
        return []
    rows = _rows(folder.read_part(verdicts_kind(metric), part, ["row", *_PLACE, *_REPLY]), row)
    try:
        exchanges = _rows(folder.read_part(exchanges_kind(metric), part, ["row", *_PLACE, *_EXCHANGE]), row)
    except MissingFileError:
        exchanges = []
    sent = {_place(each): each for each in exchanges}
    readings = details.get("verdicts") if isinstance(details, Mapping) else None
    ordered = sorted(rows, key=_place)
    if not isinstance(readings, list) or len(readings) != len(ordered):
        readings = [None] * len(ordered)
    return [
        _shown(each, sent.get(_place(each), {}), reading, models)
        for each, reading in zip(ordered, readings, strict=True)
    ]


def _shown(
    verdict: Mapping[str, Any], exchange: Mapping[str, Any], reading: Any, models: Sequence[str]
) -> ShownVerdict:
    judge, repeat, order = _place(verdict)
    return ShownVerdict(
        models[judge] if 0 <= judge < len(models) else f"judge {judge + 1}",
        _text(verdict.get("model")),
        repeat,
        order,
        _text(verdict.get("status")) or "no status",
        _text(verdict.get("reason")),
        _text(verdict.get("text") or verdict.get("refusal")),
        _text(verdict.get("reasoning")),
        _fields(reading),
        _count(verdict.get("input_tokens")),
        _count(verdict.get("output_tokens")),
        _text(verdict.get("request")),
        _text(exchange.get("reply")),
        exchange.get("is_cached") is True,
    )


def _fields(reading: object) -> dict[str, object] | None:
    """What was read from a reply, without its place."""
    if not isinstance(reading, Mapping):
        return None
    return {str(name): value for name, value in reading.items() if name not in _PLACE}


def _rows(table: pa.Table, row: int) -> list[dict[str, Any]]:
    """The rows of a table that belong to a sample."""
    if "row" not in table.column_names:
        return []
    rows = [number for number, value in enumerate(table.column("row").to_pylist()) if value == row]
    return list(table.take(rows).to_pylist())


def _place(row: Mapping[str, Any]) -> tuple[int, int, int]:
    judge, repeat, order = (_count(row.get(name)) or 0 for name in _PLACE)
    return judge, repeat, order


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
