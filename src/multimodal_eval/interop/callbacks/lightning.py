"""Scores with intervals in Lightning: a callback that collects validation answers and logs their scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.optional import require
from multimodal_eval.interop.accumulator import Accumulator
from multimodal_eval.interop.trackers.content import flat_values

__all__ = ["lightning_scores"]


def lightning_scores(*metrics: str, prefix: str = "val_", **settings: Any) -> Any:
    """A Lightning `Callback`: it scores what `validation_step` returns and logs the scores after each validation.

    `validation_step` returns a dict with `predictions`, `references` and, if wanted, lists of further sample fields:
    `id` (needed if several processes validate, because their samplers repeat rows), `image`, …. All loggers of the
    Trainer get every score with `_low`, `_high`, `_stderr` and `_coverage`, and other callbacks may monitor them:
    `val_cider_d`. `settings` are those of `Accumulator`.
    """
    return _callback(Accumulator(*metrics, **settings), prefix)


def _callback(scores: Accumulator, prefix: str) -> Any:
    return _callback_class()(scores, prefix)


@cache
def _callback_class() -> Any:
    """The class, created on first use because lightning is slow to import and may not be installed."""
    lightning: Any = require("lightning.pytorch", extra="lightning", purpose="scores in Lightning")

    class LightningScores(lightning.Callback):  # type: ignore[misc]
        """Collects the answers of a validation, of all processes, and logs their scores."""

        def __init__(self, scores: Accumulator, prefix: str) -> None:
            self.scores, self.prefix = scores, prefix

        def __reduce__(self) -> tuple[Any, ...]:  # strategies that spawn processes pickle their callbacks
            return _callback, (self.scores, self.prefix)

        def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            self.scores.reset()

        def on_validation_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
        ) -> None:
            if not isinstance(outputs, Mapping) or "predictions" not in outputs:
                raise ConfigError(
                    f"`validation_step` must return a dict with `predictions` and `references`. Got {shorten(outputs)}."
                )
            fields = {name: values for name, values in outputs.items() if name != "loss"}
            self.scores.update(fields.pop("predictions"), fields.pop("references", None), **fields)

        def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.sanity_checking:  # only some of the rows
                return
            scores = _of_all_processes(self.scores, trainer.world_size)
            if len(scores):
                self.log_dict(flat_values(scores.compute(), self.prefix))

    return LightningScores


def _of_all_processes(scores: Accumulator, processes: int) -> Accumulator:
    if processes == 1:
        return scores
    import torch

    gathered: list[Any] = [None] * processes
    torch.distributed.all_gather_object(gathered, scores)
    return Accumulator.merged(gathered)
