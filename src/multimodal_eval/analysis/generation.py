"""How the answers of a run were generated: the model, its settings, the outcomes, and how long the requests took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.core.figure import ReasonCount
from multimodal_eval.core.records import GenerationInfo, RunInfo
from multimodal_eval.data.runs.run_content import Kind
from multimodal_eval.data.runs.run_folder import RunFolder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "GenerationSummary",
    "Latency",
    "StatusCount",
    "StoredAnswer",
    "busy_seconds",
    "generation_summary",
    "stored_answers",
]


REASONS = 3  # per status
_OK = "ok"
_NOT_SETTINGS = ("metric", "version", "model")  # entries of a signature that are shown apart


@dataclass(frozen=True)
class StatusCount:
    """How many samples have a status, and the most frequent reasons."""

    status: str
    count: int
    share: float
    reasons: list[ReasonCount]


@dataclass(frozen=True)
class Latency:
    """Seconds of the last attempt of each request that was sent. Answers from the cache do not count."""

    requests: int
    p50: float
    p95: float
    longest: float


@dataclass(frozen=True)
class GenerationSummary:
    """The generation of one run. Until all samples have an outcome, only the model and its settings are known."""

    model: str
    info: GenerationInfo
    prompt: str | None  # the name of the template, or its file
    template: str | None
    system: str | None
    parameters: dict[str, object]  # those that are set
    settings: dict[str, object]  # the other settings in the signature
    statuses: list[StatusCount] = field(default_factory=list)  # `ok` first, then the most frequent ones
    latency: Latency | None = None
    cached: int = 0  # samples that were answered from the cache
    retried: int = 0  # samples that needed more than one attempt

    @property
    def samples(self) -> int:
        """The number of samples with an outcome."""
        return sum(status.count for status in self.statuses)

    @property
    def outcome_lines(self) -> list[str]:
        """How many samples have which status, then the most frequent reasons, one per line."""
        counts = ", ".join(f"{status.count:,} {status.status}" for status in self.statuses)
        reasons = (
            f"  {status.status} ({reason.count:,}): {reason.reason}"
            for status in self.statuses
            for reason in status.reasons
        )
        return [f"answers of {self.model}: {counts}", *reasons]

    @property
    def failed(self) -> int:
        """The number of samples without an answer."""
        return sum(status.count for status in self.statuses if status.status != _OK)


@dataclass(frozen=True)
class StoredAnswer:
    """The outcome of one sample. `unused_text` is text of the model that is not its answer, such as a cut-off one."""

    status: str
    reason: str | None = None
    reasoning: str | None = None
    unused_text: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency: float | None = None  # None if it came from the cache or was not asked
    is_cached: bool = False


def generation_summary(folder: RunFolder, info: RunInfo) -> GenerationSummary | None:
    """The generation of a run; None if its samples came with answers."""
    generation, config = info.generation, info.config.generation
    if generation is None:
        return None
    parameters: dict[str, object] = msgspec.to_builtins(config.parameters) if config else {}
    summary = GenerationSummary(
        str(generation.settings.get("model") or (config.model if config else "")),
        generation,
        config.prompt if config else None,
        config.template if config else None,
        config.system if config else None,
        parameters,
        {  # without those that are shown elsewhere: among the parameters, or above the settings
            name: value
            for name, value in generation.settings.items()
            if not (name in _NOT_SETTINGS or name in parameters or name.partition(".")[0] in parameters)
        },
    )
    if not generation.statuses:
        return summary
    return _with_exchanges(replace(summary, statuses=_statuses(folder, info)), folder, len(info.parts))


def _statuses(folder: RunFolder, info: RunInfo) -> list[StatusCount]:
    counts: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    for part in range(len(info.parts)):
        table = _columns(folder, "answers", part, ["status", "reason"])
        for status, reason in zip(table["status"], table["reason"], strict=True):
            counts[str(status)] += 1
            if reason is not None and status != _OK:
                reasons.setdefault(str(status), Counter())[str(reason)] += 1
    return [
        StatusCount(
            status,
            count,
            count / counts.total(),
            [ReasonCount(reason, number) for reason, number in reasons.get(status, Counter()).most_common(REASONS)],
        )
        for status, count in sorted(counts.items(), key=lambda item: (item[0] != _OK, -item[1], item[0]))
    ]


def _with_exchanges(summary: GenerationSummary, folder: RunFolder, parts: int) -> GenerationSummary:
    """The summary with the times; without them if the exchanges were removed."""
    seconds, cached, retried = list[float](), 0, 0
    for part in range(parts):
        try:
            table = _columns(folder, "exchanges", part, ["latency", "attempts", "is_cached"])
        except MissingFileError:
            return summary
        for latency, attempts, is_cached in zip(*table.values(), strict=True):
            cached += bool(is_cached)
            retried += (_number(attempts) or 0) > 1
            if not is_cached and (sent := _number(latency)):  # 0: nothing was sent
                seconds.append(sent)
    quantiles = np.quantile(np.array(seconds, np.float64), [0.5, 0.95, 1]).tolist() if seconds else ()
    latency = Latency(len(seconds), *quantiles) if seconds else None
    return replace(summary, latency=latency, cached=cached, retried=retried)


def stored_answers(folder: RunFolder, part: int, rows: Sequence[int]) -> list[StoredAnswer]:
    """The outcomes of some rows of a part, which are counted from its start. Empty if the run asked no model."""
    if not folder.has_part("answers", part):
        return []
    columns = ["status", "reason", "text", "reasoning", "refusal", "input_tokens", "output_tokens"]
    answers = _columns(folder, "answers", part, columns, rows)
    try:
        times = _columns(folder, "exchanges", part, ["latency", "is_cached"], rows)
    except MissingFileError:
        times = {"latency": [None] * len(rows), "is_cached": [False] * len(rows)}
    return [
        StoredAnswer(
            str(status),
            _text(reason),
            _text(reasoning),
            None if status == _OK else _text(text or refusal),
            _count(input_tokens),
            _count(output_tokens),
            None if is_cached else _number(latency) or None,
            bool(is_cached),
        )
        for status, reason, text, reasoning, refusal, input_tokens, output_tokens, latency, is_cached in zip(
            *answers.values(), *times.values(), strict=True
        )
    ]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    """A finite number; None for what another program may have stored instead."""
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


def _count(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _columns(
    folder: RunFolder, kind: Kind, part: int, names: list[str], rows: Sequence[int] | None = None
) -> dict[str, list[Any]]:
    """Columns of a part by name, with all rows or the given ones. A column that is not there consists of nulls."""
    table = folder.read_part(kind, part, names)
    chosen = range(len(table)) if rows is None else rows
    return {name: _values(table, name, chosen) for name in names}


def _values(table: pa.Table, name: str, rows: Sequence[int]) -> list[Any]:
    if name not in table.column_names:
        return [None] * len(rows)
    column = table.column(name)
    if rows == range(len(column)):
        values: list[Any] = column.to_pylist()
        return values
    return [column[row].as_py() if row < len(column) else None for row in rows]


def busy_seconds(folder: RunFolder, parts: int) -> float:
    """The length of the union of all requests' times, so that a pause between two sessions does not count."""
    starts, ends = [np.empty(0)], [np.empty(0)]
    for part in range(parts):
        try:
            table = folder.read_part("exchanges", part, ["started", "latency", "is_cached"])
        except MissingFileError:
            continue
        started, latency = float_values(table.column("started")), float_values(table.column("latency"))
        was_sent = (latency > 0) & ~np.array(table.column("is_cached").to_pylist(), dtype=bool)
        starts.append(started[was_sent])
        ends.append((started + latency)[was_sent])
    return union_length(np.concatenate(starts), np.concatenate(ends))


def union_length(starts: np.ndarray, ends: np.ndarray) -> float:
    """The length of the union of intervals."""
    if not len(starts):
        return 0.0
    order = np.argsort(starts, kind="stable")
    starts, covered = starts[order], np.maximum.accumulate(ends[order])
    gaps = np.maximum(starts[1:] - covered[:-1], 0).sum()
    return float(covered[-1] - starts[0] - gaps)
