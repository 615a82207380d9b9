"""Child processes: spawned, ended together with this process, with errors passed back unchanged."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from multimodal_eval.core.errors import described
from multimodal_eval.core.machine import initialise_child, main_hidden
from multimodal_eval.core.metric_failures import exit_error


def process_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of processes; use it with `submit`."""
    # Spawned, because a process forked from one with threads may hang.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=initialise_child)


def submit(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call `work(*arguments)` in the pool."""
    with main_hidden():  # the first calls start the processes
        return pool.submit(_run, work, arguments)


def _run(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return work(*arguments)
    except SystemExit as end:  # it would end the parent, with the same code
        raise exit_error("a worker process", "working on a part", end) from None
    except Exception as error:
        _ensure_picklable(error)
        raise


def _ensure_picklable(error: Exception) -> None:
    """Replace an exception that cannot be unpickled; it would look like a crash of the process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - its own code may raise anything
        raise RuntimeError(described(error)) from None
