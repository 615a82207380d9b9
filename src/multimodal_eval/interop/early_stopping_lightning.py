"""Early stopping in Lightning: a callback that stops the fit and restores the best weights."""

from __future__ import annotations

from functools import cache
from typing import Any, TypedDict

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.optional import require
from multimodal_eval.interop.early_stopping import MONITORED, EarlyStopping, Mode, StoppingState


class CallbackState(TypedDict):
    """The callback's part of a checkpoint: the counts, and the best weights if there are any."""

    stopping: StoppingState
    best_state: Any


def lightning_early_stopping(
    monitor: str = MONITORED, *, patience: int = 3, min_delta: float = 0.0, mode: Mode = "max"
) -> Any:
    """A Lightning `Callback`: after each validation it reads the value that the module logged as `monitor`.

    It keeps a copy of the best weights in memory and loads it at the end of the fit, after all checkpoints are written.
    A checkpoint holds the counts and those weights, so that a resumed fit restores the best of both parts. Sharded
    models (FSDP, DeepSpeed) do not have all weights in one process: use Lightning's ModelCheckpoint for them.
    """
    return _callback_class()(monitor, EarlyStopping(patience, min_delta, mode))


@cache
def _callback_class() -> Any:
    """The class, created on first use because lightning is slow to import and may not be installed."""
    lightning: Any = require("lightning.pytorch", extra="lightning", purpose="early stopping in Lightning")

    class LightningEarlyStopping(lightning.Callback):  # type: ignore[misc]
        """Passes the value of every validation during the fit to `EarlyStopping`."""

        def __init__(self, monitor: str, stopping: EarlyStopping) -> None:
            self.monitor, self.stopping = monitor, stopping

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.state.fn != "fit" or trainer.sanity_checking:  # `validate`, or the sanity check
                return
            values = trainer.callback_metrics
            if self.monitor not in values:
                known = ", ".join(sorted(values)) or "none"
                raise ConfigError(f"the module does not log {self.monitor!r} in its validation. Known: {known}")
            if self.stopping.update(float(values[self.monitor]), trainer.global_step):
                self.stopping.remember(pl_module.state_dict())
            # If one process stopped alone, the others would wait for it forever.
            if trainer.strategy.reduce_boolean_decision(self.stopping.should_stop, all=False):
                trainer.should_stop = True

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            if self.stopping.best_value is not None:
                pl_module.load_state_dict(self.stopping.restore())

        def state_dict(self) -> CallbackState:
            best = self.stopping.restore() if self.stopping.best_value is not None else None
            return {"stopping": self.stopping.state_dict(), "best_state": best}

        def load_state_dict(self, state_dict: CallbackState) -> None:
            self.stopping.load_state_dict(state_dict["stopping"], state_dict["best_state"])

    return LightningEarlyStopping
