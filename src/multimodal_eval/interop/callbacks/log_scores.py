"""Log scores with their intervals from any training loop, to every tracker that is active.

scores = Accumulator("cider_d", "bleu")
...
log_scores(scores.compute(), step=step, prefix="val_")  # val_cider_d, val_cider_d_low, val_cider_d_high, …
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from warnings import warn

from multimodal_eval.core.errors import ConfigError, UnknownNameError, shorten
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.trackers.content import flat_values, run_values

__all__ = ["active_trackers", "log_scores"]

Log = Callable[[dict[str, float], int | None], object]


def log_scores(
    scores: Mapping[str, float] | Run, *, step: int | None = None, prefix: str = "", to: Any = None
) -> tuple[str, ...]:
    """Log scores with `_low`, `_high`, `_stderr` and `_coverage`; returns the names of the trackers that got them.

    `scores` are those of `Accumulator.compute`, `compute` or a run. Without `to`, all active trackers get them: an
    MLflow, Weights & Biases or Trackio run that this process has started. `to` is the name of one, a list of names, a
    TensorBoard writer, a logger of Lightning, or a function of the values and the step. A warning says that no tracker
    is active. A score that is NaN, because nothing was scored, is not logged, but its coverage is.
    """
    if isinstance(scores, Run):
        values = {f"{prefix}{name}": value for name, value in run_values(scores).items()}
    elif isinstance(scores, Mapping):
        values = flat_values(scores, prefix)
    else:
        raise ConfigError(f"scores must be a mapping of names to scores, or a run. Got {shorten(scores)}.")
    targets = active_trackers() if to is None else _targets(to)
    if not targets:
        warn(
            "no tracker is active, and the scores are not logged. Start a run of one first, or pass `to`", stacklevel=2
        )
    for log in targets.values():
        log(dict(values), step)
    return tuple(targets)


def active_trackers() -> dict[str, Log]:
    """The functions that log to the runs that are active, by the names of their trackers."""
    # A tracker that is not imported has no active run, and importing one takes seconds.
    loaded = {name: sys.modules.get(name) for name in _ACTIVE}
    logs = {name: _ACTIVE[name](module) for name, module in loaded.items() if module is not None}
    return {name: log for name, log in logs.items() if log is not None}


def _mlflow(mlflow: Any) -> Log | None:
    active = mlflow.active_run()
    return None if active is None else lambda values, step: mlflow.log_metrics(values, step=step)


def _trackio(trackio: Any) -> Log | None:
    active = trackio.context_vars.current_run.get()
    return None if active is None else lambda values, step: active.log(values, step=step)


def _wandb(wandb: Any) -> Log | None:
    active = wandb.run
    return None if active is None else lambda values, step: active.log(values, step=step)


_ACTIVE: dict[str, Callable[[Any], Log | None]] = {"mlflow": _mlflow, "trackio": _trackio, "wandb": _wandb}


def _targets(to: Any) -> dict[str, Log]:
    if isinstance(to, str) or (isinstance(to, Sequence) and all(isinstance(name, str) for name in to)):
        return {name: _named(name) for name in ([to] if isinstance(to, str) else to)}
    if hasattr(to, "add_scalar"):

        def write(values: dict[str, float], step: int | None) -> None:
            for name, value in values.items():
                to.add_scalar(name, value, step)

        return {type(to).__name__: write}
    if hasattr(to, "log_metrics"):
        return {type(to).__name__: lambda values, step: to.log_metrics(values, step=step)}
    if callable(to):
        return {getattr(to, "__name__", type(to).__name__): to}
    raise ConfigError(
        f"`to` must be a tracker's name, a TensorBoard writer, a logger of Lightning or a function. Got {shorten(to)}."
    )


def _named(name: str) -> Log:
    if name not in _ACTIVE:
        raise UnknownNameError("tracker", name, _ACTIVE)
    active = active_trackers()
    if name not in active:
        raise ConfigError(f"{name} has no active run in this process. Start one before the scores are logged.")
    return active[name]
