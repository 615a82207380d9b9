"""Metrics, tasks and composites.

Metrics are in `evaluation.metrics`. Their published import paths omit that level: `multimodal_eval.evaluation.cider` is
the module `multimodal_eval.evaluation.metrics.cider`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_METRICS = Path(__file__).with_name("metrics")


class _PublishedPaths(MetaPathFinder, Loader):
    """Finds `evaluation.NAME` in `evaluation.metrics.NAME`: one module under two names, never loaded twice."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        is_metric = package == __name__ and (_METRICS / f"{name}.py").is_file()
        return ModuleSpec(fullname, self) if is_metric else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"{__name__}.metrics.{spec.name.rpartition('.')[2]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing except restore the spec: the module was already executed under its own name."""
        if module.__spec__ is not None and module.__spec__.loader is self:
            module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_PublishedPaths())
