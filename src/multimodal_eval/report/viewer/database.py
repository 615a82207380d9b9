"""An in-memory DuckDB over the Parquet files of a folder, with a cache of the narrow columns.

The database may only read files below the folder; it loads no extensions and writes nothing. The scores of a run and
the searched texts are cached as tables in memory as long as there is space: reading them from a hundred files takes ten
times as long. A run in progress changes, so it is read from its files.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import Any, get_args

import msgspec

from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError
from multimodal_eval.core.optional import require
from multimodal_eval.core.score import Status
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import SEARCHED, SampleQuery

LONGEST_SECONDS = 20.0
MEMORY = 1 << 30  # bytes of all cached tables, estimated
_GLOB = re.compile(r"[*?\[]")


class TooSlowError(MultimodalEvalError):
    """A request that took too long and was cancelled."""


@dataclass(frozen=True)
class Sql:
    """A piece of a statement with its bound values."""

    text: str
    values: tuple[Any, ...] = ()


@dataclass
class _CachedTable:
    name: str
    size: int
    users: int = 0


class Database:
    """The connection; every request has a separate session."""

    def __init__(self, root: Path) -> None:
        duckdb = require("duckdb", extra="view", purpose="mmeval view")
        self._interrupted, self._conversion = duckdb.InterruptException, duckdb.ConversionException
        self._unreadable = (duckdb.Error, UnicodeDecodeError)
        self._connection = duckdb.connect(":memory:")
        self._connection.execute(f"create type status as enum ({', '.join(map(literal, get_args(Status)))})")
        for setting in (
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "python_enable_replacements = false",
            "temp_directory = ''",
            "parquet_metadata_cache = true",
            f"allowed_directories = [{literal(str(root))}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"set {setting}")
        self._tables: OrderedDict[Hashable, _CachedTable] = OrderedDict()
        self._table_count = 0
        self._lock, self._loading = Lock(), Lock()

    def close(self) -> None:
        """Free the memory."""
        self._connection.close()

    @contextmanager
    def session(self, seconds: float | None = LONGEST_SECONDS) -> Iterator[Session]:
        """A session for one request; a statement that takes too long is stopped."""
        cursor = self._connection.cursor()
        timer = None if seconds is None else Timer(seconds, cursor.interrupt)
        if timer is not None:
            timer.daemon = True
            timer.start()
        session = Session(self, cursor)
        try:
            yield session
        except self._interrupted:
            raise TooSlowError(f"the request took over {seconds:.0f} s and was cancelled. Narrow it down") from None
        except self._unreadable as fault:  # a damaged file, or one without the columns that every run has
            raise RunFolderError(f"the run cannot be read: {str(fault).splitlines()[0]}") from None
        finally:
            if timer is not None:
                timer.cancel()
            cursor.close()
            self._release(session.held)

    def keep(self, session: Session, key: Hashable, source: Sql, size: int, *, load: bool) -> str | None:
        """The name of an in-memory table with the rows of `source`, or None if it is too large.

        Without `load`, only a table that is already in memory is returned.
        """
        name = self._hold(session, key)
        if name is not None or not load or size > MEMORY // 2:
            return name
        with self._loading:  # one at a time: each takes all cores
            name = self._hold(session, key)
            if name is not None:
                return name
            with self._lock:
                self._free(size)
                self._table_count += 1
                name = f"kept_{self._table_count}"
            try:
                session.execute(f"create table {name} as {source.text}", source.values)
            except self._conversion:  # a status that this version does not know
                return None
            with self._lock:
                self._tables[key] = _CachedTable(name, size)
            return self._hold(session, key)

    def _hold(self, session: Session, key: Hashable) -> str | None:
        """The name of a cached table, which is not dropped before the session ends."""
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                return None
            self._tables.move_to_end(key)
            table.users += 1
            session.held.append(table)
            return table.name

    def _free(self, size: int) -> None:
        """Drop the least recently used tables that no session uses."""
        for key, table in list(self._tables.items()):
            if sum(cached.size for cached in self._tables.values()) + size <= MEMORY:
                return
            if not table.users:
                self._connection.cursor().execute(f"drop table {table.name}")
                del self._tables[key]

    def _release(self, held: Sequence[_CachedTable]) -> None:
        with self._lock:
            for table in held:
                table.users -= 1


class Session:
    """A cursor and the cached tables that it uses."""

    def __init__(self, database: Database, cursor: Any) -> None:
        self._database, self._cursor = database, cursor
        self.held: list[_CachedTable] = []

    def execute(self, statement: str, values: Iterable[Any] = ()) -> Any:
        """Run a statement; the cursor holds its result."""
        return self._cursor.execute(statement, list(values))

    def fetchall(self) -> list[Any]:
        """All rows of the result."""
        return list(self._cursor.fetchall())

    def arrays(self) -> dict[str, Any]:
        """The columns of the result as NumPy arrays."""
        return dict(self._cursor.fetchnumpy())

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """All rows of the result, fetched in blocks."""
        while block := self._cursor.fetchmany(1_000):
            yield from block

    def register(self, name: str, table: Any) -> None:
        """Make an Arrow table available to the statements of this session."""
        self._cursor.register(name, table)

    def kept(self, key: Hashable, source: Sql, size: int, *, load: bool = True) -> str | None:
        """The name of an in-memory table with the rows of `source`, or None if it is too large."""
        return self._database.keep(self, key, source, size, load=load)


def parquet(paths: Iterable[Path], *, union: bool = False) -> Sql:
    """Parquet files as a table. DuckDB reads some characters in paths as patterns, so they are escaped."""
    files = [_GLOB.sub(lambda match: f"[{match[0]}]", str(path)) for path in paths]
    return Sql(f"read_parquet(?, union_by_name = {str(union).lower()})", (files,))


def quoted(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text as a constant, for statements that cannot bind values."""
    return "'" + text.replace("'", "''") + "'"


# Filters as SQL conditions. Values are bound; column names come from the run's files and are quoted.


def all_of(conditions: Iterable[Sql]) -> Sql:
    """A `where` clause with all conditions, or an empty statement if there are none."""
    pieces = list(conditions)
    if not pieces:
        return Sql("")
    values = tuple(value for piece in pieces for value in piece.values)
    return Sql("where " + " and ".join(piece.text for piece in pieces), values)


def of_scores(run: ViewedRun, query: SampleQuery) -> Iterator[Sql]:
    """Conditions on scores and statuses."""
    yield from _status(run, query.status)
    for name, least, most in query.ranges:
        if least is not None:
            yield Sql(f"{quoted(name)} >= ? and not isnan({quoted(name)})", (least,))  # DuckDB sorts NaN highest
        if most is not None:
            yield Sql(f"{quoted(name)} <= ?", (most,))


def _status(run: ViewedRun, status: str) -> Iterator[Sql]:
    """Rows in which all metrics are ok, or at least one has the given status."""
    columns = [quoted(f"{name}:status") for name in run.metrics]
    if not status or not columns:
        return
    if status == "ok":
        yield Sql("(" + " and ".join(f"{column} = 'ok'" for column in columns) + ")")
    elif status == "unscored":
        yield Sql("(" + " or ".join(f"{column} <> 'ok'" for column in columns) + ")")
    else:
        yield Sql("(" + " or ".join(f"{column} = ?" for column in columns) + ")", (status,) * len(columns))


def lowered(field: str) -> list[str]:
    """The searched columns in lower case."""
    columns = [
        "array_to_string(\"references\", '\n')" if name == "references" else quoted(name) for name in SEARCHED[field]
    ]
    return [f"lower({column}) as text_{number}" for number, column in enumerate(columns)]


def of_search(query: SampleQuery) -> Iterator[Sql]:
    """The lower-case columns contain the query text, in any case."""
    if query.text:
        columns = [f"contains(text_{number}, lower(?))" for number in range(len(SEARCHED[query.field]))]
        yield Sql("(" + " or ".join(columns) + ")", (query.text,) * len(columns))


def of_metadata(query: SampleQuery) -> Iterator[Sql]:
    """Each key has one of its values. A text search skips most rows before their JSON is parsed."""
    for key, values in query.metadata:
        name = msgspec.json.encode(key).decode()
        forms = [f"{name}:{form}" for value in values for form in (msgspec.json.encode(value).decode(), value)]
        contained = " or ".join(["contains(metadata, ?)"] * len(forms))
        yield Sql(
            f"(({contained}) and json_extract_string(metadata, ?) in ({', '.join('?' * len(values))}))",
            (*forms, pointer(key), *values),
        )


def pointer(key: str) -> str:
    """A key of the metadata as a JSON pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def order(query: SampleQuery, *, reverse: bool = False) -> str:
    """By the metric, unscored samples last, ties in input order; `reverse` reverses the whole order."""
    row = f"row {'desc' if reverse else 'asc'}"
    if not query.sort:
        return f"order by {row}"
    direction = "desc" if query.descending != reverse else "asc"
    return f"order by {quoted(query.sort)} {direction} nulls {'first' if reverse else 'last'}, {row}"
