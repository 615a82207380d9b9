"""Metrics, tasks and composites.

Metrics are in `evaluation.metrics`. Their published import paths omit that level: `multimodal_eval.evaluation.cider_d`
is the module with the metric `cider_d`, and so is `multimodal_eval.evaluation.metrics.cider_d`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from multimodal_eval.core.metric_table import BUILT_IN, module_of

_METRICS = Path(__file__).with_name("metrics")


class _PublishedPaths:
    """Finds the module of a metric as `evaluation.NAME` and `evaluation.metrics.NAME`; it is never loaded twice."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package not in (__name__, BUILT_IN):
            return None
        module = module_of(name)
        is_metric = module != fullname and (_METRICS / f"{module.rpartition('.')[2]}.py").is_file()
        return ModuleSpec(fullname, cast("Any", self)) if is_metric else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(module_of(spec.name.rpartition(".")[2]))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing except restore the spec: the module was already executed under its own name."""
        if module.__spec__ is not None and isinstance(module.__spec__.loader, _PublishedPaths):
            module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_PublishedPaths())
