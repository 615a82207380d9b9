"""The engine for one machine: threads for compiled metrics, processes for metrics in Python.

With many cores, several processes have a few threads each, and each process has its own copy of the corpus statistics.
Models run in this process, and their libraries use all cores. Metrics that only this process can import run here too.
Child processes are spawned, end together with this one, and pass errors back unchanged.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import described
from multimodal_eval.core.machine import cores, initialise_child, main_hidden
from multimodal_eval.core.metric_failures import exit_error
from multimodal_eval.run.engine.base import AHEAD, BUNDLE, THREADS, Crashed, Inline, Job, Phase, in_order

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from multimodal_eval.run.step import Step

MIN_PARTS = 3  # for processes
STARTING = 1.0  # seconds of processor time that it takes to start processes
TRIES = 2
_RULES = "multimodal_eval.evaluation."
SWITCH_INTERVAL = 0.0001  # seconds
MODEL_THREADS = 3  # one computes while the others write, read and decode


class Local:
    """Executor on this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(self, step: Step, phase: Phase) -> Iterator[Any]:
        """`step.work(item)` for every item, results in the order of the items."""
        items, placement, workers = phase.items, phase.placement, min(self.workers, len(phase.items))
        is_apart = phase.apart == "after a death" and step.run.isolates and _can_leave(step)
        if phase.apart == "always" or is_apart:
            return _in_processes(Job.of(step), phase, items, 1 if placement == "model" else workers)
        step.threads = max(1, self.workers // max(1, len(items)))
        if workers > phase.threads and placement == "thread" and len(items) > phase.bundles_from and _can_leave(step):
            return _in_bundles(Job.of(step), phase, workers)
        if workers > 1 and placement == "thread":
            return _in_threads(step, phase, workers)
        if workers > 1 and placement == "process" and len(items) >= MIN_PARTS and _can_leave(step):
            if _has_only_rules(step):
                return _in_processes_if_slow(step, phase, workers)
            return _in_processes(Job.of(step), phase, items, workers)
        if placement == "model":
            from multimodal_eval.evaluation.decoding.pool import limit_decoders

            limit_decoders(self.workers)
            step.expect(items)
            if workers > 1 and step.is_concurrent:
                return _with_models(step, phase)
        return Inline().map(step, phase)


def _can_leave(step: Step) -> bool:
    from multiprocessing import current_process

    childless = current_process().daemon  # a daemon process cannot start children
    return step.run.plan.is_portable and step.run.folder.is_shared and not childless


def _has_only_rules(step: Step) -> bool:
    """Whether the metrics are classes of this package. Those of others may crash, and need a process."""
    return all(type(metric).__module__.startswith(_RULES) for metric in step.run.plan.metrics)


def _with_models(step: Step, phase: Phase) -> Iterator[Any]:
    """Score parts in two threads. The thread that hands out images to decode must not wait long for one of them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield from _in_threads(step, phase, MODEL_THREADS)
    finally:
        sys.setswitchinterval(interval)


def _in_threads(step: Step, phase: Phase, workers: int) -> Iterator[Any]:
    from concurrent.futures import ThreadPoolExecutor

    step.open()  # once, before the threads start
    method = getattr(step, phase.work)
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from in_order(
                lambda item: pool.submit(method, item),
                lambda _, future: future.result(),
                phase.items,
                phase.ahead * workers,
            )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class Bundle(msgspec.Struct, frozen=True):
    """Items for the threads of one process."""

    items: tuple[Any, ...]
    threads: int


def _in_bundles(job: Job, phase: Phase, workers: int) -> Iterator[Any]:
    """Use processes with a few threads each: more threads in one process would block one another."""
    processes, bundles = bundled(phase.items, workers, phase.threads)
    outcomes = _in_processes(job, phase, bundles, processes)
    for bundle, results in zip(bundles, outcomes, strict=True):
        if isinstance(results, Crashed):
            results = [_alone(job, phase, item) for item in bundle.items]
        yield from results


def bundled(items: Sequence[Any], workers: int, most_threads: int = THREADS) -> tuple[int, list[Bundle]]:
    """Divide items among processes with so many threads each at most: the number of processes, and the bundles."""
    processes = -(-workers // most_threads)
    threads = -(-workers // processes)
    size = min(BUNDLE, -(-len(items) // processes))  # with few items, one bundle per process
    bundles = [Bundle(tuple(items[start : start + size]), threads) for start in range(0, len(items), size)]
    return min(processes, len(bundles)), bundles


def _in_processes_if_slow(step: Step, phase: Phase, workers: int) -> Iterator[Any]:
    """The first item here; the others in processes if that saves more time than starting them takes."""
    begin = thread_time()
    results = Inline().map(step, phase)
    first = next(results)
    saved = (thread_time() - begin) * (len(phase.items) - 1) * (1 - 1 / workers)
    yield first
    yield from results if saved < STARTING else _in_processes(Job.of(step), phase, phase.items[1:], workers)


def _in_processes(job: Job, phase: Phase, items: Sequence[Any], workers: int) -> Iterator[Any]:
    """Use a process pool. A crash breaks the whole pool; the items in progress are then tried one by one."""
    from concurrent.futures.process import BrokenProcessPool

    left = list(items)
    while left:
        with process_pool(workers) as pool:
            hand_in = partial(_submit, pool, job, phase)
            try:
                for result in in_order(hand_in, lambda _, future: future.result(), list(left), AHEAD * workers):
                    left.pop(0)
                    yield result
            except BrokenProcessPool:
                pass
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        for _ in range(min(len(left), AHEAD * workers)):
            yield _alone(job, phase, left.pop(0))


def _alone(job: Job, phase: Phase, item: Any) -> Any:
    from concurrent.futures.process import BrokenProcessPool

    for _ in range(TRIES):
        with process_pool(1) as pool:
            try:
                return _submit(pool, job, phase, item).result()
            except BrokenProcessPool:
                continue
    return Crashed(f"its process crashed in each of {TRIES} separate attempts")


def _submit(pool: ProcessPoolExecutor, job: Job, phase: Phase, item: Any) -> Future[Any]:
    return submit(pool, _work, job, msgspec.structs.replace(phase, items=()), item)


def _work(job: Job, phase: Phase, item: Any) -> Any:
    if isinstance(item, Bundle):
        return list(_in_threads(job.here(), msgspec.structs.replace(phase, items=item.items), item.threads))
    return getattr(job.here(), phase.work)(item)


def process_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of processes; use it with `submit`."""
    from concurrent.futures import ProcessPoolExecutor  # imported here: most runs need no process
    from multiprocessing import get_context

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
