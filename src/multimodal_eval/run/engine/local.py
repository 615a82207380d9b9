"""All cores of this machine: threads where the compiled core does the work, processes for metrics in Python.

On many cores the threads are those of several processes, each of which holds the corpus statistics for itself.
Models run in one process, whose libraries use all cores by themselves; so do metrics that only this process knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import current_process
from typing import Any

from multimodal_eval.core.machine import cores
from multimodal_eval.run.engine.base import AHEAD, IN_OTHER_PROCESSES, Died, Inline, Recipe, Work, in_order
from multimodal_eval.run.engine.processes import process_pool, submit
from multimodal_eval.run.part import Worker

FEWEST_PARTS = 3  # for which processes are started: each takes most of a second
TRIES = 2
THREADS = 4  # of one process: a quarter of the work on native metrics is Python's, which one thread does at a time
BUNDLE = AHEAD * THREADS  # parts that a process with threads takes at once, at most


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
        if workers > THREADS and placement == "thread" and len(items) > BUNDLE and _can_leave(worker):
            return _in_bundles(Recipe.of(worker), work, items, workers)
        if workers > 1 and placement == "thread":
            return _in_threads(worker, work, items, workers)
        if workers > 1 and placement == "process" and len(items) >= FEWEST_PARTS and _can_leave(worker):
            return _in_processes(Recipe.of(worker), work, items, workers)
        return Inline().map(worker, work, items)


def _can_leave(worker: Worker) -> bool:
    alone = current_process().daemon  # which may have no children
    return worker.plan.travels and worker.folder.is_shared and not alone


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


@dataclass(frozen=True)
class _Bundle:
    """Items for the threads of one process."""

    items: tuple[Any, ...]
    threads: int


def _in_bundles(recipe: Recipe, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    """Processes with a few threads each: more threads of one process would wait for one another."""
    processes = -(-workers // THREADS)
    threads = -(-workers // processes)
    size = min(BUNDLE, -(-len(items) // processes))  # of few items there is one bundle for each process
    bundles = [_Bundle(tuple(items[start : start + size]), threads) for start in range(0, len(items), size)]
    found = _in_processes(recipe, work, bundles, min(processes, len(bundles)))
    for bundle, results in zip(bundles, found, strict=True):
        if isinstance(results, Died):
            results = [_alone(recipe, work, item) for item in bundle.items]
        yield from results


def _in_processes(recipe: Recipe, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    """A process that dies takes the pool with it: what was on its way is then tried alone, to see whose fault it is."""
    left = list(items)
    while left:
        with process_pool(workers) as pool:
            hand_in = partial(_submit, pool, recipe, work)
            try:
                for result in in_order(hand_in, lambda _, one: one.result(), list(left), AHEAD * workers):
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
        with process_pool(1) as pool:
            try:
                return _submit(pool, recipe, work, item).result()
            except BrokenProcessPool:
                continue
    return Died(f"its process died, each of the {TRIES} times that it was tried alone")


def _submit(pool: ProcessPoolExecutor, recipe: Recipe, work: Work, item: Any) -> Future[Any]:
    return submit(pool, _work, recipe, work, item)


def _work(recipe: Recipe, work: Work, item: Any) -> Any:
    if isinstance(item, _Bundle):
        return list(_in_threads(recipe.worker(), work, item.items, item.threads))
    return getattr(recipe.worker(), work)(item)
