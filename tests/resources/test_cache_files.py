"""Cache files that several processes open and write at the same time."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading

import pytest

from multimodal_eval.resources import cache_files
from multimodal_eval.resources.cache_files import cache_path, give_up, open_cache

TABLE = "CREATE TABLE IF NOT EXISTS pairs (key BLOB PRIMARY KEY, value BLOB)"


@pytest.fixture
def path():
    return cache_path("toy", 1)


@pytest.fixture
def creator(path):
    """A connection that is creating the file: it holds SQLite's lock for writers, and the file is not in WAL mode."""
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(TABLE)
    yield connection
    connection.close()


def test_a_file_that_another_process_creates_is_opened_when_it_is_finished(path, creator):
    timer = threading.Timer(0.3, creator.execute, ["COMMIT"])
    timer.start()
    connection = open_cache(path, TABLE)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    timer.join()


def test_a_file_that_stays_locked_is_an_error_after_a_while(monkeypatch, path, creator):
    monkeypatch.setattr(cache_files, "_WAIT", 0.2)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        open_cache(path, TABLE)


def test_other_faults_are_not_tried_again(monkeypatch, path):
    monkeypatch.setattr(cache_files.time, "sleep", lambda _: pytest.fail("tried again"))
    path.mkdir(parents=True)
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        open_cache(path, TABLE)


def test_giving_up_ends_the_transaction(path):
    """Otherwise a process whose disk is full would lock the others out until it ends."""
    connection = open_cache(path, TABLE)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.warns(UserWarning, match="cannot be used: disk is full. The run continues without it"):
        give_up(path, connection, sqlite3.OperationalError("disk is full"), stacklevel=1)
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.close()
    assert path.exists()


def test_a_broken_file_that_another_process_moved_is_left_alone(path):
    path.parent.mkdir(parents=True)
    with pytest.warns(UserWarning, match="The run continues without it$"):
        give_up(path, None, sqlite3.DatabaseError("file is not a database"), stacklevel=1)


def write_to_each(paths, name, barrier):
    try:
        for path in paths:
            barrier.wait()
            connection = open_cache(path, TABLE)
            connection.execute("INSERT INTO pairs VALUES (?, ?)", (name, b""))
            connection.close()
    except BaseException:
        barrier.abort()  # the other processes would wait for this one
        raise


def test_processes_that_create_files_at_the_same_time_lose_nothing():
    context = multiprocessing.get_context("spawn")
    paths = [cache_path("toy", version) for version in range(40)]
    names, barrier = [b"a", b"b", b"c", b"d"], context.Barrier(4)
    processes = [context.Process(target=write_to_each, args=(paths, name, barrier)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    for path in paths:
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT key FROM pairs ORDER BY key").fetchall() == [(name,) for name in names]
        connection.close()
