"""Child processes: spawned, ended together with this process, with errors passed back unchanged."""

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

from multimodal_eval.core.errors import described
from multimodal_eval.core.metric_failures import exit_error
from multimodal_eval.core.visible import protect_streams

_hiding = Lock()  # otherwise concurrent threads would save the hidden state as the original


def process_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of processes; use it with `submit`."""
    # Spawned, because a process forked from one with threads may hang.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_initialise)


def submit(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call `work(*arguments)` in the pool."""
    with _main_hidden():  # the first calls start the processes
        return pool.submit(_run, work, arguments)


def _run(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return work(*arguments)
    except SystemExit as end:  # it would end the parent, with the same code
        raise exit_error("a worker process", "working on a part", end) from None
    except Exception as error:
        _ensure_picklable(error)
        raise


def _initialise() -> None:
    """Initialise a child process: it ends with its parent, prints nothing on Ctrl-C and no control characters."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    protect_streams()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Hide the user's script, so that a new process does not run it again."""
    main = vars(sys.modules["__main__"])
    with _hiding:
        shown: dict[str, object] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
        main["__spec__"] = None
        main.pop("__file__", None)
        try:
            yield
        finally:
            main.update(shown)


def _ensure_picklable(error: Exception) -> None:
    """Replace an exception that cannot be unpickled; it would look like a crash of the process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - its own code may raise anything
        raise RuntimeError(described(error)) from None
