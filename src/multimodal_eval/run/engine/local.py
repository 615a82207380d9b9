"""The engine for one machine: threads for compiled metrics, processes for metrics in Python.

With many cores, several processes have a few threads each, and each process has its own copy of the corpus statistics.
Models run in this process, and their libraries use all cores. Metrics that only this process can import run here too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.machine import cores
from multimodal_eval.evaluation.decoding.shared_pool import limit_decoders
from multimodal_eval.run.engine.base import AHEAD, IN_OTHER_PROCESSES, Crashed, Inline, Recipe, Work, ahead_of, in_order
from multimodal_eval.run.part import Worker
from multimodal_eval.run.upcoming import Upcoming

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

MIN_PARTS = 3  # for processes: starting one takes most of a second
TRIES = 2
SWITCH_INTERVAL = 0.0005  # seconds
MODEL_THREADS = 2  # one writes and reads while the other computes
THREADS = 4  # per process: a quarter of the work of native metrics is in Python, which runs one thread at a time
MANY_SPLITS = 256  # for processes that only read: about 4 GB, of which a thread reads 100 MB in a second
BUNDLE = AHEAD * THREADS  # maximum number of parts per task of a process with threads


class Local:
    """Executor on this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item, results in the order of the items."""
        workers = min(self.workers, len(items))
        if work in IN_OTHER_PROCESSES:
            return _in_processes(Recipe.of(worker), work, items, 1 if worker.placement(work) == "model" else workers)
        placement = worker.placement(work)
        if worker.isolates and work not in ("count", "read", "join") and _can_leave(worker):
            return _in_processes(Recipe.of(worker), work, items, 1 if placement == "model" else workers)
        worker.threads = max(1, self.workers // max(1, len(items)))
        if workers > THREADS and placement == "thread" and len(items) > _enough(work) and _can_leave(worker):
            return _in_bundles(Recipe.of(worker), work, items, workers)
        if workers > 1 and placement == "thread":
            return _in_threads(worker, work, items, workers)
        if workers > 1 and placement == "process" and len(items) >= MIN_PARTS and _can_leave(worker):
            return _in_processes(Recipe.of(worker), work, items, workers)
        if placement == "model" and work == "score":
            limit_decoders(self.workers)
            worker.upcoming = Upcoming(list(items))
            if workers > 1 and _is_concurrent(worker):
                return _with_models(worker, work, items)
        return Inline().map(worker, work, items)


def _enough(work: Work) -> float:
    """The number of items from which on threads in several processes are faster than in this one."""
    few: dict[Work, float] = {"count": inf, "read": MANY_SPLITS, "join": inf}
    return few.get(work, BUNDLE)


def _can_leave(worker: Worker) -> bool:
    from multiprocessing import current_process

    childless = current_process().daemon  # a daemon process cannot start children
    return worker.plan.is_portable and worker.folder.is_shared and not childless


def _is_concurrent(worker: Worker) -> bool:
    """Whether two threads may score two parts with the models of this process."""
    models = [worker.scorers[metric.name] for metric in worker.fresh if metric.placement == "model"]
    return all(getattr(scorer, "is_concurrent", False) for scorer in models)


def _with_models(worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
    """Score parts in two threads. The thread that hands out images to decode must not wait long for one of them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield from _in_threads(worker, work, items, MODEL_THREADS)
    finally:
        sys.setswitchinterval(interval)


def _in_threads(worker: Worker, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    from concurrent.futures import ThreadPoolExecutor

    worker.open(work)  # once, before the threads start
    method = getattr(worker, work)
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from in_order(
                lambda item: pool.submit(method, item),
                lambda _, future: future.result(),
                items,
                ahead_of(work) * workers,
            )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class Bundle:
    """Items for the threads of one process."""

    items: tuple[Any, ...]
    threads: int


def _in_bundles(recipe: Recipe, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    """Use processes with a few threads each: more threads in one process would block one another."""
    processes, bundles = bundled(items, workers)
    outcomes = _in_processes(recipe, work, bundles, processes)
    for bundle, results in zip(bundles, outcomes, strict=True):
        if isinstance(results, Crashed):
            results = [_alone(recipe, work, item) for item in bundle.items]
        yield from results


def bundled(items: Sequence[Any], workers: int) -> tuple[int, list[Bundle]]:
    """Divide items among processes with up to THREADS threads each: the number of processes, and the bundles."""
    processes = -(-workers // THREADS)
    threads = -(-workers // processes)
    size = min(BUNDLE, -(-len(items) // processes))  # with few items, one bundle per process
    bundles = [Bundle(tuple(items[start : start + size]), threads) for start in range(0, len(items), size)]
    return min(processes, len(bundles)), bundles


def _in_processes(recipe: Recipe, work: Work, items: Sequence[Any], workers: int) -> Iterator[Any]:
    """Use a process pool. A crash breaks the whole pool; the items in progress are then tried one by one."""
    from concurrent.futures.process import BrokenProcessPool

    from multimodal_eval.run.engine.processes import process_pool

    left = list(items)
    while left:
        with process_pool(workers) as pool:
            hand_in = partial(_submit, pool, recipe, work)
            try:
                for result in in_order(hand_in, lambda _, future: future.result(), list(left), AHEAD * workers):
                    left.pop(0)
                    yield result
            except BrokenProcessPool:
                pass
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        for _ in range(min(len(left), AHEAD * workers)):
            yield _alone(recipe, work, left.pop(0))


def _alone(recipe: Recipe, work: Work, item: Any) -> Any:
    from concurrent.futures.process import BrokenProcessPool

    from multimodal_eval.run.engine.processes import process_pool

    for _ in range(TRIES):
        with process_pool(1) as pool:
            try:
                return _submit(pool, recipe, work, item).result()
            except BrokenProcessPool:
                continue
    return Crashed(f"its process crashed in each of {TRIES} separate attempts")


def _submit(pool: ProcessPoolExecutor, recipe: Recipe, work: Work, item: Any) -> Future[Any]:
    from multimodal_eval.run.engine.processes import submit

    return submit(pool, _work, recipe, work, item)


def _work(recipe: Recipe, work: Work, item: Any) -> Any:
    if isinstance(item, Bundle):
        return list(_in_threads(recipe.worker(), work, item.items, item.threads))
    return getattr(recipe.worker(), work)(item)
