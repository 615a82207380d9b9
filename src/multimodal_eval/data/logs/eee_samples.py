"""The samples of a file of instances of Every Eval Ever, with their scores."""

from __future__ import annotations

import ast
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import nan
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.logs.eee_records import (
    BY_SAMPLE,
    ORDER,
    OURS,
    SAMPLE,
    UNSCORED,
    UNSCORED_SAMPLES,
    Aggregate,
    Instance,
    Output,
    Result,
    TokenUsage,
    Turn,
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
    "change_of",
    "changed",
    "collected",
    "columns_of",
    "is_by_sample",
    "metric_name",
    "score_lines",
    "score_ranges",
    "whole_instance",
]


# The columns of a sample from an instance of Every Eval Ever, and what an instance cannot say of a sample.


def columns_of(instance: Instance) -> Columns:
    """The columns of the sample that an instance is about, without its scores. Absent ones are left out."""
    metadata: Columns = {key: value for key, value in (instance.metadata or {}).items() if not key.startswith(OURS)}
    columns: Columns = {"id": str(instance.sample_id), "metadata": metadata}
    if instance.input.raw:
        columns["question"] = instance.input.raw
    if instance.input.formatted:
        columns["prompt"] = instance.input.formatted
    if instance.input.reference:
        columns["references"] = instance.input.reference
    if instance.input.choices:
        columns["choices"] = instance.input.choices
    if instance.output is not None:
        _add_output(columns, metadata, instance.output)
    elif instance.messages:
        _add_turns(columns, metadata, instance.messages)
    if instance.error:
        columns["error"] = instance.error
    if instance.token_usage is not None:
        metadata |= _tokens(instance.token_usage)
    return columns


def _add_output(columns: Columns, metadata: Columns, output: Output) -> None:
    if output.raw:
        columns["generated_answer"] = output.raw[0]
    if len(output.raw) > 1:
        metadata["answers"] = output.raw
    if output.reasoning_trace:
        metadata["reasoning"] = "\n\n".join(output.reasoning_trace)


def _add_turns(columns: Columns, metadata: Columns, turns: list[Turn]) -> None:
    """The conversation; its last message is the answer, if it is the assistant's."""
    before = turns
    if turns[-1].role == "assistant":
        before = turns[:-1]
        if turns[-1].content is not None:
            columns["generated_answer"] = turns[-1].content
        if turns[-1].reasoning_trace:
            metadata["reasoning"] = turns[-1].reasoning_trace
    messages = [{"role": turn.role, "content": turn.content} for turn in before if turn.content is not None]
    if messages:
        columns["messages"] = messages


def _tokens(usage: TokenUsage) -> Columns:
    tokens: Columns = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return tokens if usage.reasoning_tokens is None else {**tokens, "reasoning_tokens": usage.reasoning_tokens}


def changed(columns: Columns, change: Columns) -> Columns:
    """Columns with the values of a sample that its instance cannot say; null removes a value."""
    metadata = {**_mapping(columns.get("metadata")), **_mapping(change.get("metadata"))}
    fields = {**columns, **{name: value for name, value in change.items() if name in FIELDS}}
    kept = {name: value for name, value in fields.items() if value is not None and name != "metadata"}
    return {**kept, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def change_of(columns: Columns, sample: Columns) -> Columns:
    """The change that turns columns into a sample: `changed(columns, change_of(columns, sample))` is the sample."""
    before, after = _mapping(columns.get("metadata")), _mapping(sample.get("metadata"))
    change = _difference(columns, sample)
    change.pop("metadata", None)
    inner = _difference(before, after)
    return {**change, "metadata": inner} if inner else change


def _difference(before: Columns, after: Columns) -> Columns:
    names = dict.fromkeys((*before, *after))
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def _mapping(value: object) -> Columns:
    return value if isinstance(value, dict) else {}


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


# The samples of a file of instances in any order, as other programs write them.
#
# The scores are collected first, then the samples are read, so that the memory is that of the scores.
#
# Instances are about the same sample if they have the same id and the same hash of input and references; without a
# hash, if they are of the same evaluation. If an id is used for several samples, ids are `EVALUATION/ID`. If a sample
# has a score several times, it was answered several times: these are epochs, by the metadata `epoch`, or in the order
# of the lines.

_LONGEST_LIST = 1_000_000  # characters of a list that was written as text


def collected(path: Path, names: ResultColumns, problems: Problems) -> Iterator[Record]:
    """One record per sample and epoch, in order of first appearance, with the answer of its first instance."""
    scores = _Scores(names)
    for number, line in score_lines(path, problems):
        message = scores.add(line.score, number)
        if message is not None:
            problems.add("DUPLICATE", message, file=str(path), line=number, id=str(line.score.sample_id))
    row = 0
    for number, line in score_lines(path, Problems()):
        if row < len(scores) and scores.lines[row] == number:
            instance = whole_instance(line, problems, path, number)
            if instance is not None:
                yield number, _record(instance, scores.columns(row, instance))
            row += 1


def _record(instance: Instance, scores: Columns) -> Columns:
    columns = {**columns_of(instance), **scores}
    if len(instance.input.reference) == 1:
        columns["references"] = _listed(instance.input.reference[0])
    return columns


def _listed(reference: str) -> list[str]:
    """The reference, or the references if a list was written as Python source."""
    if reference[:1] == "[" and reference[-1:] == "]" and len(reference) <= _LONGEST_LIST:
        try:
            values = ast.literal_eval(reference)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [reference]
        if isinstance(values, list) and values and all(isinstance(value, str) and value.strip() for value in values):
            return values
    return [reference]


def _epoch(line: ScoreLine) -> int | None:
    """The epoch, if the line says it."""
    text = line.stated_epoch
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


class _Scores:
    """The scores of all samples, by column. A row is a sample in an epoch; rows are in order of first appearance."""

    def __init__(self, names: ResultColumns) -> None:
        self._names = names
        self.lines: array[int] = array("q")  # the first line of each row
        self._epochs: array[int] = array("q")
        self._rows: dict[tuple[bytes, int], int] = {}  # sample and epoch
        self._values: dict[str, array[float]] = {}
        self._repeats: dict[tuple[int, str], int] = {}  # row of the first epoch, and column -> the last epoch
        self._data: dict[str, int] = {}  # id -> hash of its input and references
        self._has_same_ids = False

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: ScoreLine, number: int) -> str | None:
        """Collect a score. What is wrong, if it contradicts another one."""
        name, data = str(line.sample_id), line.sample_hash or line.evaluation_name
        sample = blake2b(f"{name}\0{data}".encode(errors="surrogatepass"), digest_size=12).digest()
        digest = int.from_bytes(sample[:7])
        self._has_same_ids |= self._data.setdefault(name, digest) != digest
        column = self._names[line.key]
        epoch = _epoch(line)
        row = self._row(sample, epoch or 1, number)
        if epoch is None and self._value(column, row) is not None:  # the sample was answered again
            self._repeats[row, column] = again = self._repeats.get((row, column), 1) + 1
            row = self._row(sample, again, number)
        before, score = self._value(column, row), line.evaluation.score
        self._values[column][row] = score
        if before is None or before == score:
            return None
        return f"the sample has two scores of {line.key!r}: {before:g} and {score:g}"

    def _row(self, sample: bytes, epoch: int, number: int) -> int:
        row = self._rows.setdefault((sample, epoch), len(self.lines))
        if row == len(self.lines):
            self.lines.append(number)
            self._epochs.append(epoch)
        return row

    def _value(self, column: str, row: int) -> float | None:
        values = self._values.setdefault(column, array("d"))
        if row >= len(values):
            values.extend([nan] * (row + 1 - len(values)))
        return values[row] if values[row] == values[row] else None

    @cached_property
    def _has_epochs(self) -> bool:
        """Whether some sample has an epoch after the first; asked when all scores are collected."""
        return max(self._epochs, default=1) > 1

    def columns(self, row: int, instance: Instance) -> Columns:
        """The scores of a row, and its id, epoch and group."""
        sample, epoch = str(instance.sample_id), self._epochs[row]
        name = f"{instance.evaluation_name}/{sample}" if self._has_same_ids else sample
        columns: Columns = {"id": name}
        if self._has_epochs:
            columns |= {"id": f"{name}#{epoch}", "epoch": epoch, "group": name}
        for column in self._values:
            value = self._value(column, row)
            if value is not None:
                columns[column] = value
        return columns
