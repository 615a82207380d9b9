"""Which executor works on a run. No number depends on it: a run begun with one may be continued with another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.run.engine.executor import Executor
from multimodal_eval.run.engine.local import Local
from multimodal_eval.run.plan import Plan

EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class Engine:
    """This machine, or a Ray cluster: one that `address` names, else one of our own on this machine."""

    name: EngineName = "local"
    workers: int | None = None
    address: str | None = None
    gpus_per_worker: float = 0

    def __post_init__(self) -> None:
        if self.name not in ("local", "ray"):
            raise ConfigError(f"`engine` must be 'local' or 'ray'. Got {self.name!r} instead.")
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"`workers` must be 1 or more. Got {self.workers} instead.")
        if self.gpus_per_worker < 0 or (self.gpus_per_worker > 1 and self.gpus_per_worker % 1):
            raise ConfigError(
                f"`gpus_per_worker` must be a share from 0 to 1, or a whole number. Got {self.gpus_per_worker} instead."
            )
        if self.name == "local" and (self.address is not None or self.gpus_per_worker):
            raise ConfigError("`address` and `gpus_per_worker` are of a Ray cluster: they go with engine 'ray'")

    @contextmanager
    def executor(self, plan: Plan) -> Iterator[Executor]:
        """The executor for a plan, for as long as it is needed."""
        if self.name == "local":
            yield Local(self.workers)
            return
        from multimodal_eval.run.engine.ray import RayExecutor

        if plan.homebound:
            raise ConfigError(
                f"the engine 'ray' works in other processes, which do not know {', '.join(plan.homebound)}: defined in "
                "this process alone. Put the definition into a plug-in file (`plugins`, --plugin)"
            )
        with RayExecutor(self.workers, self.address, self.gpus_per_worker) as executor:
            yield executor
