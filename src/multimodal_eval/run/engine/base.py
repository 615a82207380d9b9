"""The common base of all engines: executors that process the parts of a run, and their choice by name.

An executor has one method, which maps a method of a worker over many items, in order. Scores do not depend on the
engine: a run that was started with one may be continued with another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

import msgspec

from multimodal_eval.core.errors import ConfigError, RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import load_config
from multimodal_eval.run.plan import Plan, make_plan

if TYPE_CHECKING:
    from multimodal_eval.run.part import Worker

BeforeScoring = Literal["count", "read", "join", "check", "keys", "shared", "fit", "fit_moved", "merge"]
Work = BeforeScoring | Literal["score", "probe", "score_again"]
IN_OTHER_PROCESSES: tuple[Work, ...] = ("probe", "score_again")  # used only after a process has crashed
BEFORE_SCORING: tuple[Work, ...] = get_args(BeforeScoring)
AHEAD = 2  # parts per worker that are in progress or queued: enough to keep all workers busy
READING_AHEAD = 16  # the same for splits, whose results are small: a checksum of a large file delays no others
Item = TypeVar("Item")
Future = TypeVar("Future")


def ahead_of(work: Work) -> int:
    """The number of items per worker that are in progress or queued."""
    return READING_AHEAD if work in ("count", "read", "join") else AHEAD


class Executor(Protocol):
    """Processes parts."""

    @property
    def workers(self) -> int | None:
        """The number of items processed at the same time; None if it depends on a cluster."""

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item, results in the order of the items.

        An item that crashes its process on every attempt gives a `Crashed`.
        """


@dataclass(frozen=True)
class Crashed:
    """The process crashed before the work was done."""

    reason: str


def refuse_crashed(result: Any, what: str) -> None:
    """Raise an error if the result is a crash."""
    if isinstance(result, Crashed):
        raise RunFolderError(f"a process crashed while {what}: {result.reason}")


class Inline:
    """Processes items one after the other, in this thread."""

    workers = 1

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item."""
        return map(getattr(worker, work), items)


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


@dataclass(frozen=True)
class Recipe:
    """A small description of a worker, from which another process opens the metrics and their states once."""

    folder: str  # address of the run folder
    config: bytes
    earlier: str | None
    reusable: frozenset[str]
    accept_open: bool

    @classmethod
    def of(cls, worker: Worker) -> Recipe:
        """The recipe of a worker in this process."""
        earlier = None if worker.earlier is None else worker.earlier.address
        config = msgspec.json.encode(msgspec.to_builtins(worker.plan.expanded_config))
        return cls(worker.folder.address, config, earlier, worker.reusable, worker.accept_open)

    def worker(self) -> Worker:
        """The worker; the last one is cached."""
        return _worker(self)

    def opened(self) -> Worker:
        """A new worker."""
        from multimodal_eval.run.part import Worker

        plan = make_plan(load_config(msgspec.json.decode(self.config)), stored=self.reusable)
        earlier = None if self.earlier is None else RunFolder(self.earlier)
        return Worker(plan, RunFolder(self.folder), earlier, self.reusable, self.accept_open)


@lru_cache(maxsize=1)
def _worker(recipe: Recipe) -> Worker:
    return recipe.opened()


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
