"""The engine for a Ray cluster: tasks for work that needs only a core, actors that load a model once and keep it.

Only the job of a step is sent to other machines; samples, corpus statistics and scores are in the run folder,
which every machine can access. Ray restarts crashed processes, and each of them does one thing at a time, so a crash
affects nothing else.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from multimodal_eval.core.errors import ClusterError, MultimodalEvalError, RunFolderError, UnavailableError
from multimodal_eval.core.machine import cores
from multimodal_eval.core.optional import require
from multimodal_eval.evaluation.decoding.pool import limit_decoders
from multimodal_eval.run.engine.base import AHEAD, Crashed, Job, Phase, in_order

if TYPE_CHECKING:
    from multimodal_eval.run.step import Step

ANNOUNCED = 3  # parts of an actor after the current one
OBJECT_STORE = 100_000_000  # bytes: only small objects are sent
LONGEST_FOLDER = 20  # characters, out of 107 for the path of a socket
HEARTBEAT = 5.0  # seconds of waiting after which the processes of the cluster are checked
CONNECT = 10.0  # seconds
ATTEMPTS = 3  # to connect in time
# Errors of Ray that are never those of a task. Versions of Ray have some of them.
OF_THE_CLUSTER = (
    *("LocalRayletDiedError", "RpcError", "ObjectLostError", "ObjectStoreFullError", "OutOfDiskError"),
    *("RuntimeEnvSetupError", "AuthenticationError"),
)
# Messages about recovered crashes that Ray would print to standard output, between our results.
HIDDEN_MESSAGES = "worker died or was killed|(_work|_ModelActor).* (failed|died|restart)"


@dataclass(frozen=True)
class _Session:
    """One use of an executor."""

    name: str
    folder: str  # the working directory of the driver, for relative paths in a configuration


class RayExecutor:
    """An existing cluster, or a private one on this machine, which ends with the run.

    A private cluster is started when it is first needed, after the input has been checked. An existing one is joined
    immediately, so that a wrong address is reported before the input is read. In a process that has called `ray.init`,
    that connection is used and kept.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, gpus_per_worker: float = 0) -> None:
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", HIDDEN_MESSAGES)  # read when Ray is imported
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics by default
        self._ray: Any = require("ray", extra="ray", purpose="the engine 'ray'")
        self.workers = workers
        self.address = address
        self.gpus_per_worker = gpus_per_worker
        self._session = _Session(uuid4().hex, str(Path.cwd()))
        self._connected = False
        self._scratch: Path | None = None  # of a private cluster
        self._actors: dict[Job, list[Any]] = {}
        self._vital: dict[str, tuple[str, int]] = {}  # what the run cannot do without, and its address

    def __enter__(self) -> RayExecutor:
        if self.address is not None:
            self._connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._actors.clear()
        if self._connected or self._scratch is not None:  # also if the start was interrupted
            self._ray.shutdown()
            self._connected = False
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def map(self, step: Step, phase: Phase) -> Iterator[Any]:
        """`step.work(item)` for every item, results in the order of the items.

        After an error, the few items in progress are not cancelled: that may crash the driver (Ray 2.60).
        """
        folder, items = step.run.folder, phase.items
        if not folder.is_shared:
            raise RunFolderError(f"{folder.label} is in this process's memory, and Ray workers cannot write to it")
        self._connect()
        self._refuse_dead()
        job, work = Job.of(step), phase.work
        if phase.placement == "model":
            actors = self._actors_of(job, phase)
            window = AHEAD * len(actors)

            def submit(place: int) -> Any:
                turn = range(place, min(len(items), place + (1 + ANNOUNCED) * len(actors)), len(actors))
                parts = [items[number] for number in turn]  # this one, and those that the actor gets next
                return actors[place % len(actors)].work.remote(self._session, job, work, *parts)
        else:
            self._actors.clear()  # free their resources
            task = self._ray.remote(_work).options(num_cpus=1, max_retries=phase.attempts - 1)
            window = self._window(phase)

            def submit(place: int) -> Any:
                return task.remote(self._session, job, work, items[place])

        def submitted(place: int) -> Any:
            with self._cluster_errors():
                return submit(place)

        return in_order(submitted, lambda _, reference: self._result(phase, reference), range(len(items)), window)

    def _result(self, phase: Phase, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            with self._cluster_errors():
                return self._waited(reference)
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
            self._refuse_dead()  # then the sample is not the cause
            return Crashed(f"its process crashed in each of {phase.attempts} attempts")

    def _waited(self, reference: Any) -> Any:
        """The result of a task. Ray itself may wait for a dead cluster for ever, or end this process."""
        while True:
            try:
                return self._ray.get(reference, timeout=HEARTBEAT)
            except self._ray.exceptions.GetTimeoutError as error:
                if isinstance(error, self._ray.exceptions.RayTaskError):  # of the task
                    raise
            self._refuse_dead()

    @contextmanager
    def _cluster_errors(self) -> Iterator[None]:
        """Turn the errors of a cluster that has died into a ClusterError. Errors of tasks stay as they are."""
        errors = self._ray.exceptions
        of_the_cluster = tuple(getattr(errors, name) for name in OF_THE_CLUSTER if hasattr(errors, name))
        try:
            yield
        except errors.RayTaskError:
            raise
        except (*of_the_cluster, ConnectionError) as error:
            self._refuse_dead()
            raise self._died(f"{type(error).__name__}: {error}") from error
        except errors.RaySystemError:
            self._refuse_dead()
            raise  # such as a result that cannot be read: a bug

    def _refuse_dead(self) -> None:
        """Raise an error if a process without which nothing continues does not listen any more."""
        for what, place in self._vital.items():
            if (fault := _connection_fault(place)) is not None:
                raise self._died(f"{what} does not answer ({fault})")

    def _died(self, reason: str) -> ClusterError:
        whose = "the private Ray cluster of this run" if self._scratch is not None else "the Ray cluster"
        return ClusterError(
            f"{whose} died during the run: {reason}. It may have been stopped, or its machine has too little memory"
        )

    def _find_vital(self) -> None:
        """Note where the control process of the cluster and the node process of this machine listen."""
        context = self._ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        self._vital["its control process (GCS)"] = host.strip("[]"), int(port)
        for node in self._ray.nodes():
            if node["NodeID"] == context.get_node_id():
                self._vital["its node process (raylet)"] = node["NodeManagerAddress"], node["NodeManagerPort"]

    def _connect(self) -> None:
        if not self._connected and not self._ray.is_initialized():
            self._join()
        if not self._vital:
            with suppress(AttributeError, ValueError, self._ray.exceptions.RayError):  # a client has no node
                self._find_vital()

    def _join(self) -> None:
        quiet = {"log_to_driver": False, "logging_level": "error"}
        try:
            if self.address is None:
                self._start(quiet)
            else:
                _check_address(self.address)
                self._ray.init(address=self.address, **quiet)
        except (OSError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            where = "a private Ray cluster" if self.address is None else f"the Ray cluster {self.address!r}"
            raise UnavailableError(f"{where} cannot be reached: {error}") from error
        self._connected = True

    def _start(self, quiet: Mapping[str, object]) -> None:
        # In a separate folder, so that no other Ray on this machine finds it.
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
        """The resources of each machine of the cluster."""
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _window(self, phase: Phase) -> int:
        """The number of tasks in progress; a private cluster has only the cores that it may use."""
        if self.workers is not None and self._scratch is None:
            return self.workers
        return phase.ahead * max(1, int(sum(node.get("CPU", 0) for node in self._nodes())))

    def _actors_of(self, job: Job, phase: Phase) -> list[Any]:
        """The actors of a job. Actors of another job are dropped, because both may not fit at the same time."""
        if job not in self._actors:
            self._actors.clear()
            kind = self._ray.remote(_ModelActor).options(
                num_cpus=1,
                num_gpus=self.gpus_per_worker,
                max_restarts=-1,
                max_task_retries=phase.attempts - 1,
                scheduling_strategy="SPREAD",
            )
            count = self._actor_count()
            self._actors[job] = [kind.remote(self._cores_each(count)) for _ in range(count)]
        return self._actors[job]

    def _cores_each(self, actors: int) -> int:
        """The share of its machine's cores with which an actor reads files; the actors are spread over the machines."""
        cores_of = [int(node["CPU"]) for node in self._nodes() if node.get("CPU", 0) >= 1]
        return max(1, min(cores_of) // -(-actors // len(cores_of)))

    def _actor_count(self) -> int:
        """As many as fit on the GPUs; without GPUs one per machine, because a model uses all its cores."""
        nodes = self._nodes()
        room = [int(node.get("CPU", 0)) for node in nodes]
        if self.gpus_per_worker:
            shares = [int(node.get("GPU", 0) / self.gpus_per_worker + 1e-9) for node in nodes]
            room = [min(both) for both in zip(room, shares, strict=True)]
            count = self.workers or sum(room)
        else:
            count = self.workers or sum(map(bool, room))
        if not sum(room):
            need = f"a core and {self.gpus_per_worker:g} GPUs" if self.gpus_per_worker else "a core"
            raise UnavailableError(
                f"a worker with a model needs {need}, and no machine of the Ray cluster has that. "
                "Change gpus_per_worker (--engine ray,gpus_per_worker=SHARE), or add machines"
            )
        return min(count, sum(room))


def _short_folder() -> str:
    """The folder for temporary files, or /tmp if its path is too long for Ray's sockets."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= LONGEST_FOLDER or os.name == "nt" else "/tmp"


def _connection_fault(place: tuple[str, int]) -> str | None:
    """Why nothing listens at an address; None if something does."""
    fault = ""
    for _ in range(ATTEMPTS):
        try:
            socket.create_connection(place, timeout=CONNECT).close()
        except TimeoutError as error:  # the machine may be busy
            fault = str(error)
        except OSError as error:
            return error.strerror or str(error)
        else:
            return None
    return fault


def _check_address(address: str) -> None:
    """Raise an OSError if nothing listens at the address; Ray itself would retry for five minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():  # not `auto` and not a client address
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


class _ModelActor:
    """A separate process that keeps its step open, and reads the files of the parts that it gets next."""

    def __init__(self, cores: int) -> None:
        limit_decoders(cores)

    def work(self, session: _Session, job: Job, work: str, item: Any, *following: Any) -> Any:
        """Do the work in this process. `following` are the items that it gets next."""
        _opened(session, job).expect([item, *following])
        return _work(session, job, work, item)


def _work(session: _Session, job: Job, work: str, item: Any) -> Any:
    return getattr(_opened(session, job), work)(item)


@lru_cache(maxsize=1)
def _opened(session: _Session, job: Job) -> Step:
    """The step of this process for a session; in another session, the folder may have new content."""
    with suppress(OSError):  # without that folder, only absolute paths work
        os.chdir(session.folder)
    step = job.opened()
    step.refuse_machine()
    return step
