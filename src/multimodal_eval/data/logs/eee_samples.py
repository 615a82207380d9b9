"""The samples of a file of instances of Every Eval Ever, with their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.logs.eee_columns import changed, columns_of
from multimodal_eval.data.logs.eee_records import (
    BY_SAMPLE,
    ORDER,
    SAMPLE,
    UNSCORED,
    UNSCORED_SAMPLES,
    Aggregate,
    Instance,
    Result,
    UnscoredSample,
)
from multimodal_eval.data.logs.log_format import score_column
from multimodal_eval.data.readers.json_file import DECODE_ERRORS, read_jsonl
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = [
    "HARNESS",
    "OurSamples",
    "ResultColumns",
    "ScoreLine",
    "TextLine",
    "is_by_sample",
    "metric_name",
    "score_lines",
    "score_ranges",
    "whole_instance",
]

T = TypeVar("T")
HARNESS = "eee"
MAX_RESULTS = 1000  # of one file: each is a column of the run
_DECODE_INSTANCE = msgspec.json.Decoder(Instance).decode
_DECODE_OBJECT = msgspec.json.Decoder(Columns).decode
_DECODE_UNSCORED = msgspec.json.Decoder(dict[str, dict[str, list[str]]]).decode
_DECODE_SAMPLES = msgspec.json.Decoder(list[UnscoredSample]).decode


class _Score(msgspec.Struct):
    score: float


class _Metadata(msgspec.Struct):
    epoch: str | None = None


class ScoreLine(msgspec.Struct):
    """What is needed of an instance to collect the scores."""

    sample_id: str | int
    evaluation_name: str
    evaluation: _Score
    evaluation_result_id: str | None = None
    sample_hash: str | None = None
    metadata: _Metadata | None = None

    @property
    def key(self) -> str:
        """The result that the score belongs to."""
        return self.evaluation_result_id or self.evaluation_name

    @property
    def stated_epoch(self) -> str | None:
        """The epoch, if the metadata say it."""
        return None if self.metadata is None else self.metadata.epoch


_DECODE_SCORE = msgspec.json.Decoder(ScoreLine).decode


def is_by_sample(aggregate: Aggregate) -> bool:
    """Whether the instances of a sample follow each other, as in an export of ours."""
    return _details(aggregate).get(ORDER) == BY_SAMPLE


def _details(aggregate: Aggregate) -> dict[str, str]:
    detailed = aggregate.detailed_evaluation_results
    return {} if detailed is None else detailed.additional_details


def score_ranges(instances: Path) -> dict[str, tuple[float, float]]:
    """The results that have instances, in order of first appearance, with their lowest and highest score."""
    ranges: dict[str, tuple[float, float]] = {}
    for _, line in score_lines(instances, Problems()):
        score = line.score.evaluation.score
        low, high = ranges.get(line.score.key, (score, score))
        ranges[line.score.key] = min(low, score), max(high, score)
    return ranges


def metric_name(result: Result) -> str:
    """The name of a result's metric."""
    config = result.metric_config
    return config.metric_id or config.metric_name or result.key


class ResultColumns(dict[str, str]):
    """Key of a result -> the column of its scores: named as the metric, or as the result if several have it."""

    def __init__(self, aggregate: Aggregate | None, file: Path) -> None:
        super().__init__()
        self._file = str(file)
        results = {} if aggregate is None else {result.key: result for result in aggregate.evaluation_results}
        names = Counter(map(metric_name, results.values()))
        for key, result in results.items():
            name = metric_name(result)
            self._add(key, name if names[name] == 1 else result.evaluation_result_id or f"{key}_{name}")

    def __missing__(self, key: str) -> str:
        self._add(key, key)
        return self[key]

    def _add(self, key: str, name: str) -> None:
        if len(self) >= MAX_RESULTS:
            message = f"there are more than {MAX_RESULTS:,} different results"
            raise InputError([Problem(code="TOO_MANY", message=message, file=self._file)])
        taken, count = set(self.values()), 1
        column = score_column(HARNESS, name)
        while column in taken:
            count += 1
            column = score_column(HARNESS, f"{name}_{count}")
        self[key] = column


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line, of which only the score is decoded."""

    score: ScoreLine
    text: bytes

    def instance(self) -> Instance:
        """The whole line."""
        return _DECODE_INSTANCE(self.text)


def score_lines(path: Path, problems: Problems) -> Iterator[tuple[int, TextLine]]:
    """(line number, line) of every line."""
    for line, fields in read_jsonl(path, problems, lambda text: {"line": TextLine(_DECODE_SCORE(text), text)}):
        yield line, cast(TextLine, fields["line"])


def whole_instance(line: TextLine, problems: Problems, file: Path, number: int) -> Instance | None:
    """The whole line; None if it has problems, which are recorded."""
    try:
        return line.instance()
    except DECODE_ERRORS as error:
        problems.add("TYPE", f"the instance cannot be read: {error}", file=str(file), line=number)
        return None


class OurSamples:
    """The samples of an export of ours. The instances of a sample follow each other; the first has all fields."""

    def __init__(
        self, aggregate: Aggregate, file: Path | None, names: ResultColumns, instances: Path, problems: Problems
    ) -> None:
        self._names, self._instances, self._problems = names, instances, problems
        self._file = str(file)
        self._statuses = self._read_statuses(aggregate)
        self._unscored = self._read_unscored(aggregate)

    def records(self) -> Iterator[Record]:
        """The samples in their order, with and without scores."""
        pending, row, last = iter(self._unscored), 0, 0
        waiting = next(pending, None)
        for last, columns in self._scored():
            while waiting is not None and waiting.row <= row:
                yield last, self._with_statuses(waiting.sample)
                waiting, row = next(pending, None), row + 1
            yield last, self._with_statuses(columns)
            row += 1
        for each in [] if waiting is None else [waiting, *pending]:
            yield last, self._with_statuses(each.sample)

    def _scored(self) -> Iterator[Record]:
        current: Columns = {}
        sample, first, keys = None, 0, set[str]()
        for number, line in score_lines(self._instances, self._problems):
            if line.score.sample_id != sample or line.score.key in keys:
                if current:
                    yield first, current
                instance = whole_instance(line, self._problems, self._instances, number)
                current = {} if instance is None else self._columns(instance, number)
                sample, first, keys = line.score.sample_id, number, set()
            keys.add(line.score.key)
            if current:
                current[self._names[line.score.key]] = line.score.evaluation.score
        if current:
            yield first, current

    def _columns(self, instance: Instance, line: int) -> Columns:
        columns, change = columns_of(instance), (instance.metadata or {}).get(SAMPLE)
        if change is None:
            return columns
        try:
            return changed(columns, _DECODE_OBJECT(change.encode()))
        except DECODE_ERRORS as error:
            message = f"the metadata {SAMPLE!r} cannot be read: {error}"
            self._problems.add("SYNTAX", message, file=str(self._instances), line=line)
            return columns

    def _with_statuses(self, columns: Columns) -> Columns:
        return {**columns, **self._statuses.get(str(columns.get("id")), {})}

    def _read_statuses(self, aggregate: Aggregate) -> dict[str, Columns]:
        """Id -> why it has no score, as columns."""
        statuses: dict[str, Columns] = {}
        for result in aggregate.evaluation_results:
            column = self._names[result.key]
            stored = self._decoded(result.score_details.details.get(UNSCORED), _DECODE_UNSCORED, UNSCORED) or {}
            for status, reasons in stored.items():
                for reason, ids in reasons.items():
                    for each in ids:
                        statuses.setdefault(each, {}).update({f"{column}:status": status, f"{column}:reason": reason})
        return statuses

    def _read_unscored(self, aggregate: Aggregate) -> list[UnscoredSample]:
        text = _details(aggregate).get(UNSCORED_SAMPLES)
        samples = self._decoded(text, _DECODE_SAMPLES, UNSCORED_SAMPLES) or []
        return sorted(samples, key=lambda sample: sample.row)

    def _decoded(self, text: str | None, decode: Callable[[bytes], T], name: str) -> T | None:
        if text is None:
            return None
        try:
            return decode(text.encode())
        except DECODE_ERRORS as error:
            self._problems.add("SYNTAX", f"{name!r} cannot be read: {error}", file=self._file)
            return None
