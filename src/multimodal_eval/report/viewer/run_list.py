"""The list of runs as a matrix: runs of the same task in one table, with a column per chosen metric; tags and notes.

Tags and notes are in a file beside the run folders, `.mmeval-notes.jsonl`, never in a run. Each line has the tags and
the note of a run; the last line of a run counts. The file may be from somebody else: what is not valid is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RunFolderError, UnknownNameError, described
from multimodal_eval.core.metric import Bounds, Direction
from multimodal_eval.core.records import COMPOSITE, headline_of
from multimodal_eval.data.labels.append_file import AppendFile, NotSavedError, refuse_unsuitable
from multimodal_eval.data.runs.run_content import id_range
from multimodal_eval.display.figure_tables import coverage
from multimodal_eval.report.viewer.runs import Progress, RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_query import whole_number

__all__ = [
    "COLUMNS",
    "NAME",
    "SCORE",
    "STATES",
    "Listed",
    "ListedRun",
    "ListedScore",
    "MetricColumn",
    "RunGroup",
    "RunList",
    "RunNote",
    "RunNotes",
    "Summaries",
    "columns_of",
    "listed",
]

# What the list shows about each run. Finished runs are kept in memory until their files change.


# The sizes of the parts, and the least and greatest id of the first one, and of the last one if there are several.
SampleSet = tuple[tuple[int, ...] | tuple[str, str], ...]
_FileKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ListedScore:
    """A metric of a run."""

    value: float | None
    low: float | None
    high: float | None
    direction: Direction
    signature: str | None
    bounds: Bounds = (None, None)
    unscored: str = ""  # `237 / 400`, if not all samples count in the value
    n_scored: int | None = None


@dataclass(frozen=True)
class ListedRun:
    """One row of the list."""

    name: str
    state: str
    task: str | None = None
    created: str = ""
    samples: int | None = None
    headline: str | None = None  # of a finished run
    scores: Mapping[str, ListedScore] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    sample_set: SampleSet | None = None  # None if it is unknown
    identity: tuple[str, str, str, int] | None = None  # changes when the run changes
    progress: Progress | None = None
    fault: str | None = None
    tags: tuple[str, ...] = ()  # beside the run, see `RunNotes`
    selection: str = ""  # which samples of their input these are, such as ` (--limit 100)`


Listed = list[ListedRun]


class Summaries:
    """The runs of a folder, as the list shows them."""

    def __init__(self, folder: RunsFolder) -> None:
        self._folder = folder
        self._kept: dict[str, tuple[tuple[_FileKey, ...], ListedRun]] = {}
        self._lock = Lock()

    def all(self) -> Listed:
        """A summary of every run, by name. One that cannot be read is listed with its fault."""
        runs: Listed = []
        kept: dict[str, tuple[tuple[_FileKey, ...], ListedRun]] = {}
        for name, path in self._folder.paths().items():
            key = _key(path)
            before = self._kept.get(name)
            run = before[1] if before is not None and key is not None and before[0] == key else self._read(name)
            runs.append(run)
            if key is not None and run.headline is not None:
                kept[name] = key, run
        with self._lock:
            self._kept = kept
        return runs

    def _read(self, name: str) -> ListedRun:
        try:
            return _summary(self._folder.open(name))
        except Exception as fault:  # noqa: BLE001 - whatever is wrong with one run, the others are listed
            reason = str(fault) if isinstance(fault, MultimodalEvalError) else described(fault)
            return ListedRun(name, "damaged", fault=reason)


def _key(path: Path) -> tuple[_FileKey, ...] | None:
    """What changes whenever the files of a finished run change; None for a run that has no results."""
    try:
        stats = [(path / name).stat() for name in ("run.json", "results.json")]
    except OSError:
        return None
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def _summary(run: ViewedRun) -> ListedRun:
    common: dict[str, Any] = {"task": run.info.task, "created": run.info.created}
    common |= {"samples": sum(run.sizes) if run.sizes else None, "selection": run.info.config.selection}
    if not run.is_done:
        return ListedRun(run.name, run.state, **common, metrics=tuple(run.info.metrics), progress=run.progress())
    results = run.folder.read_results()
    headline = headline_of(run.info, results)
    if headline is None:
        raise RunFolderError("results.json has no metrics")
    scores = {}
    for name, entry in results.entries.items():
        stored = run.info.signatures.get(name)
        signature = entry.signed if stored is None else stored.text
        by_labels = entry.calibrated
        if by_labels is not None and by_labels.value is not None:  # the value is the corrected score, as in exports
            entry, signature = entry.with_estimate(by_labels), by_labels.signed
        scores[name] = ListedScore(
            entry.value,
            entry.low,
            entry.high,
            entry.better,
            signature,
            run.info.bounds_of(name),
            "" if entry.is_complete else coverage(entry),
            entry.n_scored,
        )
    return ListedRun(
        run.name,
        run.state,
        **common,
        headline=headline,
        scores=scores,
        metrics=tuple(scores),
        sample_set=_sample_set(run),
        identity=run.identity,
    )


def _sample_set(run: ViewedRun) -> SampleSet | None:
    """What tells whether two runs have the same samples, without reading their rows."""
    if not run.scores or not run.is_whole:
        return None
    ends = dict.fromkeys((min(run.scores), max(run.scores)))  # one part, or two
    ranges = [id_range(run.scores[number]) for number in ends]
    known = [each for each in ranges if each is not None]
    return (tuple(run.sizes), *known) if known == ranges else None


# The metric columns of the list of runs: a common scale for the intervals, and the best of comparable runs.


_MARGIN = 0.04  # of the scale, on both sides


@dataclass(frozen=True)
class MetricColumn:
    """One metric of several runs."""

    name: str
    direction: Direction
    scale: tuple[float, float] | None  # from the lowest to the highest end of an interval; None without values
    is_headline: bool  # of all finished runs
    best: Mapping[str, int]  # name of a run -> how many comparable runs it is the best of


def columns_of(runs: Sequence[ListedRun], names: Sequence[str]) -> list[MetricColumn]:
    """The columns for these metrics."""
    headlines = {run.headline for run in runs if run.headline is not None}
    return [_column(runs, name, headlines == {name}) for name in names]


def _column(runs: Sequence[ListedRun], name: str, is_headline: bool) -> MetricColumn:
    scores = [run.scores[name] for run in runs if name in run.scores]
    direction: Direction = "lower" if scores and all(score.direction == "lower" for score in scores) else "higher"
    return MetricColumn(name, direction, _scale(scores), is_headline, dict(_best(runs, name)))


def _scale(scores: Sequence[ListedScore]) -> tuple[float, float] | None:
    ends = [end for score in scores for end in (score.value, score.low, score.high) if end is not None]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    margin = (high - low) * _MARGIN or max(abs(low), 1.0) * _MARGIN
    return low - margin, high + margin


def _best(runs: Sequence[ListedRun], metric: str) -> Iterator[tuple[str, int]]:
    """The best of runs over the same samples with the same signature, if there are several and all are scored."""
    comparable: dict[tuple[Direction, str, object], list[tuple[float, str]]] = {}
    for run in runs:
        score = run.scores.get(metric)
        if score is None or score.value is None or score.signature is None or run.sample_set is None:
            continue
        if score.unscored:  # its samples are not those of the others
            continue
        if metric == COMPOSITE and any(part.unscored for part in run.scores.values()):  # it may lack parts
            continue
        key = score.direction, score.signature, run.sample_set
        comparable.setdefault(key, []).append((score.value, run.name))
    for (direction, *_), values in comparable.items():
        choose = min if direction == "lower" else max
        best = choose(value for value, _ in values)
        if len(values) > 1 and any(value != best for value, _ in values):
            yield from ((name, len(values)) for value, name in values if value == best)


STATES = ("done", "scoring", "judging", "generated", "generating", "reading", "damaged")
PAGE = 100  # runs
BY_DEFAULT = 4  # metrics of each task
SCORE = "score."  # before the name of a metric in `sort`

# The sort keys of the columns that every table has; runs without a value come last.
_KEYS: dict[str, Callable[[ListedRun], Any]] = {
    "name": lambda run: run.name,
    "state": lambda run: run.state,
    "samples": lambda run: run.samples,
    "created": lambda run: run.created or None,
}
COLUMNS = {"name": "run", "state": "state", "samples": "samples", "created": "started"}  # as they are shown


@dataclass(frozen=True)
class RunGroup:
    """The runs of one task: those of the current page, the columns, and how many runs match."""

    task: str | None
    rows: Listed
    columns: list[MetricColumn]
    total: int


@dataclass(frozen=True)
class RunList:
    """The shown runs and the query parameters."""

    groups: list[RunGroup]
    total: int  # runs of the folder
    matching: int
    offset: int
    tasks: list[str]
    metrics: list[str]  # of any run
    shown: list[str]  # the chosen metrics, or those by default
    is_default: bool
    text: str
    task: str
    state: str
    sort: str
    descending: bool
    tag: str = ""
    tags: tuple[str, ...] = ()  # of any run

    @property
    def rows(self) -> Listed:
        """The runs of the page."""
        return [run for group in self.groups for run in group.rows]

    @property
    def score_orders(self) -> list[tuple[str, str]]:
        """The shown metrics as values and labels of the control that sorts."""
        names = dict.fromkeys(column.name for group in self.groups for column in group.columns)
        return [(SCORE + name, name) for name in names]

    @property
    def has_running(self) -> bool:
        """Whether a run of the page is in progress."""
        return any(run.progress is not None and run.progress.is_moving for run in self.rows)

    def parameters(self, sort: str | None = None, offset: int = 0) -> list[tuple[str, str]]:
        """The query parameters of the list, sorted by `sort` if given. The same `sort` again reverses the order."""
        descending = self.descending if sort is None else sort == self.sort and not self.descending
        named = {"q": self.text, "task": self.task, "state": self.state, "tag": self.tag, "sort": sort or self.sort}
        pairs = [(name, value) for name, value in named.items() if value] + ([("desc", "1")] if descending else [])
        pairs += [] if self.is_default else [("metric", name) for name in self.shown]
        return pairs + ([("offset", str(offset))] if offset else [])

    def page(self, offset: int) -> list[tuple[str, str]]:
        """The query parameters of another page."""
        return self.parameters(offset=offset)


def listed(runs: Listed, parameters: Sequence[tuple[str, str]], *, whole: bool = False) -> RunList:
    """The runs that match the query parameters: those of a page, or all. Only `metric` may occur several times."""
    values = dict(parameters)
    sort = values.get("sort", "") or "created"
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    _refuse_unknown(sort, metrics)
    chosen = list(dict.fromkeys(value for name, value in parameters if name == "metric" and value))
    default = _default_metrics(runs)
    shown = chosen or default
    descending = values.get("desc") == "1" or not values.get("sort")  # by default, the newest run is the first
    matching = [run for run in runs if _matches(run, values)]
    groups = [_group(task, group, shown, sort, descending) for task, group in _by_task(matching)]
    offset = whole_number(values, "offset")
    return RunList(
        groups if whole else _cut(groups, offset),
        len(runs),
        len(matching),
        offset,
        sorted({run.task for run in runs if run.task}),
        sorted(metrics, key=str.casefold),
        shown,
        set(shown) == set(default),
        values.get("q", ""),
        values.get("task", ""),
        values.get("state", ""),
        sort,
        descending,
        values.get("tag", ""),
        tuple(sorted({tag for run in runs for tag in run.tags}, key=str.casefold)),
    )


def _refuse_unknown(sort: str, metrics: Sequence[str]) -> None:
    if sort not in _KEYS and not (sort.startswith(SCORE) and sort.removeprefix(SCORE) in metrics):
        raise UnknownNameError("column", sort[:100], [*_KEYS, *(SCORE + name for name in metrics)])


def _matches(run: ListedRun, values: Mapping[str, str]) -> bool:
    task, state, words = values.get("task"), values.get("state"), values.get("q", "").casefold().split()
    searched = " ".join((run.name, run.task or "", *run.metrics, *run.tags)).casefold() if words else ""
    return (
        (not task or run.task == task)
        and (not state or run.state == state)
        and (not values.get("tag") or values["tag"] in run.tags)
        and all(word in searched for word in words)
    )


def _by_task(runs: Listed) -> list[tuple[str | None, Listed]]:
    """The runs of each task; those without a task, and those that cannot be read, come last."""

    def key(run: ListedRun) -> tuple[bool, str]:
        return run.task is None, run.task or ""

    return [(rows[0].task, rows) for rows in (list(group) for _, group in groupby(sorted(runs, key=key), key))]


def _default_metrics(runs: Listed) -> list[str]:
    """The headlines of each task's runs, then the metrics that most of them have."""
    chosen: dict[str, None] = {}
    for _, group in _by_task(runs):
        chosen |= dict.fromkeys(_frequent(group))
    return list(chosen)


def _frequent(group: Listed) -> list[str]:
    headlines = Counter(run.headline for run in group if run.headline is not None)
    metrics = Counter(name for run in group for name in run.metrics)
    names = dict.fromkeys([name for name, _ in headlines.most_common()] + [name for name, _ in metrics.most_common()])
    return list(names)[: max(BY_DEFAULT, len(headlines))]


def _group(task: str | None, runs: Listed, shown: Sequence[str], sort: str, descending: bool) -> RunGroup:
    known = {name for run in runs for name in run.metrics}
    names = [name for name in shown if name in known] or _frequent(runs)
    return RunGroup(task, _sorted(runs, sort, descending), columns_of(runs, names), len(runs))


def _sorted(runs: Listed, sort: str, descending: bool) -> Listed:
    """The runs in order; those without a value come last, by name."""
    value: Callable[[ListedRun], Any] = _KEYS.get(sort) or _score_key(sort.removeprefix(SCORE))
    known = [run for run in runs if value(run) is not None]
    unknown = [run for run in runs if value(run) is None]
    return sorted(known, key=value, reverse=descending) + unknown


def _score_key(metric: str) -> Callable[[ListedRun], float | None]:
    def value(run: ListedRun) -> float | None:
        score = run.scores.get(metric)
        return None if score is None else score.value

    return value


def _cut(groups: Sequence[RunGroup], offset: int) -> list[RunGroup]:
    """The runs of a page, which may start or end within a group."""
    cut = []
    for group in groups:
        rows = group.rows[max(offset, 0) : max(offset + PAGE, 0)]
        offset -= len(group.rows)
        if rows:
            cut.append(RunGroup(group.task, rows, group.columns, group.total))
    return cut


NAME = ".mmeval-notes.jsonl"
MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000
_MOST_READ = 16 * 2**20  # bytes of a file


class RunNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tags and the note of a run."""

    run: str = ""  # the name of its folder
    tags: tuple[str, ...] = ()
    note: str = ""
    by: str | None = None
    time: str | None = None

    @property
    def version(self) -> str:
        """A digest of the content, by which a form knows whether somebody has changed it."""
        return sha256(msgspec.json.encode((self.tags, self.note))).hexdigest()[:16]


_DECODER = msgspec.json.Decoder(RunNote)


@dataclass
class _Read:
    """The notes in one file, as of `identity`."""

    identity: tuple[int, int, int, int]
    notes: dict[str, RunNote]


@dataclass
class RunNotes:
    """Reads and writes the notes of the runs of a folder."""

    folder: RunsFolder
    _files: dict[Path, _Read] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, name: str) -> RunNote:
        """The note of a run, by its name in the viewer; an empty one if there is none."""
        place = self._place(name)
        return RunNote() if place is None else self._read(place).get(name.rpartition("/")[2], RunNote())

    def tags(self, names: Iterable[str]) -> list[str]:
        """All tags of these runs."""
        return sorted({tag for name in names for tag in self.of(name).tags})

    def write(self, name: str, note: RunNote) -> None:
        """Append the tags and the note of a run. Raises NotSavedError."""
        place = self._place(name)
        if place is None:
            raise NotSavedError(f"nothing was saved: the folder of {name} is a link to another place")
        named = msgspec.structs.replace(note, run=name.rpartition("/")[2])
        try:
            file = AppendFile(refuse_unsuitable(place / NAME))
        except ConfigError as fault:
            raise NotSavedError(f"nothing was saved: {fault}") from None
        file.append(msgspec.json.encode(named))

    def _place(self, name: str) -> Path | None:
        """The folder that has the run folder in it. If it is not a real folder below the root, None."""
        root = self.folder.root
        if self.folder.is_run:
            return root.parent
        place = root.joinpath(*name.split("/")[:-1])
        return place if place.resolve() == place and place.is_relative_to(root) else None

    def _read(self, place: Path) -> dict[str, RunNote]:
        file = AppendFile(place / NAME)
        with self._lock:
            identity = file.identity()
            known = self._files.get(place)
            if known is None or known.identity != identity:
                known = self._files[place] = _Read(identity, _notes(file, identity[2]))
            return known.notes


def _notes(file: AppendFile, size: int) -> dict[str, RunNote]:
    if not 0 < size <= _MOST_READ:
        return {}
    try:
        lines, _ = file.read()
    except OSError:  # a link, a folder, a file that may not be read
        return {}
    notes: dict[str, RunNote] = {}
    for line in lines:
        try:
            note = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        tags = tuple(tag[:LONGEST_TAG] for tag in note.tags[:MOST_TAGS] if tag.strip())
        notes[note.run] = msgspec.structs.replace(note, tags=tags, note=note.note[:LONGEST_NOTE])
    return notes
