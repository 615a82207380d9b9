"""Questions to the Parquet files of runs, through DuckDB.

Numbers lie in scores/, texts in samples/. What decides about a page is looked up in the narrow files alone; the texts of
the rows that are shown are then read from the parts that hold them. A search has to read every text of the columns it
searches: the rows it found are kept for the next page, and one that takes too long is given up.

Values are bound; names of columns are those that the run's own files have, quoted.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.optional import require
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import PAGE, PLACES, SampleQuery

LONGEST_SECONDS = 20.0
KEPT_SEARCHES = 8
_TEXTS = ("image", "audio", "question", "prompt", "generated_answer")
_GLOB = re.compile(r"[*?\[]")

Rows = NDArray[np.int64]


class TooSlowError(MultimodalEvalError):
    """A question that was given up."""


@dataclass(frozen=True)
class Page:
    """Some samples in order, and how many there are."""

    rows: list[dict[str, Any]]
    total: int
    offset: int


@dataclass(frozen=True)
class Sql:
    """A piece of a statement and the values bound in it."""

    text: str
    values: tuple[Any, ...] = ()


class Store:
    """One DuckDB in memory that may read files below the folder and nothing else."""

    def __init__(self, root: Path) -> None:
        duckdb = require("duckdb", extra="view", purpose="mmeval view")
        self._interrupted = duckdb.InterruptException
        self._connection = duckdb.connect(":memory:")
        for setting in (
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "python_enable_replacements = false",
            "temp_directory = ''",
            "parquet_metadata_cache = true",
            f"allowed_directories = [{_literal(str(root))}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"set {setting}")
        self._found: OrderedDict[Any, Rows] = OrderedDict()
        self._lock = Lock()

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()

    # pages

    def page(self, run: ViewedRun, query: SampleQuery, size: int = PAGE) -> Page:
        """The samples of a page with their numbers, statuses and texts."""
        rows, total = self.rows(run, query, size)
        return Page(self.samples(run, rows), total, query.offset)

    def rows(self, run: ViewedRun, query: SampleQuery, size: int) -> tuple[list[int], int]:
        """Which rows a page has, and how many the whole table."""
        found = self._searched(run, query) if query.reads_texts else None
        where = _conditions(run, query)
        if not where.text and not query.sort:
            if found is not None:
                return found[query.offset : query.offset + size].tolist(), len(found)
            if run.is_whole:
                return list(range(run.committed))[query.offset : query.offset + size], run.committed
        source = _scores(run)
        if found is not None:
            source = Sql(f"(select * from {source.text} semi join found using (row))", source.values)
        with self._cursor() as cursor:
            if found is not None:
                _register(cursor, found)
            total = run.committed if found is None else len(found)
            if where.text:
                count = f"select count(*) from {source.text} {where.text}"
                total = cursor.execute(count, [*source.values, *where.values]).fetchone()[0]
            return _window(cursor, source, where, query, size, total), total

    def _searched(self, run: ViewedRun, query: SampleQuery) -> Rows:
        """The rows whose texts fit, in order; kept, since the next page asks again."""
        question = (run.identity, query.text, query.place, query.key, query.value)
        with self._lock:
            if question in self._found:
                self._found.move_to_end(question)
                return self._found[question]
        conditions = [*_search(query), *_metadata(query)]
        files = _files(run.samples().values())
        where = " and ".join(condition.text for condition in conditions)
        values = [value for condition in conditions for value in condition.values]
        with self._cursor() as cursor:
            cursor.execute(f"select row from read_parquet(?) where {where}", [files, *values])
            found: Rows = np.sort(np.asarray(cursor.fetchnumpy()["row"], dtype=np.int64))
        with self._lock:
            self._found[question] = found
            while len(self._found) > KEPT_SEARCHES:
                self._found.popitem(last=False)
        return found

    def samples(self, run: ViewedRun, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Numbers, statuses and texts of some rows, in their order."""
        if not rows:
            return []
        parts = sorted({run.part_of(row) for row in rows})
        shown = ["row", "id", *run.numbers, *(f"{name}:status" for name in run.metrics)]
        scores = self._by_row([run.scores[part] for part in parts], shown, rows, union=not run.is_done)
        texts = self._by_row(run.samples(iter(parts)).values(), ["row", *_TEXTS, "error"], rows)
        return [{**scores[row], **texts[row]} for row in rows]

    def sample(self, run: ViewedRun, row: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything about one row: what was given, and what was scored."""
        part = run.part_of(row)
        if part not in run.scores:
            raise MultimodalEvalError(f"the part of row {row} is not scored yet")
        samples = run.samples(iter([part]))
        with self._cursor() as cursor:
            return _one(cursor, samples[part], row), _one(cursor, run.scores[part], row)

    def _by_row(
        self, files: Iterable[Path], columns: Sequence[str], rows: Sequence[int], *, union: bool = False
    ) -> dict[int, dict[str, Any]]:
        names = ", ".join(map(_quoted, columns))
        source = f"read_parquet(?, union_by_name = {str(union).lower()})"
        with self._cursor() as cursor:
            # The rows are written into the statement: only constants let DuckDB skip what they are not in.
            numbers = ", ".join(str(int(row)) for row in rows)
            cursor.execute(f"select {names} from {source} where row in ({numbers})", [_files(files)])
            return {found[0]: dict(zip(columns, found, strict=True)) for found in cursor.fetchall()}

    def metadata_examples(self, run: ViewedRun) -> list[str]:
        """The metadata of the first samples, as JSON, to name its keys."""
        if not run.scores:
            return []
        first = run.samples(iter([next(iter(run.scores))]))
        with self._cursor() as cursor:
            cursor.execute("select metadata from read_parquet(?) limit 1000", [_files(first.values())])
            return [text for (text,) in cursor.fetchall() if text]

    # whole tables

    def every(self, run: ViewedRun, query: SampleQuery, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """All rows of the table for an export: row, id, question, answer, numbers, statuses."""
        found = self._searched(run, query) if query.reads_texts else None
        where = _conditions(run, query)
        names = [f"s.{_quoted(name)}" for name in (*run.numbers, *(f"{name}:status" for name in run.metrics))]
        columns = ", ".join(["s.row", "s.id", "t.question", "t.generated_answer", *names])
        scores, texts = _scores(run), _files(run.samples().values())
        semi = "semi join found f on f.row = s.row" if found is not None else ""
        narrow = f"(select * from {scores.text} s {semi} {where.text}) s"
        statement = f"select {columns} from {narrow} join read_parquet(?) t using (row) {_order(query)}"
        values = [*scores.values, *where.values, texts]
        with self._cursor(seconds=None) as cursor:
            if found is not None:
                _register(cursor, found)
            cursor.execute(statement + ("" if most is None else f" limit {int(most)}"), values)
            while rows := cursor.fetchmany(1_000):
                yield from rows

    # two runs

    def pairs(
        self, first: ViewedRun, second: ViewedRun, number: str, *, falling: bool, offset: int, size: int = PAGE
    ) -> Page:
        """The samples of two runs with the second's number minus the first's, in the order of that difference."""
        rows, total = self._paired(first, second, number, falling=falling, offset=offset, size=size)
        left = {row["row"]: row for row in self.samples(first, [row for row, *_ in rows])}
        right = {row["row"]: row for row in self.samples(second, [row for _, row, *_ in rows])}
        joined = [
            {"first": left[a], "second": right[b], "id": left[a]["id"], "a": x, "b": y, "difference": d}
            for a, b, x, y, d in rows
        ]
        return Page(joined, total, offset)

    def every_pair(self, first: ViewedRun, second: ViewedRun, number: str, *, falling: bool) -> Iterator[Any]:
        """All of them for an export: id, first, second, difference."""
        source = _joined(first, second, number)
        with self._cursor(seconds=None) as cursor:
            order = f"order by d {'desc' if falling else 'asc'} nulls last, a"
            cursor.execute(f"select id, x, y, d from {source.text} {order}", list(source.values))
            while rows := cursor.fetchmany(1_000):
                yield from rows

    def _paired(
        self, first: ViewedRun, second: ViewedRun, number: str, *, falling: bool, offset: int, size: int
    ) -> tuple[list[tuple[Any, ...]], int]:
        source = _joined(first, second, number)
        with self._cursor() as cursor:
            total = cursor.execute(f"select count(*) from {source.text}", list(source.values)).fetchone()[0]
            order = f"order by d {'desc' if falling else 'asc'} nulls last, a limit {size} offset {offset}"
            cursor.execute(f"select a, b, x, y, d from {source.text} {order}", list(source.values))
            return cursor.fetchall(), total

    @contextmanager
    def _cursor(self, seconds: float | None = LONGEST_SECONDS) -> Iterator[Any]:
        """A cursor of its own for each request; what takes too long is stopped."""
        cursor = self._connection.cursor()
        timer = None if seconds is None else Timer(seconds, cursor.interrupt)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield cursor
        except self._interrupted:
            raise TooSlowError(f"this took more than {seconds:.0f} s and was given up. Narrow it down") from None
        finally:
            if timer is not None:
                timer.cancel()
            cursor.close()


def _register(cursor: Any, found: Rows) -> None:
    import pyarrow as pa

    cursor.register("found", pa.table({"row": found}))


def _one(cursor: Any, path: Path, row: int) -> dict[str, Any]:
    cursor.execute("select * from read_parquet(?) where row = ?", [_files([path]), row])
    names = [column[0] for column in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def _window(cursor: Any, source: Sql, where: Sql, query: SampleQuery, size: int, total: int) -> list[int]:
    """A page of rows. Only the beginning of an order is quick to find: what lies behind the middle is looked for from
    the end, in the order turned round."""
    size = min(size, total - query.offset)
    if size <= 0:
        return []
    turned = query.offset > total // 2
    offset = total - query.offset - size if turned else query.offset
    statement = (
        f"select row from {source.text} {where.text} {_order(query, turned=turned)} limit {size} offset {offset}"
    )
    rows = [row for (row,) in cursor.execute(statement, [*source.values, *where.values]).fetchall()]
    return rows[::-1] if turned else rows


def _order(query: SampleQuery, *, turned: bool = False) -> str:
    """By the number, unscored samples last, equals in the order of the input."""
    row = f"row {'desc' if turned else 'asc'}"
    if not query.sort:
        return f"order by {row}"
    direction = "desc" if query.falling != turned else "asc"
    return f"order by {_quoted(query.sort)} {direction} nulls {'first' if turned else 'last'}, {row}"


def _scores(run: ViewedRun) -> Sql:
    return Sql(f"read_parquet(?, union_by_name = {str(not run.is_done).lower()})", (_files(run.scores.values()),))


def _joined(first: ViewedRun, second: ViewedRun, number: str) -> Sql:
    name = _quoted(number)
    sides = [_scores(run) for run in (first, second)]
    text = (
        f"(select l.row a, r.row b, id, l.{name} x, r.{name} y, r.{name} - l.{name} d "
        f"from {sides[0].text} l join {sides[1].text} r using (id))"
    )
    return Sql(text, sides[0].values + sides[1].values)


def _conditions(run: ViewedRun, query: SampleQuery) -> Sql:
    """What the numbers and statuses decide."""
    pieces = [*_status(run, query.status), *_ranges(query)]
    if not pieces:
        return Sql("")
    values = tuple(value for piece in pieces for value in piece.values)
    return Sql("where " + " and ".join(piece.text for piece in pieces), values)


def _status(run: ViewedRun, status: str) -> Iterator[Sql]:
    """All metrics ok, or one of them not."""
    columns = [_quoted(f"{name}:status") for name in run.metrics]
    if not status or not columns:
        return
    if status == "ok":
        yield Sql("(" + " and ".join(f"{column} = 'ok'" for column in columns) + ")")
    elif status == "unscored":
        yield Sql("(" + " or ".join(f"{column} <> 'ok'" for column in columns) + ")")
    else:
        yield Sql("(" + " or ".join(f"{column} = ?" for column in columns) + ")", (status,) * len(columns))


def _ranges(query: SampleQuery) -> Iterator[Sql]:
    for name, least, most in query.ranges:
        if least is not None:
            yield Sql(f"{_quoted(name)} >= ?", (least,))
        if most is not None:
            yield Sql(f"{_quoted(name)} <= ?", (most,))


def _search(query: SampleQuery) -> Iterator[Sql]:
    """Texts that hold the words as they are written, in any case."""
    if not query.text:
        return
    columns = [
        "array_to_string(\"references\", '\n')" if name == "references" else _quoted(name)
        for name in PLACES[query.place]
    ]
    conditions = [f"contains(lower({column}), lower(?))" for column in columns]
    yield Sql("(" + " or ".join(conditions) + ")", (query.text,) * len(columns))


def _metadata(query: SampleQuery) -> Iterator[Sql]:
    """A key with that value. Most rows are told apart by their JSON's text, before any of it is parsed."""
    if not query.key:
        return
    import msgspec

    name, value = msgspec.json.encode(query.key).decode(), msgspec.json.encode(query.value).decode()
    yield Sql(
        "(contains(metadata, ?) or contains(metadata, ?)) and json_extract_string(metadata, ?) = ?",
        (f"{name}:{value}", f"{name}:{query.value}", _pointer(query.key), query.value),
    )


def _pointer(key: str) -> str:
    """A key as a JSON pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def _files(paths: Iterable[Path]) -> list[str]:
    """Paths as DuckDB reads them: it takes some characters for patterns."""
    return [_GLOB.sub(lambda found: f"[{found[0]}]", str(path)) for path in paths]


def _quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
