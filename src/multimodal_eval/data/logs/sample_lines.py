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
from typing import Any, Protocol

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.logs.log_format import as_score, not_a_score, score_column
from multimodal_eval.data.readers.json_file import DECODE_ERRORS, Decode, read_jsonl
from multimodal_eval.data.readers.problems import Columns, Problems, Record

Document = tuple[int, list[tuple[str, Columns]]]  # line, and the fields under every filter
_THOUGHTS = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
MOST_FILTERS = 32  # the file is read once for each
_LONGEST_LIST = 1_000_000  # characters of a list that was written as text


def _lenient(decode: Callable[[bytes], Any]) -> Decode:
    """Decode a line in which Python may have written NaN or Infinity. They are kept as values of a line, else null."""

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
        line = json.loads(text, parse_constant=float)
    except ValueError:
        return None
    if not isinstance(line, dict):
        return None
    return {key: value if isinstance(value, float) else _finite(value) for key, value in line.items()}


def _finite(value: object) -> object:
    """A value without numbers that are not finite, which are null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_DECODE = _lenient(msgspec.json.Decoder(Columns).decode)
_DECODE_RAW = _lenient(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)


class FilterOf(Protocol):
    """The filter of every line of a file, in order, and the filters of the file once all lines are known."""

    def __call__(self, item: Mapping[str, object]) -> str:
        """The filter of the next line."""
        ...

    def filters(self, expected: int) -> tuple[str, ...]:
        """The filters of the lines so far; `expected` is their number in the results, 0 if it is not known."""
        ...

    @property
    def most(self) -> int:
        """The most lines of a document, if they tell its filters; 0 otherwise."""
        ...


class ByName:
    """Lines that name their filter."""

    most = 0

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __call__(self, item: Mapping[str, object]) -> str:
        """The name."""
        name = str(_value(item.get("filter", "none")))
        if len(self._names) <= MOST_FILTERS:
            self._names[name] = None
        return name

    def filters(self, expected: int) -> tuple[str, ...]:
        """The names."""
        return tuple(self._names)


class ByOccurrence:
    """Lines that do not: the n-th line of a document has the n-th filter, from 0."""

    def __init__(self) -> None:
        self._lines: Counter[str] = Counter()

    def __call__(self, item: Mapping[str, object]) -> str:
        """The number of earlier lines of the document."""
        document = _document(item)
        self._lines[document] += 1
        return str(self._lines[document] - 1)

    @property
    def most(self) -> int:
        """The most lines of a document."""
        return max(self._lines.values(), default=0)

    def filters(self, expected: int) -> tuple[str, ...]:
        """Numbers: as many as the results have, or as most documents have lines. More lines are duplicates."""
        documents = Counter(self._lines.values())
        usual = max(documents, key=lambda lines: (documents[lines], -lines), default=0)
        number = min(expected, self.most) if expected else usual
        return tuple(map(str, range(number if number <= MOST_FILTERS else 1)))


def _document(item: Mapping[str, object]) -> str:
    return str(_value(item.get("doc_id")))


@dataclass(frozen=True, slots=True)
class Scan:
    """What all lines of a file have: their filters, the columns of their scores, and metrics without numbers."""

    filters: tuple[str, ...]
    scores: Mapping[str, tuple[str, str]]  # column -> metric and filter
    others: tuple[str, ...]

    def has_numbers(self, metric: str) -> bool:
        """Whether some value of a metric is a number."""
        return any(metric == scored for scored, _ in self.scores.values())

    has_surplus: bool  # a document has more lines than there are filters


@dataclass(frozen=True)
class SampleLines:
    """The lines of the files of one harness; `keys` are those that are not metrics."""

    harness: str
    keys: frozenset[str]
    filters: Callable[[], FilterOf]
    results: Callable[[Path], Results]  # beside the samples
    renamed: tuple[tuple[str, str], ...] = ()  # metrics whose values per sample are something else, and what

    def scan(self, path: Path) -> Scan:
        """The filters and scores of a file."""
        stat = path.stat()
        return _scanned(self, path, stat.st_size, stat.st_mtime_ns, self.results(path).filters)

    def documents(self, path: Path, problems: Problems) -> Iterator[Document]:
        """The lines of every document, in the order of the first filter."""
        scan = self.scan(path)
        names = scan.filters
        if len(names) < 2:  # a document that occurs twice is a sample with the same id
            yield from ((line, [(names[0], item)]) for line, item in read_jsonl(path, problems, _DECODE))
            return
        if scan.has_surplus:
            self._note_duplicates(path, names, problems)
            return
        streams = [self._stream(path, name, problems if name == names[0] else Problems()) for name in names]
        before = problems.total
        for lines in zip_longest(*streams):
            known = [entry for entry in lines if entry is not None]
            line, first = known[0]
            if len(known) < len(names) or any(item.get("doc_id") != first.get("doc_id") for _, item in known):
                for _ in streams[0]:  # a damaged line may be the reason
                    pass
                if problems.total == before:
                    self._note_duplicates(path, names, problems)
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

    def _note_duplicates(self, path: Path, names: Sequence[str], problems: Problems) -> None:
        """Add a problem for every line of a document that has one with the same filter, or one for every filter."""
        filter_of = self.filters()
        earlier: dict[tuple[str, str], int] = {}
        for line, item in read_jsonl(path, problems, _DECODE):
            document, name = _document(item), filter_of(item)
            first = earlier.setdefault((document, name), line)
            if name not in names:
                lines = _lines_of([earlier[document, known] for known in names] + [line])
                message = f"the document occurs more often than there are filters ({len(names)}), {lines}"
            elif first != line:
                message = f"the document occurs twice with the filter {name!r}, {_lines_of([first, line])}"
            else:
                continue
            problems.add("DUPLICATE", message, file=str(path), line=line, id=document, field="doc_id")

    def metrics(self, item: Mapping[str, object]) -> list[str]:
        """The names of the metrics in a line."""
        return [key for key in item if key not in self.keys]

    def column(self, metric: str, name: str, filters: Collection[str]) -> str:
        """The column of a score; with the filter, if there are several."""
        shown = dict(self.renamed).get(metric, metric)
        return score_column(self.harness, f"{shown}_{name}" if len(filters) > 1 else shown)


def _lines_of(lines: Sequence[int]) -> str:
    return f"in lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


@lru_cache(maxsize=64)
def _scanned(lines: SampleLines, path: Path, size: int, changed: int, expected: tuple[str, ...]) -> Scan:
    filter_of = lines.filters()
    numbers: dict[tuple[str, str], bool] = {}  # metric and filter -> whether some value is a number
    names: dict[str, int] = {}  # filter -> its first line
    problems = Problems()  # reported when the records are read
    for line, item in read_jsonl(path, problems, _DECODE_RAW):
        if "doc_id" not in item:
            continue
        name = filter_of(item)
        if name not in names and len(names) > MOST_FILTERS:
            continue
        names.setdefault(name, line)
        for metric in lines.metrics(item):
            if not numbers.get((metric, name)):
                numbers[metric, name] = recorded_value(_value(item[metric])) is not None
    if not names:
        problems.raise_if_any()
        message = f"this is not a log of {lines.harness}: no line has `doc_id`"
        raise InputError([Problem(code="FORMAT", message=message, file=str(path))])
    filters = filter_of.filters(len(expected))
    if isinstance(filter_of, ByName):
        _check_names(names, expected, path)
    known = {pair: is_number for pair, is_number in numbers.items() if pair[1] in filters}
    scores = {lines.column(*pair, filters): pair for pair, is_number in known.items() if is_number}
    others = dict.fromkeys(metric for (metric, _), is_number in known.items() if not is_number)
    return Scan(filters, scores, tuple(others), has_surplus=filter_of.most > len(filters))


def _check_names(lines: Mapping[str, int], expected: Collection[str], path: Path) -> None:
    """Refuse filters that the results do not have, and too many; `lines` has the first line of every filter."""
    problems = Problems()
    for name, line in lines.items():
        if expected and name not in expected:
            message = f"the results beside the samples have no filter {name!r}, only {_listed(expected)}"
            problems.add("UNMATCHED", message, file=str(path), line=line, field="filter")
    if not problems.total and len(lines) > MOST_FILTERS:
        message = f"the lines name more than {MOST_FILTERS} filters: {_listed([*lines][:3])}, …"
        hint = "Every filter reads all documents, so that `filter` has the same few values for each of them."
        problems.add("TOO_MANY", message, file=str(path), line=[*lines.values()][-1], field="filter", hint=hint)
    problems.raise_if_any()


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, names))


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


def score_or_text(value: object) -> float | str:
    """The value of a metric in a record: a number, or what was recorded instead, as text."""
    number = recorded_value(value)
    return not_a_score(value) if number is None else number


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
    def filters(self) -> tuple[str, ...]:
        """The filters of the task, in the order of their scores."""
        keys = (key.rpartition(",") for key in self.of_task("results"))
        return tuple(dict.fromkeys(name for metric, comma, name in keys if comma and "_stderr" not in metric))

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
        return Results({}, task, f"there is no {path.name} beside the samples, so its means are not compared")
    try:
        content = _DECODE(path.read_bytes())
    except (msgspec.DecodeError, OSError, RecursionError, UnicodeDecodeError):
        return Results({}, task, f"{path.name} cannot be read, so its means are not compared")
    return Results(content, task)
