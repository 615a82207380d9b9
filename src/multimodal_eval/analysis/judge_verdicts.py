"""The stored verdicts of a judge: all of a run as arrays, and those on one sample as a page shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import cluster_codes, read_scores
from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.errors import MissingFileError, RunFolderError
from multimodal_eval.core.judge_config import JudgeConfig, judged_columns, judged_texts
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.extraction import ExtractingMetric
from multimodal_eval.evaluation.metrics_registry import is_available, resolve
from multimodal_eval.generate.template import PromptError
from multimodal_eval.judges.form import Form, Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.by_name import form_of
from multimodal_eval.judges.verdict_tables import Judged, exchanges_kind, rows_of, verdicts_kind
from multimodal_eval.lint.injection import addresses_judge
from multimodal_eval.stats.intervals import Codes, Vector

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PAIRWISE", "OrderEffects", "ShownVerdict", "StoredVerdicts", "stored_verdicts", "verdicts_of_sample"]


VALUED = ("scale", "binary", "rubric", "pairwise", "listwise", "clair", "fleur")  # forms whose verdicts are values
PAIRWISE = "pairwise"


@dataclass(slots=True)
class OrderEffects:
    """What the order of two answers changes: one entry per pair that is judged in both orders, or per verdict."""

    rows: list[int] = field(default_factory=list)  # the samples of the pairs
    flips: list[bool] = field(default_factory=list)
    disagreements: list[bool] = field(default_factory=list)
    decided_rows: list[int] = field(default_factory=list)  # the samples of verdicts that are not ties
    first: list[bool] = field(default_factory=list)  # whether they are for the answer that is shown first

    def add(self, row: int, readings: Sequence[Reading], score: Score) -> None:
        """Add the verdicts of one model on a pair, one per order, and its score by them."""
        if len(readings) > 1:
            self.rows.append(row)
            self.flips.append((score.parts or {}).get("flip") == 1)
            self.disagreements.append(len({reading["share"] for reading in readings}) > 1)
        for reading in readings:
            if reading["verdict"] in ("1", "2"):
                self.decided_rows.append(row)
                self.first.append(reading["verdict"] == "1")


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """All verdicts of one metric. Rows are samples, in input order."""

    config: JudgeConfig
    values: NDArray[np.float64]  # samples x models x repetitions; NaN without a readable verdict
    scores: Vector  # of the samples; NaN if unscored
    length_difference: Vector  # of the compared answers in characters; NaN if there are not two
    groups: Codes | None  # clusters of the samples
    questions: int
    unreadable: Mapping[tuple[int, str], int]  # (model, why) -> verdicts
    failed: Mapping[tuple[int, str], int]  # (model, status) -> questions
    orders: OrderEffects
    injections: int  # judged samples with an answer that addresses the judge
    systems: frozenset[str]  # whose answers are compared, by the metadata of the samples

    @property
    def complete(self) -> NDArray[np.bool_]:
        """The samples with all verdicts."""
        return np.asarray(~np.isnan(self.values).any(axis=(1, 2)))

    def clusters(self, rows: Codes) -> Codes | None:
        """The clusters of units that belong to these samples; None if all units are independent."""
        if self.groups is not None:
            return self.groups[rows]
        return rows if len(np.unique(rows)) < len(rows) else None


def stored_verdicts(folder: RunFolder, info: RunInfo, metric: str) -> StoredVerdicts:
    """Read the verdicts of a metric from a run folder."""
    config = info.config.judges[metric]
    reader = _Reader(form_of(config), sum(info.parts), _asked_about(info, metric))
    starts = [0, *accumulate(info.parts)]
    for part, size in enumerate(info.parts):
        judged = rows_of(folder.read_part(verdicts_kind(metric), part))
        samples = folder.read_samples(part)
        for each in judged:
            if not (starts[part] <= each.row < starts[part] + size and each.place.judge < len(config.models)):
                raise RunFolderError(f"{folder.label}: a verdict of {metric} is on a sample or model that is not there")
        try:
            reader.add(judged, samples, starts[part])
        except PromptError as error:
            raise RunFolderError(f"{folder.label}: the verdicts of {metric} cannot be read: {error}") from None
    table = read_scores(folder, len(info.parts), ["group", metric])
    return StoredVerdicts(
        config,
        reader.values,
        float_values(table.column(metric)),
        reader.lengths,
        cluster_codes(table.column("group")),
        reader.questions,
        reader.unreadable,
        reader.failed,
        reader.orders,
        reader.injections,
        frozenset(reader.systems),
    )


def _asked_about(info: RunInfo, name: str) -> Callable[[Sample], Sample]:
    """The sample as the judge of a metric is asked about it."""
    base = info.config.variants.get(name, name)
    metric = resolve(base) if info.config.judges[name].form == "extract" and is_available(base) else None
    return metric.asked_about if isinstance(metric, ExtractingMetric) else lambda sample: sample


class _Reader:
    """Collects the verdicts of all parts."""

    def __init__(self, form: Form, samples: int, asked_about: Callable[[Sample], Sample]) -> None:
        config = form.config
        self.form, self.asked_about = form, asked_about
        self.values = np.full((samples, len(config.models), config.repeats), np.nan)
        self.lengths = np.full(samples, np.nan)
        self.questions = 0
        self.unreadable: Counter[tuple[int, str]] = Counter()
        self.failed: Counter[tuple[int, str]] = Counter()
        self.orders = OrderEffects()
        self.injections = 0
        self.systems: set[str] = set()
        self._columns = judged_columns({config.name: config}) or ()

    def add(self, judged: Sequence[Judged], samples: Sequence[Sample], first_row: int) -> None:
        """Read the verdicts of a part."""
        self.questions += len(judged)
        readings: dict[tuple[int, int, int], list[Reading]] = {}
        for each in sorted(judged, key=lambda each: (each.row, each.place)):
            place = each.place
            key = (each.row, place.judge, place.repeat)
            reading = self._reading(each, samples[each.row - first_row])
            if reading is not None:
                readings.setdefault(key, []).append(reading)
        for (row, judge, repeat), verdicts in readings.items():
            sample = samples[row - first_row]
            if len(verdicts) == len(self.form.orders) and 1 <= repeat <= self.form.config.repeats:
                self._value(row, judge, repeat, sample, verdicts)
        for row, sample in enumerate(samples, first_row):
            self._see(row, sample)
        for row in {each.row for each in judged}:
            texts = judged_texts(samples[row - first_row], self._columns)
            self.injections += any(map(addresses_judge, texts))

    def _reading(self, judged: Judged, sample: Sample) -> Reading | None:
        place, outcome = judged.place, judged.exchange.outcome
        if outcome.status != "ok":
            self.failed[place.judge, outcome.status] += 1
            return None
        try:
            return self.form.read(self.asked_about(sample), outcome.answer, place.order)
        except UnreadableVerdictError as fault:
            self.unreadable[place.judge, str(fault).partition(":")[0]] += 1  # without the reply
            return None

    def _value(self, row: int, judge: int, repeat: int, sample: Sample, readings: list[Reading]) -> None:
        form = self.form.config.form
        if form not in VALUED:
            return
        score = self.form.value(sample, readings)
        self.values[row, judge, repeat - 1] = np.nan if score.value is None else score.value
        if form == PAIRWISE:
            self.orders.add(row, readings, score)

    def _see(self, row: int, sample: Sample) -> None:
        """Note what is compared."""
        metadata = sample.metadata
        if self.form.config.form == PAIRWISE and isinstance(other := metadata.get(self.form.config.baseline), str):
            self.lengths[row] = len(sample.generated_answer or "") - len(other)
        others = metadata.get("baseline_system")
        for name in (metadata.get("system"), *(others if isinstance(others, list) else [others])):
            if isinstance(name, str):
                self.systems.add(name)


# The stored verdicts on one sample, as a page shows them. A run folder of another program may contain anything.


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
