"""The initial content of run.json."""

from __future__ import annotations

import platform
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from multimodal_eval import __version__
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.records import RUN_FORMAT, RunInfo, Source
from multimodal_eval.core.registry import plugin_digests
from multimodal_eval.models.runtime import PACKAGES as EXTRA_PACKAGES
from multimodal_eval.run.plan import Plan

__all__ = ["describe", "described_metrics", "now"]

# Packages whose version may change a score or the stored files.
PACKAGES = ("numpy", "pyarrow", "msgspec", *EXTRA_PACKAGES, "pillow")


def describe(plan: Plan, source: Source | None) -> RunInfo:
    """The initial content of run.json. `source` describes how to open the input again."""
    return RunInfo(
        format=RUN_FORMAT,
        state="reading",
        created=now(),
        versions={
            "multimodal_eval": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **_installed_versions(),
        },
        task=plan.task.name if plan.task else None,
        unavailable=plan.unavailable,
        seed=plan.config.seed,
        config=plan.config,
        source=source,
        plugins=plugin_digests(plan.config.plugins),
        **described_metrics(plan),
    )


def _installed_versions() -> dict[str, str]:
    """Those of an extra are left out if they are not installed, or under another name, as onnxruntime-gpu."""
    versions = {}
    for package in PACKAGES:
        if package in EXTRA_PACKAGES and find_spec(package) is None:
            continue
        with suppress(ModuleNotFoundError):
            versions[package] = package_version(package)
    return versions


def described_metrics(plan: Plan) -> dict[str, Any]:
    """The entries of run.json about the metrics."""
    return {
        "metrics": [metric.name for metric in plan.metrics],
        "headline": plan.headline,
        "bounds": plan.bounds,
        "means": [metric.name for metric in plan.metrics if metric.averages],
    }


def now() -> str:
    """The current time, as in run.json."""
    return datetime.now(UTC).isoformat(timespec="seconds")
