"""Early stopping in Lightning: a callback that stops the fit and gives the best weights back after it."""

from __future__ import annotations

from functools import cache
from typing import Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.optional import require
from multimodal_eval.interop.early_stopping import MONITORED, EarlyStopping, Mode


def lightning_early_stopping(
    monitor: str = MONITORED, *, patience: int = 3, min_delta: float = 0.0, mode: Mode = "max"
) -> Any:
    """A Lightning `Callback`: after each validation it reads the value that the module logged as `monitor`.

    It keeps a copy of the best weights in memory and loads it when the fit is over, after all checkpoints were written.
    A checkpoint holds the counts and those weights, so that a resumed fit gives back the best of both parts. Sharded
    models (FSDP, DeepSpeed) have no whole weights in one process: use Lightning's ModelCheckpoint with those.
    """
    return _callback_class()(monitor, EarlyStopping(patience, min_delta, mode))


@cache
def _callback_class() -> Any:
    """The class, made where it is first asked for, because lightning is slow to import and may be missing."""
    lightning: Any = require("lightning.pytorch", extra="lightning", purpose="early stopping in Lightning")

    class LightningEarlyStopping(lightning.Callback):  # type: ignore[misc]
        """Tells `EarlyStopping` the value of every validation during the fit."""

        def __init__(self, monitor: str, stopping: EarlyStopping) -> None:
            self.monitor, self.stopping = monitor, stopping

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.state.fn != "fit" or trainer.sanity_checking:  # `validate`, or the check before the first step
                return
            values = trainer.callback_metrics
            if self.monitor not in values:
                known = ", ".join(sorted(values)) or "none"
                raise ConfigError(f"the module logs no {self.monitor!r} in its validation. Known: {known}")
            if self.stopping.update(float(values[self.monitor]), trainer.global_step):
                self.stopping.remember(pl_module.state_dict())
            # One process that stops alone would leave the others waiting for it.
            if trainer.strategy.reduce_boolean_decision(self.stopping.should_stop, all=False):
                trainer.should_stop = True

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            if self.stopping.best_value is not None:
                pl_module.load_state_dict(self.stopping.restore())

        def state_dict(self) -> dict[str, object]:
            best = self.stopping.restore() if self.stopping.best_value is not None else None
            return {"stopping": self.stopping.state_dict(), "best_state": best}

        def load_state_dict(self, state_dict: Any) -> None:
            self.stopping.load_state_dict(state_dict["stopping"], state_dict["best_state"])

    return LightningEarlyStopping
