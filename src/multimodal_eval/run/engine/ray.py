"""A Ray cluster: tasks for work that needs nothing but a core, actors where a model is loaded once and kept.

What travels is the recipe of a worker; samples, corpus statistics and scores lie in the run folder, which every machine
sees. Ray starts again what dies, and a worker of Ray does one thing at a time: it takes nothing else down with it.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError, UnavailableError
from multimodal_eval.core.machine import cores
from multimodal_eval.core.optional import require
from multimodal_eval.run.engine.base import AHEAD, Died, Recipe, Work, in_order
from multimodal_eval.run.execute import stored_signature
from multimodal_eval.run.part import Worker

# A part that is not scored is looked into and scored again; statistics that are not gathered end the run.
RETRIES: dict[Work, int] = {"fit": 3, "merge": 3, "score": 1, "probe": 1, "score_again": 1}
OBJECT_STORE = 100_000_000  # bytes: nothing large travels
LONGEST_FOLDER = 20  # characters, of the 107 that the path of a socket may have
# What Ray would print on standard output, among our results, of deaths that are made up for.
UNSAID = "worker died or was killed|(_work|_Keeper).* (failed|died|restart)"


@dataclass(frozen=True)
class _Session:
    """One use of an executor."""

    name: str
    folder: str  # that the driver is in: relative paths of a configuration begin there


class RayExecutor:
    """A cluster that is there already, or one of our own on this machine, which ends with the run.

    A private cluster is started when it is needed, so that a refused input waits for none; another one is joined at
    once, so that a wrong address is known before the input is read. In a process that has called `ray.init`, that
    connection is used, and kept.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, gpus_per_worker: float = 0) -> None:
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", UNSAID)  # read when Ray is imported
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere unless somebody wants it
        self._ray: Any = require("ray", extra="ray", purpose="the engine 'ray'")
        self.workers = workers
        self.address = address
        self.gpus_per_worker = gpus_per_worker
        self._session = _Session(uuid4().hex, str(Path.cwd()))
        self._connected = False
        self._scratch: Path | None = None  # of a private cluster
        self._actors: dict[Recipe, list[Any]] = {}

    def __enter__(self) -> RayExecutor:
        if self.address is not None:
            self._connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._actors.clear()
        if self._connected or self._scratch is not None:  # also where the start was interrupted
            self._ray.shutdown()
            self._connected = False
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def map(self, worker: Worker, work: Work, items: Sequence[Any]) -> Iterator[Any]:
        """`worker.work(item)` for every item, results in their order.

        After an error what is under way is not cancelled: that may bring down the driver (Ray 2.60), and it is little.
        """
        if not worker.folder.is_shared:
            raise RunFolderError(f"{worker.folder.label} lies in this process, where no worker of Ray can write to it")
        self._connect()
        recipe = Recipe.of(worker)
        if worker.placement(work) == "model":
            turns = cycle(self._actors_of(recipe))
            window = AHEAD * len(self._actors[recipe])

            def submit(item: Any) -> Any:
                return next(turns).work.remote(self._session, recipe, work, item)
        else:
            self._actors.clear()  # what they hold is needed now
            task = self._ray.remote(_work).options(num_cpus=1, max_retries=RETRIES[work])
            window = self._window()

            def submit(item: Any) -> Any:
                return task.remote(self._session, recipe, work, item)

        return in_order(submit, lambda _, reference: self._result(work, reference), items, window)

    def _result(self, work: Work, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, MultimodalEvalError):
                raise error.cause from None
            raise  # a bug: it keeps the traceback of its process
        except (
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
            errors.NodeDiedError,
            errors.RayActorError,
        ):
            return Died(f"its process died, each of the {RETRIES[work] + 1} times that it was tried")

    def _connect(self) -> None:
        if self._connected or self._ray.is_initialized():
            return
        quiet = {"log_to_driver": False, "logging_level": "error"}
        try:
            if self.address is None:
                self._start(quiet)
            else:
                _refuse_silence(self.address)
                self._ray.init(address=self.address, **quiet)
        except (OSError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            where = "a Ray cluster of our own" if self.address is None else f"the Ray cluster {self.address!r}"
            raise UnavailableError(f"{where} cannot be reached: {error}") from error
        self._connected = True

    def _start(self, quiet: Mapping[str, object]) -> None:
        # In a folder of its own, by which no other Ray on this machine finds it.
        self._scratch = Path(tempfile.mkdtemp(prefix="mmeval-ray-", dir=_short_folder()))
        self._ray.init(
            address="local",
            num_cpus=self.workers or cores(),
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
            _temp_dir=str(self._scratch),
            **quiet,
        )

    def _nodes(self) -> list[dict[str, float]]:
        """What each machine of the cluster has."""
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _window(self) -> int:
        """How many tasks are under way; a private cluster has no more cores than it may use."""
        if self.workers is not None and self._scratch is None:
            return self.workers
        return AHEAD * max(1, int(sum(node.get("CPU", 0) for node in self._nodes())))

    def _actors_of(self, recipe: Recipe) -> list[Any]:
        """The actors of a recipe: those that are there, since others may find no room beside them."""
        if recipe not in self._actors:
            self._actors.clear()
            kind = self._ray.remote(_Keeper).options(
                num_cpus=1,
                num_gpus=self.gpus_per_worker,
                max_restarts=-1,
                max_task_retries=RETRIES["score"],
                scheduling_strategy="SPREAD",
            )
            self._actors[recipe] = [kind.remote() for _ in range(self._actor_count())]
        return self._actors[recipe]

    def _actor_count(self) -> int:
        """As many as there is room for on GPUs; without, one a machine, all of whose cores a model uses by itself."""
        nodes = self._nodes()
        room = [int(node.get("CPU", 0)) for node in nodes]
        if self.gpus_per_worker:
            shares = [int(node.get("GPU", 0) / self.gpus_per_worker + 1e-9) for node in nodes]
            room = [min(both) for both in zip(room, shares, strict=True)]
            wanted = self.workers or sum(room)
        else:
            wanted = self.workers or sum(map(bool, room))
        if not sum(room):
            need = f"a core and {self.gpus_per_worker:g} GPUs" if self.gpus_per_worker else "a core"
            raise UnavailableError(
                f"a worker with a model needs {need}, and no machine of the Ray cluster has that. "
                "Change gpus_per_worker (--gpus-per-worker), or add machines"
            )
        return min(wanted, sum(room))


def _short_folder() -> str:
    """Where temporary files go, unless that path is too long for Ray, whose sockets lie deep below it."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= LONGEST_FOLDER or os.name == "nt" else "/tmp"


def _refuse_silence(address: str) -> None:
    """Raise an OSError where nobody listens: Ray itself would knock for five minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():  # not `auto`, nor that of a client
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


class _Keeper:
    """A process of its own that keeps what it has opened."""

    def work(self, session: _Session, recipe: Recipe, work: Work, item: Any) -> Any:
        """Do it here."""
        return _work(session, recipe, work, item)


def _work(session: _Session, recipe: Recipe, work: Work, item: Any) -> Any:
    worker = _opened(session, recipe)
    if work not in ("fit", "merge"):
        _refuse_other_numbers(session, recipe)
    return getattr(worker, work)(item)


@lru_cache(maxsize=1)
def _opened(session: _Session, recipe: Recipe) -> Worker:
    """The worker of this process. Not that of another session: its folder may have been filled anew since."""
    with suppress(OSError):  # where there is no such folder, only whole paths are understood
        os.chdir(session.folder)
    return recipe.opened()


@lru_cache(maxsize=1)
def _refuse_other_numbers(session: _Session, recipe: Recipe) -> None:
    """Half of a run with one metric and half with another would be no run, and machines differ."""
    worker = _opened(session, recipe)
    begun = worker.folder.read_info().signatures
    for metric in worker.fresh:
        here = stored_signature(metric, worker.state(metric), worker.plan.config)
        if here != begun[metric.name]:
            raise RunFolderError(
                f"{socket.gethostname()} would score with {here.text}, and this run was begun with "
                f"{begun[metric.name].text}. All machines need the same package, plug-ins and models, and a GPU "
                "where one was seen at the start (gpus_per_worker, --gpus-per-worker)"
            )
