"""Engines: executors that process the parts of a run, their choice by name, and the one for one machine.

An executor has one method, which maps a method of a step over many items, in order. Scores do not depend on the
engine: a run that was started with one may be continued with another.
"""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from time import thread_time
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from multimodal_eval.core.errors import ConfigError, RunFolderError, described
from multimodal_eval.core.machine import cores, initialise_child, main_hidden
from multimodal_eval.core.metric import Metric, Placement
from multimodal_eval.core.metric_failures import exit_error
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import load_config
from multimodal_eval.run.plan import Plan, make_plan

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from multimodal_eval.run.step import Step


AHEAD = 2  # items per worker that are in progress or queued: enough to keep all workers busy
THREADS = 4  # per process: a quarter of the work of native metrics is in Python, which runs one thread at a time
BUNDLE = AHEAD * THREADS  # maximum number of items per task of a process with threads
Item = TypeVar("Item")
Pending = TypeVar("Pending")


class Phase(msgspec.Struct, frozen=True):
    """Work of a step on many items: the name of its method, and where and how the items are processed."""

    work: str
    items: Sequence[Any]
    placement: Placement = "thread"
    ahead: int = AHEAD  # items per worker that are in progress or queued
    bundles_from: float = BUNDLE  # the number of items from which threads in several processes are faster than in one
    attempts: int = 4  # on a cluster, before an item counts as crashed
    apart: Literal["never", "after a death", "always"] = "after a death"  # whether in child processes on this machine
    threads: int = THREADS  # of a process, at most


def placement_of(metrics: Iterable[Metric]) -> Placement:
    """Where metrics work: with a model, in Python processes, or in threads."""
    placements = {metric.placement for metric in metrics}
    order: tuple[Placement, ...] = ("model", "process", "thread")
    return next((placement for placement in order if placement in placements), "thread")


class Executor(Protocol):
    """Processes parts."""

    @property
    def workers(self) -> int | None:
        """The number of items processed at the same time; None if it depends on a cluster."""

    def map(self, step: Step, phase: Phase) -> Iterator[Any]:
        """`step.work(item)` for every item, results in the order of the items.

        An item that crashes its process on every attempt gives a `Crashed`.
        """


class Crashed(msgspec.Struct, frozen=True):
    """The process crashed before the work was done."""

    reason: str


def refuse_crashed(result: Any, what: str) -> None:
    """Raise an error if the result is a crash."""
    if isinstance(result, Crashed):
        raise RunFolderError(f"a process crashed while {what}: {result.reason}")


class Inline:
    """Processes items one after the other, in this thread."""

    workers = 1

    def map(self, step: Step, phase: Phase) -> Iterator[Any]:
        """`step.work(item)` for every item."""
        return map(getattr(step, phase.work), phase.items)


def in_order(
    submit: Callable[[Item], Pending], result: Callable[[Item, Pending], Any], items: Iterable[Item], window: int
) -> Iterator[Any]:
    """Results in the order of the items, with at most `window` items submitted at a time."""
    waiting: deque[tuple[Item, Pending]] = deque()
    for item in items:
        waiting.append((item, submit(item)))
        if len(waiting) >= window:
            yield result(*waiting.popleft())
    while waiting:
        yield result(*waiting.popleft())


class Job(msgspec.Struct, frozen=True):
    """A small description of a step, from which another process opens the metrics and their states once."""

    step: type[Step]
    folder: str  # address of the run folder
    config: bytes
    earlier: str | None
    reusable: frozenset[str]
    accept_open: bool

    @classmethod
    def of(cls, step: Step) -> Job:
        """The job of a step in this process."""
        run = step.run
        earlier = None if run.earlier is None else run.earlier.address
        config = msgspec.json.encode(msgspec.to_builtins(run.plan.expanded_config))
        return cls(type(step), run.folder.address, config, earlier, run.reusable, run.accept_open)

    def here(self) -> Step:
        """The step in this process; the last one is cached."""
        return _step(self)

    def opened(self) -> Step:
        """A new step."""
        from multimodal_eval.run.step import RunContext

        plan = make_plan(load_config(msgspec.json.decode(self.config)), stored=self.reusable)
        earlier = None if self.earlier is None else RunFolder(self.earlier)
        folder = RunFolder(self.folder)
        return self.step(RunContext(plan, folder, folder.read_info(), earlier, self.reusable, self.accept_open))


@lru_cache(maxsize=1)
def _step(job: Job) -> Step:
    return job.opened()


EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class Engine:
    """This machine, or a Ray cluster: the one at `address`, or else a private one on this machine.

    `workers` is the number of parts processed at the same time (all cores by default); `gpus_per_worker` is the share
    of a GPU for each worker with a model, on a Ray cluster.
    """

    name: EngineName = "local"
    workers: int | None = None
    address: str | None = None
    gpus_per_worker: float = 0

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ConfigError(f"`engine` must be {' or '.join(map(repr, ENGINES))}. Got {self.name!r} instead.")
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"`workers` must be 1 or more. Got {self.workers} instead.")
        if self.gpus_per_worker < 0 or (self.gpus_per_worker > 1 and self.gpus_per_worker % 1):
            raise ConfigError(
                f"`gpus_per_worker` must be a share from 0 to 1, or a whole number. Got {self.gpus_per_worker} instead."
            )
        if self.name == "local" and (self.address is not None or self.gpus_per_worker):
            raise ConfigError("`address` and `gpus_per_worker` need the engine 'ray'")

    @classmethod
    def of(cls, engine: Engine | EngineName, workers: int | None = None) -> Engine:
        """The engine named by a call, with or without a number of workers."""
        if not isinstance(engine, Engine):
            return cls(engine, workers)
        if workers is not None:
            raise ConfigError("`workers` is given twice: in the `Engine` and as an argument")
        return engine

    def executor(self, plan: Plan) -> AbstractContextManager[Executor]:
        """A context manager with the executor for a plan."""
        return ENGINES[self.name](self, plan)


def _local(engine: Engine, plan: Plan) -> AbstractContextManager[Executor]:
    return nullcontext(Local(engine.workers))


def _ray(engine: Engine, plan: Plan) -> AbstractContextManager[Executor]:
    from multimodal_eval.run.engine.ray import RayExecutor

    if plan.process_local:
        raise ConfigError(
            f"the engine 'ray' uses other processes, which cannot import {', '.join(plan.process_local)}: defined only "
            "in this process. Put the definition into a plug-in file (`plugins`, --plugin)"
        )
    return RayExecutor(engine.workers, engine.address, engine.gpus_per_worker)


# Engine name -> function that opens its executor.
ENGINES: dict[str, Callable[[Engine, Plan], AbstractContextManager[Executor]]] = {"local": _local, "ray": _ray}


# The engine for one machine: threads for compiled metrics, processes for metrics in Python.
#
# With many cores, several processes have a few threads each, and each has its own copy of the corpus statistics. Models
# run in this process, and their libraries use all cores. Metrics that only this process can import run here too.
# Child processes are spawned, end together with this one, and pass errors back unchanged.

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
