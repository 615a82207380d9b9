"""What the logs of lm-evaluation-harness and lmms-eval have in common: one line per document and filter.

Several filters read the same reply differently. Their lines are in blocks, one block per filter, so that the lines of a
document are found by reading the file once for every filter, in step.
"""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.logs.log_format import as_score, score_column
from multimodal_eval.data.readers.json_file import DECODE_ERRORS, Decode, read_jsonl
from multimodal_eval.data.readers.problems import Columns, Problems, Record

FilterOf = Callable[[Mapping[str, object]], str]
Document = tuple[int, list[tuple[str, Columns]]]  # line, and the fields under every filter
_THOUGHTS = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
_LONGEST_LIST = 1_000_000  # characters of a list that was written as text


def _lenient(decode: Callable[[bytes], Any]) -> Decode:
    """Decode a line in which Python may have written NaN or Infinity; they are null."""

    def decoded(text: bytes) -> Columns:
        try:
            return decode(text)  # type: ignore[no-any-return]
        except msgspec.DecodeError:
            if b"NaN" in text or b"Infinity" in text:
                value = _with_constants(text)
                if value is not None:
                    return value
            raise

    return decoded


def _with_constants(text: bytes) -> Columns | None:
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


_DECODE = _lenient(msgspec.json.Decoder(Columns).decode)
_DECODE_RAW = _lenient(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)


def by_name() -> FilterOf:
    """Lines that name their filter."""
    return lambda item: str(_value(item.get("filter", "none")))


def by_occurrence() -> FilterOf:
    """Lines that do not: the n-th line of a document has the n-th filter, from 0."""
    seen: Counter[str] = Counter()

    def place(item: Mapping[str, object]) -> str:
        document = str(_value(item.get("doc_id")))
        seen[document] += 1
        return str(seen[document] - 1)

    return place


@dataclass(frozen=True, slots=True)
class Scan:
    """What all lines of a file have: their filters, the columns of their scores, and metrics without numbers."""

    filters: tuple[str, ...]
    scores: Mapping[str, tuple[str, str]]  # column -> metric and filter
    others: tuple[str, ...]


@dataclass(frozen=True)
class SampleLines:
    """The lines of the files of one harness; `keys` are those that are not metrics."""

    harness: str
    keys: frozenset[str]
    filters: Callable[[], FilterOf]

    def scan(self, path: Path) -> Scan:
        """The filters and scores of a file."""
        stat = path.stat()
        return _scanned(self, path, stat.st_size, stat.st_mtime_ns)

    def documents(self, path: Path, problems: Problems) -> Iterator[Document]:
        """The lines of every document, in the order of the first filter."""
        names = self.scan(path).filters
        if len(names) < 2:
            yield from ((line, [(names[0], item)]) for line, item in read_jsonl(path, problems, _DECODE))
            return
        before = problems.total
        streams = [self._stream(path, name, problems if name == names[0] else Problems()) for name in names]
        for lines in zip_longest(*streams):
            known = [entry for entry in lines if entry is not None]
            line, first = known[0]
            if len(known) < len(names) or any(item.get("doc_id") != first.get("doc_id") for _, item in known):
                for _ in streams[0]:  # a damaged line may be the reason
                    pass
                if problems.total == before:
                    listed = " and ".join(map(repr, names))
                    message = f"the filters {listed} do not have the same documents in this order"
                    problems.add("UNMATCHED", message, file=str(path), line=line)
                return
            yield line, [(name, item) for name, (_, item) in zip(names, known, strict=True)]

    def _stream(self, path: Path, name: str, problems: Problems) -> Iterator[Record]:
        filter_of = self.filters()
        skipped: Columns = {}

        def decode(text: bytes) -> Columns:
            return _DECODE(text) if filter_of(_DECODE_RAW(text)) == name else skipped

        return ((line, item) for line, item in read_jsonl(path, problems, decode) if item is not skipped)

    def metrics(self, item: Mapping[str, object]) -> list[str]:
        """The names of the metrics in a line."""
        return [key for key in item if key not in self.keys]

    def column(self, metric: str, name: str, filters: Collection[str]) -> str:
        """The column of a score; with the filter, if there are several."""
        return score_column(self.harness, f"{metric}_{name}" if len(filters) > 1 else metric)


@lru_cache(maxsize=64)
def _scanned(lines: SampleLines, path: Path, size: int, changed: int) -> Scan:
    filter_of = lines.filters()
    filters: dict[str, None] = {}
    numbers: dict[tuple[str, str], bool] = {}  # metric and filter -> whether some value is a number
    problems = Problems()  # reported when the records are read
    for _, item in read_jsonl(path, problems, _DECODE_RAW):
        if "doc_id" not in item:
            continue
        name = filter_of(item)
        filters[name] = None
        for metric in lines.metrics(item):
            if not numbers.get((metric, name)):
                numbers[metric, name] = recorded_value(_value(item[metric])) is not None
    if not filters:
        problems.raise_if_any()
        message = f"this is not a log of {lines.harness}: no line has `doc_id`"
        raise InputError([Problem(code="FORMAT", message=message, file=str(path))])
    scores = {lines.column(*pair, filters): pair for pair, is_number in numbers.items() if is_number}
    others = dict.fromkeys(metric for (metric, _), is_number in numbers.items() if not is_number)
    return Scan(tuple(filters), scores, tuple(others))


def _value(value: object) -> object:
    """The decoded value; None if it is damaged, which is a problem when the line is read."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except DECODE_ERRORS:
        return None


def recorded_value(value: object) -> float | None:
    """The value of a metric as a number. Of an object, which has what an aggregate needs, it is the `score`."""
    return as_score(value.get("score") if isinstance(value, dict) else value)


def likelihoods(replies: object) -> list[tuple[float, bool]] | None:
    """(log-likelihood, whether it is what the model would write) of every request; None if they are texts."""
    if not isinstance(replies, list) or not replies:
        return None
    pairs = [reply[0] if isinstance(reply, list) and len(reply) == 1 else reply for reply in replies]
    if not all(isinstance(pair, list) and len(pair) == 2 and str(pair[1]) in ("True", "False") for pair in pairs):
        return None
    return [(_number(value), str(greedy) == "True") for value, greedy in pairs]


def _number(value: object) -> float:
    """A log-likelihood; the lowest if it is not a number."""
    try:
        number = float(str(value))
    except ValueError:
        return -math.inf
    return -math.inf if math.isnan(number) else number


def finite(values: Sequence[float]) -> list[float | None]:
    """Numbers for metadata, where infinite ones are null."""
    return [value if math.isfinite(value) else None for value in values]


def texts(replies: object) -> list[str]:
    """All texts in nested lists, in order."""
    if isinstance(replies, list):
        return [text for reply in replies for text in texts(reply)]
    return [replies] if isinstance(replies, str) else []


def split_reasoning(text: str) -> tuple[str, str | None]:
    """The answer, and the reasoning before it, of a reply that starts with `<think>…</think>`."""
    start = text.lstrip()
    for begin, end in _THOUGHTS:
        if start.startswith(begin) and end in start:
            thought, _, answer = start.removeprefix(begin).partition(end)
            return answer.strip(), thought.strip() or None
    return text, None


def references_of(target: object) -> list[str] | None:
    """The targets, none of them blank. A list was written as Python source."""
    targets = target if isinstance(target, list) else [target]
    if isinstance(target, str) and target[:1] == "[" and target[-1:] == "]" and len(target) <= _LONGEST_LIST:
        try:
            values = ast.literal_eval(target)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            values = None
        if isinstance(values, list) and all(isinstance(value, str | int | float) for value in values):
            targets = values
    return [str(value) for value in targets if value is not None and str(value).strip()] or None


def metadata_of(prefix: str, content: object) -> Columns:
    """The keys of an object as columns with a prefix."""
    return {column_of(prefix, key): value for key, value in content.items()} if isinstance(content, dict) else {}


def column_of(prefix: str, key: str) -> str:
    """A column with a prefix. Characters that are not printable are escaped: names of columns are in messages."""
    return f"{prefix}.{key if key.isprintable() else key.encode('unicode_escape').decode()}"


@dataclass(frozen=True)
class Results:
    """The results file of a log, and the task of the samples. Without the file, all of it is empty."""

    content: Mapping[str, Any]
    task: str | None
    note: str | None = None  # why there is none

    @property
    def samples(self) -> int | None:
        """How many samples the harness has scored."""
        count = self.of_task("n-samples").get("effective")
        return count if isinstance(count, int) else None

    def notes(self, scan: Scan) -> tuple[str, ...]:
        """What an import says: why there are no results, and which metrics have no scores."""
        without = [f"{metric} has no number per sample, only a score of all together" for metric in scan.others]
        return tuple(without if self.note is None else [self.note, *without])

    def of_task(self, key: str) -> Mapping[str, Any]:
        """The object of the task below a key."""
        below = self.content.get(key)
        value = below.get(self.task) if isinstance(below, dict) else None
        return value if isinstance(value, dict) else {}

    def text(self, *keys: str) -> str | None:
        """The first text under one of the keys that is not blank."""
        values = (self.content.get(key) for key in keys)
        return next((value for value in values if isinstance(value, str) and value), None)

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings of the run."""
        config = self.content.get("config")
        return config if isinstance(config, dict) else {}

    def aggregation(self, metric: str, means: Collection[str]) -> str | None:
        """How the task aggregates a metric; None for a mean. `means` are metrics that are means by default."""
        listed = self.of_task("configs").get("metric_list")
        for entry in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
            if isinstance(entry, dict) and entry.get("metric") == metric:
                named = entry.get("aggregation")
                if isinstance(named, str):
                    return None if named in ("mean", "nanmean") else named
        return None if metric in means or not self.content else metric

    def settings(self) -> dict[str, Any]:
        """The settings of the task that may change an answer."""
        task = self.of_task("configs")
        below = self.content.get("n-shot")
        shots = below.get(self.task) if isinstance(below, dict) else None
        named = {"shots": shots, **{key: task.get(key) for key in ("generation_kwargs", "repeats")}}
        return {key: value for key, value in named.items() if value is not None}


def read_results(path: Path, task: str | None) -> Results:
    """The results file beside the samples."""
    if not path.is_file():
        return Results({}, task, f"there is no {path.name} beside the samples, so that its means are not compared")
    try:
        content = _DECODE(path.read_bytes())
    except (msgspec.DecodeError, OSError, RecursionError, UnicodeDecodeError):
        return Results({}, task, f"{path.name} cannot be read, so that its means are not compared")
    return Results(content, task)
