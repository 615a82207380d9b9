"""Tasks of lm-eval and lmms-eval, run by the installed package in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.records import RECORDED

__all__ = ["HARNESSES", "computed_scores", "harness_of"]

HARNESSES = {
    "lm-eval": "MMEVAL_LM_EVAL_PYTHON",
    "lmms-eval": "MMEVAL_LMMS_EVAL_PYTHON",
}  # -> the variable of its Python


def harness_of(data: object) -> tuple[str, str] | None:
    """The harness and the task that DATA of a command names, as `lm-eval:gsm8k`; None for any other data."""
    package, colon, task = str(data).partition(":") if isinstance(data, str | Path) else ("", "", "")
    return (package, task) if colon and package in HARNESSES else None


def computed_scores(config: RunConfig) -> dict[str, Mapping[str, Any]]:
    """The metrics of a run that an installed harness computes, with their options."""
    options = {name: config.options.get(name, {}) for name, metric in config.variants.items() if metric == RECORDED}
    return {name: values for name, values in options.items() if values.get("task") is not None}
