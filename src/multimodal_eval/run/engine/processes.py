"""Processes of our own: started afresh, gone when this one is, and of which errors come back as they are."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Lock, Thread
from typing import Any

_hiding = Lock()  # runs of several threads would hand one another the hidden state as the shown one


def process_pool(workers: int) -> ProcessPoolExecutor:
    """So many processes; hand work in by `submit`."""
    # Started afresh: a process forked off one with threads may hang.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)


def submit(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Have `work(*arguments)` done by one of them."""
    with _main_hidden():  # a process is started by the first works that are handed in
        return pool.submit(_carried_out, work, arguments)


def _carried_out(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return work(*arguments)
    except Exception as error:
        _refuse_to_die_of(error)
        raise


def _begin() -> None:
    """What a new process does first: it shall end with this one, however that ends, and without a word on Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """A new process would run the user's script again, up to where it asked for this run: it needs nothing of it."""
    main = vars(sys.modules["__main__"])
    with _hiding:
        shown: dict[str, object] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
        main["__spec__"] = None
        main.pop("__file__", None)
        try:
            yield
        finally:
            main.update(shown)


def _refuse_to_die_of(error: Exception) -> None:
    """An exception that cannot be read on the other side would look like a process that died."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its own code raises
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
