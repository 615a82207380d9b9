"""The common base of all engines: executors that process the parts of a run, and their choice by name.

An executor has one method, which maps a method of a step over many items, in order. Scores do not depend on the
engine: a run that was started with one may be continued with another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from multimodal_eval.core.errors import ConfigError, RunFolderError
from multimodal_eval.core.metric import Metric, Placement
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import load_config
from multimodal_eval.run.plan import Plan, make_plan

if TYPE_CHECKING:
    from multimodal_eval.run.step import Step

AHEAD = 2  # items per worker that are in progress or queued: enough to keep all workers busy
THREADS = 4  # per process: a quarter of the work of native metrics is in Python, which runs one thread at a time
BUNDLE = AHEAD * THREADS  # maximum number of items per task of a process with threads
Item = TypeVar("Item")
Future = TypeVar("Future")


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
    submit: Callable[[Item], Future], result: Callable[[Item, Future], Any], items: Iterable[Item], window: int
) -> Iterator[Any]:
    """Results in the order of the items, with at most `window` items submitted at a time."""
    waiting: deque[tuple[Item, Future]] = deque()
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
    from multimodal_eval.run.engine.local import Local

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
