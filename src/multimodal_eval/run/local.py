"""All cores of this machine: threads where the compiled core does the work, processes for metrics in Python.

Models run in one process, whose libraries use all cores by themselves; so do metrics that only this process knows.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any

from multimodal_eval.core.machine import cores
from multimodal_eval.run.executor import IN_OTHER_PROCESSES, Died, Inline, Work, in_order
from multimodal_eval.run.part import Worker
from multimodal_eval.run.recipe import Recipe

AHEAD = 2  # parts a worker that are on their way or wait to be taken: enough to keep all busy
FEWEST_PARTS = 3  # for which processes are started: each takes most of a second
TRIES = 2


class Local:
    """This machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item, results in their order."""
        workers = min(self.workers, len(items))
        if work in IN_OTHER_PROCESSES:
            return _in_processes(Recipe.of(worker), work, items, workers)
        placement = worker.placement(work)
        if workers > 1 and placement == "thread":
            return _in_threads(worker, work, items, workers)
        if workers > 1 and placement == "process" and len(items) >= FEWEST_PARTS and _can_leave(worker):
            return _in_processes(Recipe.of(worker), work, items, workers)
        return Inline().map(worker, work, items)


def _can_leave(worker: Worker) -> bool:
    return worker.plan.travels and not current_process().daemon  # which may have no children


def _in_threads(worker: Worker, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    worker.open(work)  # once, before they all ask for it
    method = getattr(worker, work)
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from in_order(
                lambda item: pool.submit(method, item), lambda _, one: one.result(), items, AHEAD * workers
            )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _in_processes(recipe: Recipe, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    """A process that dies takes the pool with it: what was on its way is then tried alone, to see whose fault it is."""
    left = list(items)
    while left:
        with _pool(workers) as pool:
            submit = partial(_submit, pool, recipe, work)
            try:
                for result in in_order(submit, lambda _, one: one.result(), list(left), AHEAD * workers):
                    left.pop(0)
                    yield result
            except BrokenProcessPool:
                pass
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        for _ in range(min(len(left), AHEAD * workers)):
            yield _alone(recipe, work, left.pop(0))


def _alone(recipe: Recipe, work: Work, item: Any) -> Any:
    for _ in range(TRIES):
        with _pool(1) as pool:
            try:
                return _submit(pool, recipe, work, item).result()
            except BrokenProcessPool:
                continue
    return Died(f"its process died, each of the {TRIES} times that it was tried alone")


def _pool(workers: int) -> ProcessPoolExecutor:
    # Started afresh: a process forked off one with threads may hang.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """What a new process does first: it shall end with this one, however that ends, and without a word on Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _submit(pool: ProcessPoolExecutor, recipe: Recipe, work: Work, item: Any) -> Future[Any]:
    with _main_hidden():  # a process is started by the first works that are handed in
        return pool.submit(_work, recipe, work, item)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """A new process would run the user's script again, up to where it asked for this run: it needs nothing of it."""
    main = vars(sys.modules["__main__"])
    shown: dict[str, Any] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
    main["__spec__"] = None
    main.pop("__file__", None)
    try:
        yield
    finally:
        main.update(shown)


def _work(recipe: Recipe, work: Work, item: Any) -> Any:
    try:
        return getattr(recipe.worker(), work)(item)
    except Exception as error:
        _refuse_to_die_of(error)
        raise


def _refuse_to_die_of(error: Exception) -> None:
    """An exception that cannot be read on the other side would look like a process that died."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its own code raises
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
