"""Tasks of lm-eval and lmms-eval, run by the installed package in a process of its own."""

from __future__ import annotations

from pathlib import Path

__all__ = ["HARNESSES", "harness_of"]

HARNESSES = {
    "lm-eval": "MMEVAL_LM_EVAL_PYTHON",
    "lmms-eval": "MMEVAL_LMMS_EVAL_PYTHON",
}  # -> the variable of its Python


def harness_of(data: object) -> tuple[str, str] | None:
    """The harness and the task that DATA of a command names, as `lm-eval:gsm8k`; None for any other data."""
    package, colon, task = str(data).partition(":") if isinstance(data, str | Path) else ("", "", "")
    return (package, task) if colon and package in HARNESSES else None
