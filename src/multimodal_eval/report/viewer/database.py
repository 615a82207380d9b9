"""One DuckDB in memory over the Parquet files of a folder, with the narrow columns that are asked for again and again.

It may read files below the folder and nothing else, load nothing and write nothing. What decides about pages, the
numbers of a run and the texts that were searched, is kept as tables in memory as long as there is room: reading it from
a hundred files takes ten times as long. A run that goes on changes, and is read from its files.
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

from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError
from multimodal_eval.core.optional import require
from multimodal_eval.core.score import Status

LONGEST_SECONDS = 20.0
MEMORY = 1 << 30  # bytes of all kept tables, by a rough estimate
_GLOB = re.compile(r"[*?\[]")


class TooSlowError(MultimodalEvalError):
    """A question that was given up."""


@dataclass(frozen=True)
class Sql:
    """A piece of a statement and the values bound in it."""

    text: str
    values: tuple[Any, ...] = ()


@dataclass
class _Kept:
    name: str
    size: int
    users: int = 0


class Database:
    """The connection; every request has a session of its own."""

    def __init__(self, root: Path) -> None:
        duckdb = require("duckdb", extra="view", purpose="mmeval view")
        self._interrupted, self._unfit = duckdb.InterruptException, duckdb.ConversionException
        self._unreadable = (duckdb.IOException, duckdb.InvalidInputException, duckdb.BinderException)
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
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._made = 0
        self._lock, self._loading = Lock(), Lock()

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()

    @contextmanager
    def session(self, seconds: float | None = LONGEST_SECONDS) -> Iterator[Session]:
        """Statements of one request; one that takes too long is stopped."""
        cursor = self._connection.cursor()
        timer = None if seconds is None else Timer(seconds, cursor.interrupt)
        if timer is not None:
            timer.daemon = True
            timer.start()
        session = Session(self, cursor)
        try:
            yield session
        except self._interrupted:
            raise TooSlowError(f"this took more than {seconds:.0f} s and was given up. Narrow it down") from None
        except self._unreadable as fault:  # a damaged file, or one without the columns that every run has
            raise RunFolderError(f"the run cannot be read: {str(fault).splitlines()[0]}") from None
        finally:
            if timer is not None:
                timer.cancel()
            cursor.close()
            self._release(session.held)

    def keep(self, session: Session, what: Hashable, source: Sql, size: int, *, load: bool) -> str | None:
        """The name of a table in memory with what `source` selects; None where it is too large to keep.

        Without `load`, only one that is there already.
        """
        found = self._hold(session, what)
        if found is not None or not load or size > MEMORY // 2:
            return found
        with self._loading:  # one at a time: each takes all cores
            found = self._hold(session, what)
            if found is not None:
                return found
            with self._lock:
                self._make_room(size)
                self._made += 1
                name = f"kept_{self._made}"
            try:
                session.execute(f"create table {name} as {source.text}", source.values)
            except self._unfit:  # a status that this version does not know
                return None
            with self._lock:
                self._kept[what] = _Kept(name, size)
            return self._hold(session, what)

    def _hold(self, session: Session, what: Hashable) -> str | None:
        """A table that is there; it is not dropped before the session ends."""
        with self._lock:
            found = self._kept.get(what)
            if found is None:
                return None
            self._kept.move_to_end(what)
            found.users += 1
            session.held.append(found)
            return found.name

    def _make_room(self, size: int) -> None:
        """Drop what was not asked for the longest time and is in no use now."""
        for what, kept in list(self._kept.items()):
            if sum(one.size for one in self._kept.values()) + size <= MEMORY:
                return
            if not kept.users:
                self._connection.cursor().execute(f"drop table {kept.name}")
                del self._kept[what]

    def _release(self, held: Sequence[_Kept]) -> None:
        with self._lock:
            for kept in held:
                kept.users -= 1


class Session:
    """A cursor, and the kept tables that it uses."""

    def __init__(self, database: Database, cursor: Any) -> None:
        self._database, self._cursor = database, cursor
        self.held: list[_Kept] = []

    def execute(self, statement: str, values: Iterable[Any] = ()) -> Any:
        """Run a statement; the cursor has its answer."""
        return self._cursor.execute(statement, list(values))

    def fetchall(self) -> list[Any]:
        """Every row of the answer."""
        return list(self._cursor.fetchall())

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The same, some at a time."""
        while found := self._cursor.fetchmany(1_000):
            yield from found

    def register(self, name: str, table: Any) -> None:
        """Let statements of this session name an Arrow table."""
        self._cursor.register(name, table)

    def kept(self, what: Hashable, source: Sql, size: int, *, load: bool = True) -> str | None:
        """The same as a table in memory, where there is room for it."""
        return self._database.keep(self, what, source, size, load=load)


def parquet(paths: Iterable[Path], *, union: bool = False) -> Sql:
    """Parquet files as a table. DuckDB takes some characters of paths for patterns."""
    files = [_GLOB.sub(lambda found: f"[{found[0]}]", str(path)) for path in paths]
    return Sql(f"read_parquet(?, union_by_name = {str(union).lower()})", (files,))


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a constant, where no value can be bound."""
    return "'" + text.replace("'", "''") + "'"
