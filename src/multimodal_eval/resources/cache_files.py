"""SQLite files in `$MMEVAL_HOME/cache`, which several processes may read and write at the same time.

`MMEVAL_CACHE=off` switches every cache off. A cache that cannot be used gives one warning, and the run continues
without it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import warnings
from contextlib import suppress
from pathlib import Path

from multimodal_eval.resources.store import home

_WAIT = 30  # seconds to wait for another process that is writing
_PAUSE = 0.01  # seconds between two attempts to open a file


def are_caches_on() -> bool:
    """Whether the environment allows caches."""
    return os.environ.get("MMEVAL_CACHE", "").lower() not in ("off", "0", "no")


def file_name_part(label: str) -> str:
    """The label without the characters that a file name may not have."""
    return re.sub(r"[^A-Za-z0-9.@_-]+", "-", label)


def cache_path(name: str, version: int) -> Path:
    """The file of the cache with this name; each version has its own."""
    return home() / "cache" / f"{name}.v{version}.sqlite"


def open_cache(path: Path, table: str, *, page_size: int = 4096) -> sqlite3.Connection:
    """A connection to a cache file, which is created if there is none. `table` is the statement that creates its table.

    The connection may be used by several threads, one at a time. Entries are written without waiting for the disk: a
    lost entry is computed or asked again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    give_up_at = time.monotonic() + _WAIT
    while True:
        try:
            return _opened(path, table, page_size)
        except sqlite3.OperationalError as fault:
            # While another process creates the file, SQLite refuses to change the journal mode without waiting.
            if not _is_busy(fault) or time.monotonic() >= give_up_at:
                raise
        time.sleep(_PAUSE)


def give_up(path: Path, connection: sqlite3.Connection | None, fault: Exception, *, stacklevel: int) -> None:
    """Close the connection, with its unfinished transaction, and warn. A file that is not a database is moved aside."""
    if connection is not None:
        with suppress(sqlite3.Error):
            connection.close()
    message = f"the cache {path} cannot be used: {fault}. The run continues without it"
    if type(fault) is sqlite3.DatabaseError:  # not a database, or a broken one
        aside = path.with_suffix(".broken")
        with suppress(OSError):  # another process was faster
            path.replace(aside)
            message += f". The file was moved to {aside.name}"
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
    warnings.warn(message, stacklevel=stacklevel + 1)


def _opened(path: Path, table: str, page_size: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {page_size}")  # of a new file
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(table)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_busy(fault: sqlite3.OperationalError) -> bool:
    code = getattr(fault, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_BUSY  # the low byte: there are several kinds of busy
