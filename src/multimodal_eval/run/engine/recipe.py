"""What another process or machine needs to work on the parts of a run: where it lies, and what it was told to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import load_config
from multimodal_eval.run.plan import make_plan

if TYPE_CHECKING:
    from multimodal_eval.run.part import Worker


@dataclass(frozen=True)
class Recipe:
    """A worker in a few words; a process opens its metrics and their states once."""

    folder: str  # its address
    config: bytes
    earlier: str | None
    reusable: frozenset[str]

    @classmethod
    def of(cls, worker: Worker) -> Recipe:
        """The recipe of a worker of this process."""
        earlier = None if worker.earlier is None else worker.earlier.address
        config = msgspec.json.encode(msgspec.to_builtins(worker.plan.spelled_out))
        return cls(worker.folder.address, config, earlier, worker.reusable)

    def worker(self) -> Worker:
        """The worker, the same one for the same recipe."""
        return _worker(self)

    def opened(self) -> Worker:
        """A new worker."""
        from multimodal_eval.run.part import Worker

        plan = make_plan(load_config(msgspec.json.decode(self.config)), stored=self.reusable)
        earlier = None if self.earlier is None else RunFolder(self.earlier)
        return Worker(plan, RunFolder(self.folder), earlier, self.reusable)


@lru_cache(maxsize=1)
def _worker(recipe: Recipe) -> Worker:
    return recipe.opened()
