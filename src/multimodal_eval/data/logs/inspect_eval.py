"""Logs of inspect_ai: `.eval` (a zip file) and `.json`.

A sample of a log with several epochs is one record per epoch, with the id `ID#EPOCH` and the group ID. Every scorer is
a column, `inspect.<scorer>`; if its value is a list or an object, every item is, `inspect.<scorer>_<key>`. Letters and
words become numbers by the rules of inspect_ai. Samples with an error, and those without an answer because of a filter
or a limit, are failures.
"""

from __future__ import annotations

import mmap
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from multimodal_eval._native import array_elements
from multimodal_eval.data.logs.decoding import loosely
from multimodal_eval.data.logs.inspect_samples import (
    HARNESS,
    all_scores,
    decoded,
    decoded_scores,
    epoch_of,
    failure_of,
    record_of,
    score_values,
    shortened,
)
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, score_column
from multimodal_eval.data.logs.zip_entries import BrokenZipError, ZipEntries, open_zip
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import BOM, COMPRESSED, DamagedStreamError
from multimodal_eval.data.readers.json_file import DECODE_ERRORS, mapped
from multimodal_eval.data.readers.problems import Problems, Record

__all__ = ["FORMAT", "Header", "InspectFile", "ScoreResult", "is_json_log", "is_zip_log", "noting_faults", "open_log"]


# The two files that inspect_ai writes: a zip file `.eval` with one entry per sample, and one JSON object.

_SAMPLE = re.compile(r"samples/(.*)_epoch_([0-9]{1,9})\.json", re.DOTALL)
_LATER_EPOCH = re.compile(rb'"epoch"\s*:\s*(?:[2-9]|1[0-9])')
_HEADER, _START = "header.json", "_journal/start.json"
_BATCH = 1000
_MOST_MEMBERS = 1000
_MEMBERS = ("version", "status", "eval", "results", "error")


class _Metric(msgspec.Struct):
    value: Any = None
    params: Any = None


class ScoreResult(msgspec.Struct):
    """What the log reports for one score: its metrics after one reducer of the epochs."""

    name: str
    scorer: str = ""
    reducer: str | None = None
    scored_samples: int | None = None
    metrics: dict[str, _Metric] = {}


class _Results(msgspec.Struct):
    scores: list[ScoreResult] = []


class _Config(msgspec.Struct):
    epochs: int | None = None


class _Eval(msgspec.Struct):
    task: str | None = None
    model: str | None = None
    packages: dict[str, Any] = {}
    config: _Config = msgspec.field(default_factory=_Config)
    model_generate_config: dict[str, Any] = {}


class Header(msgspec.Struct):
    """What a log says about itself."""

    status: str | None = None
    eval: _Eval = msgspec.field(default_factory=_Eval)
    results: _Results | None = None

    def clusters(self) -> dict[str, str]:
        """The metadata by which `stderr(cluster=…)` clusters samples, by scorer."""
        names = {}
        for score in self.results.scores if self.results is not None else ():
            for metric in score.metrics.values():
                cluster = metric.params.get("cluster") if isinstance(metric.params, dict) else None
                if isinstance(cluster, str):
                    names[score.scorer or score.name] = cluster
        return names


class InspectFile(Protocol):
    """An open log."""

    @property
    def header(self) -> Header:
        """What the log says about itself."""
        ...

    @property
    def has_epochs(self) -> bool:
        """Whether samples were answered several times."""
        ...

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """(number, JSON text) of every sample."""
        ...

    def place(self, number: int) -> str:
        """The file of a sample, for messages, with its entry if the file is an archive."""
        ...


@contextmanager
def open_log(path: Path) -> Iterator[InspectFile]:
    """The log in a file."""
    with path.open("rb") as stream:
        is_zip = stream.read(2) == b"PK"
    if is_zip:
        with open_zip(path) as entries:
            yield _Archive(entries, str(path))
    else:
        is_compressed = path.suffix.lower() in COMPRESSED
        budget = limits.Budget(str(path), path.stat().st_size) if is_compressed else None
        with mapped(path) as text:
            yield _Document(text, str(path), budget)


@contextmanager
def noting_faults(path: Path, problems: Problems) -> Iterator[None]:
    """Note damage to a log as a problem. What follows it is not read."""
    try:
        yield
    except (BrokenZipError, DamagedStreamError) as fault:
        problems.add(fault.code, f"not a readable log of inspect_ai: {fault}", file=str(path))
    except _NotALogError as fault:
        problems.add("FORMAT", f"not a log of inspect_ai: {fault}", file=str(path))


class _NotALogError(Exception):
    """The file has another content."""


@dataclass
class _Archive:
    entries: ZipEntries
    file: str

    @cached_property
    def header(self) -> Header:
        name = _HEADER if _HEADER in self.entries else _START
        if name not in self.entries:
            raise _NotALogError(f"the zip file has no {_HEADER}")
        header = _header_of(self.entries.read(name), name)
        if name == _START:
            header.status = "started"
        return header

    @cached_property
    def _names(self) -> list[str]:
        """The entries of the samples in the order of inspect_ai: by epoch, then by id, 2 before 10."""
        matches = filter(None, map(_SAMPLE.fullmatch, self.entries))
        return [name for *_, name in sorted((int(match[2]), match[1].zfill(20), match[0]) for match in matches)]

    @property
    def has_epochs(self) -> bool:
        last = _SAMPLE.fullmatch(self._names[-1]) if self._names else None
        return (last is not None and int(last[2]) > 1) or (self.header.eval.config.epochs or 1) > 1

    def texts(self) -> Iterator[tuple[int, bytes]]:
        self.entries.check_total(self._names)
        for number, content in enumerate(self.entries.read_json(self._names), 1):
            yield number, shortened(content, self.file, number)

    def place(self, number: int) -> str:
        return f"{self.file}/{self._names[number - 1]}"


@dataclass
class _Document:
    text: bytes | mmap.mmap
    file: str
    budget: limits.Budget | None  # of a compressed file

    @cached_property
    def _members(self) -> dict[str, tuple[int, int]]:
        """Where the values of the object are. The text is not decoded: NaN may be in it."""
        head = bytes(self.text[:4096]).removeprefix(BOM)
        if not head.lstrip().startswith(b"{"):
            what = "is empty" if not head.strip() else "is something else"
            raise _NotALogError(f"it must be a zip file or a JSON object, and it {what}")
        start = self.text.find(b"{") + 1
        spans, *_ = array_elements(self.text, start, _MOST_MEMBERS)
        members: dict[str, tuple[int, int]] = {}
        for begin, end, _ in spans:
            key = re.compile(rb'"(\w{1,40})"\s*:\s*').match(self.text, begin, end)
            if key is not None:
                members[key[1].decode(errors="replace")] = (key.end(), end)
        return members

    @cached_property
    def header(self) -> Header:
        pieces = []
        for name in _MEMBERS:
            if name in self._members:
                begin, end = self._members[name]
                if end - begin > limits.current().text_bytes:
                    limits.refuse_text(self.file, 1)
                value = bytes(self.text[begin:end])
                if end == len(self.text) or self._is_last(name):
                    value = value.rstrip().removesuffix(b"}")
                pieces.append(b'"%s":%s' % (name.encode(), value))
        if "eval" not in self._members:
            raise _NotALogError("the object has no `eval`")
        return _header_of(b"{%s}" % b",".join(pieces), "the header")

    def _is_last(self, name: str) -> bool:
        return self._members[name][1] == max(end for _, end in self._members.values())

    @cached_property
    def has_epochs(self) -> bool:
        if (self.header.eval.config.epochs or 1) > 1:
            return True
        if not _LATER_EPOCH.search(self.text):  # otherwise it may be in the metadata or events of a sample
            return False
        return any(epoch_of(text, self.file, number) > 1 for number, text in self._texts(None))

    def texts(self) -> Iterator[tuple[int, bytes]]:
        return self._texts(self.budget)

    def place(self, number: int) -> str:
        return self.file

    def _texts(self, budget: limits.Budget | None) -> Iterator[tuple[int, bytes]]:
        begin, _ = self._members.get("samples", (0, 0))
        if not begin or self.text[begin : begin + 1] != b"[":
            return
        position, number, closed = begin + 1, 0, False
        most = limits.current().record_bytes // 2
        while not closed:
            elements, position, _, closed, broken = array_elements(self.text, position, _BATCH)
            for first, last, _ in elements:
                number += 1
                if last - first > most:
                    limits.refuse_record(self.file, number, 2 * (last - first))
                if not (broken and last == elements[-1][1]):
                    content = bytes(self.text[first:last])
                    if budget is not None:
                        budget.spend_json(content)
                    yield number, shortened(content, self.file, number)
            if broken:
                raise DamagedStreamError("TRUNCATED", f"the file ends in the middle of sample {number}")


def _header_of(text: bytes, what: str) -> Header:
    limits.check_json(text, what, None, what)
    try:
        return msgspec.json.decode(text, type=Header)
    except msgspec.ValidationError as error:
        raise _NotALogError(f"{what} is not as expected: {error}") from error
    except DECODE_ERRORS as error:
        try:
            return msgspec.convert(loosely(text), Header)
        except (msgspec.ValidationError, RecursionError):
            raise _NotALogError(f"{what} is not valid JSON: {error}") from error


def is_json_log(head: bytes) -> bool:
    """Whether the beginning of a file is that of a log as one JSON object."""
    return re.match(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{', head) is not None


def is_zip_log(head: bytes) -> bool:
    """Whether the beginning of a file is that of a log as a zip file: its first entry has one of the names of a log."""
    name = head[30:80]
    return head.startswith(b"PK\3\4") and name.startswith((b"_journal/", b"samples/", _HEADER.encode()))


_MEANS = ("mean", "accuracy")  # metrics of inspect_ai that are the mean of the scores
_SPREADS = ("stderr", "std", "var", "bootstrap_stderr", "low", "high")
_SETTINGS = ("temperature", "top_p", "max_tokens", "seed", "num_choices", "reasoning_effort", "system_message")


class InspectEval:
    """The formats of inspect_ai."""

    name, harness = "inspect", HARNESS
    suffixes = (".eval", ".json")
    files = "*.eval, or *.json"
    takes = "input, choices, targets, answers, reasoning, errors, epochs, images, tokens, the scores of every scorer"

    def recognises(self, head: Head) -> bool:
        """By the first entry of the zip file, or the first keys of the object."""
        return is_zip_log(head.data) or is_json_log(head.data)

    def part_name(self, path: Path) -> str:
        """The task."""
        task = None
        with noting_faults(path, Problems()), open_log(path) as log:
            task = log.header.eval.task
        return task or path.stem

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per sample and epoch, by epoch and id."""
        with noting_faults(path, problems), open_log(path) as log:
            several, cluster = log.has_epochs, next(iter(log.header.clusters().values()), None)
            for number, text in log.texts():
                sample = decoded(text, log.place(number), number, problems)
                if sample is not None:
                    yield number, record_of(sample, text, several=several, cluster=cluster)

    def info(self, path: Path) -> LogInfo:
        """What the header says, and the columns of all scores."""
        problems = Problems()
        scores: dict[str, _Column] = {}
        header, several = Header(), False
        with noting_faults(path, problems), open_log(path) as log:
            header, several = log.header, log.has_epochs
            for number, text in log.texts():
                _add_scores(scores, text, log.place(number), number, problems)
        problems.raise_if_any()
        results, notes = _results(header)
        return LogInfo(
            HARNESS,
            version=_text(header.eval.packages.get("inspect_ai")),
            model=header.eval.model,
            task=header.eval.task,
            scores=tuple(_recorded(column, results.get(name), several) for name, column in scores.items()),
            notes=(*_status(header), *_clusters(header), *notes),
            settings={key: value for key, value in header.eval.model_generate_config.items() if key in _SETTINGS},
        )


FORMAT = InspectEval()


@dataclass
class _Column:
    """What a pass over all samples finds about a column of scores."""

    name: str
    is_graded: bool = True  # all values are letters or booleans
    ids: array[int] = field(default_factory=lambda: array("q"))  # hashes, of scores that are not those of failures

    def has_equal_epochs(self) -> bool:
        """Whether all samples have as many scores."""
        counts = np.unique(np.frombuffer(self.ids, np.int64), return_counts=True)[1] if self.ids else np.zeros(0)
        return len(counts) == 0 or bool((counts == counts[0]).all())


def _add_scores(columns: dict[str, _Column], text: bytes, file: str, number: int, problems: Problems) -> None:
    sample = decoded_scores(text, file, number, problems)
    if sample is None:
        return
    failed = failure_of(sample) is not None
    for name, score in all_scores(sample).items():
        for column_name, value, written in score_values(name, score.value):
            if value is None:
                continue
            column = columns.setdefault(column_name, _Column(column_name))
            column.is_graded &= isinstance(written, str | bool) and 0 <= value <= 1
            if not failed:
                column.ids.append(hash(sample.id))


def _results(header: Header) -> tuple[dict[str, list[ScoreResult]], list[str]]:
    """The results by column, and what cannot be compared with a mean."""
    by_column: dict[str, list[ScoreResult]] = {}
    notes = []
    for result in header.results.scores if header.results is not None else ():
        scorer = result.scorer or result.name
        name = scorer if result.name == scorer else f"{scorer}_{result.name}"
        by_column.setdefault(score_column(HARNESS, name), []).append(result)
        for metric, value in result.metrics.items():
            number = as_score(value.value)
            if number is not None and metric not in _SPREADS and not _is_mean(result, metric):
                reducer = f" over epochs by {result.reducer}" if result.reducer else ""
                notes.append(f"{name}: {metric}{reducer} is {number:.4g} in the log")
    return by_column, notes


def _is_mean(result: ScoreResult, metric: str) -> bool:
    return metric in _MEANS and result.reducer in (None, "mean")


def _recorded(column: _Column, results: list[ScoreResult] | None, several: bool) -> RecordedScore:
    mean = count = aggregation = None
    for result in results or ():
        for metric, value in result.metrics.items():
            if mean is None and _is_mean(result, metric) and as_score(value.value) is not None:
                mean, count = as_score(value.value), result.scored_samples
    if several and not column.has_equal_epochs():
        aggregation = "mean of the samples' means over their scored epochs"
    low, high = (0.0, 1.0) if column.is_graded else (None, None)
    own_count = None if several else count
    return RecordedScore(column.name, low=low, high=high, own_mean=mean, own_count=own_count, aggregation=aggregation)


def _clusters(header: Header) -> Iterator[str]:
    """What the groups of the samples are, and scorers whose clusters are others."""
    clusters = header.clusters()
    used = next(iter(clusters.values()), None)
    if used is not None:
        yield f"samples are grouped by {used}, as for the standard error of {next(iter(clusters))} in the log"
    for scorer, cluster in clusters.items():
        if cluster != used:
            yield f"{scorer}: the log clusters its standard error by {cluster}; here by {used}"


def _status(header: Header) -> list[str]:
    if header.status in (None, "success"):
        return []
    return [f"the log is not complete: its status is {header.status!r}"]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
