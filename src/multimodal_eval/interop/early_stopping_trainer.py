"""Early stopping in the `Trainer` of transformers: its `compute_metrics` and a callback.

The Trainer itself keeps the checkpoint of the best value and loads it at the end (`load_best_model_at_end`). This
module adds the value, and a callback that handles NaN and improvements below `min_delta` like `EarlyStopping`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import nan
from typing import Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.optional import require
from multimodal_eval.interop.early_stopping import MONITORED, EarlyStopping, Mode, StoppingState, monitored

EXTRA = "trainer"


def trainer_compute_metrics(
    labels: Sequence[str],
    gold_labels: Sequence[str | None] | None = None,
    annotator_labels: Sequence[Sequence[str | None]] | None = None,
) -> Callable[[Any], dict[str, float]]:
    """The Trainer's `compute_metrics`, for `metric_for_best_model="monitored_f1"`.

    `labels` names the model's classes in the order of their ids. `gold_labels` and `annotator_labels` have one entry
    per row of the evaluation set, in its order. Without `gold_labels`, the labels of the evaluation set are used (ids
    below 0: no label). The result has the value twice, as "monitored_f1" and under its specific name.

    If any logit is NaN, the value is NaN, which is never the best.
    """

    def compute_metrics(evaluated: Any) -> dict[str, float]:
        import numpy as np

        outputs = evaluated.predictions[0] if isinstance(evaluated.predictions, tuple) else evaluated.predictions
        outputs = np.asarray(outputs)
        if np.isnan(outputs).any():
            return {MONITORED: nan}
        class_ids = outputs if outputs.ndim == 1 else outputs.argmax(axis=-1)
        predictions = [labels[index] for index in class_ids.tolist()]
        golds = gold_labels
        if golds is None and evaluated.label_ids is not None:
            golds = [labels[index] if index >= 0 else "" for index in np.asarray(evaluated.label_ids).tolist()]
        name, value = monitored(predictions, golds, annotator_labels)
        return {MONITORED: value, name: value}

    return compute_metrics


def trainer_early_stopping(patience: int = 3, min_delta: float = 0.0) -> Any:
    """A `TrainerCallback` that applies `EarlyStopping` to the Trainer's `metric_for_best_model`.

    Its counts are saved in every checkpoint; `restore_callback_states_from_checkpoint=True` continues with them.
    """
    return _callback_class()(patience, min_delta)


@cache
def _callback_class() -> Any:
    """The class, created on first use because transformers is slow to import and may not be installed."""
    library: Any = require("transformers.trainer_callback", extra=EXTRA, purpose="early stopping in a Trainer")

    class TrainerEarlyStopping(library.TrainerCallback, library.ExportableState):  # type: ignore[misc]
        """Passes the value of every evaluation during training to `EarlyStopping`."""

        def __init__(self, patience: int, min_delta: float) -> None:
            self.stopping = EarlyStopping(patience, min_delta)
            self.saved: StoppingState | None = None  # set by the Trainer from a checkpoint
            self._training = False

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            _check(args)
            mode: Mode = "max" if args.greater_is_better else "min"
            self.stopping = EarlyStopping(self.stopping.patience, self.stopping.min_delta, mode)
            if self.saved is not None:
                self.stopping.load_state_dict(self.saved)
                self.saved = None  # a second `train` starts from scratch
            self._training = True

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any) -> None:
            if not self._training:  # an evaluation started by the user
                return
            key = "eval_" + args.metric_for_best_model.removeprefix("eval_")
            if key not in metrics:
                raise ConfigError(f"the evaluation has no {key!r}. Known: {', '.join(sorted(metrics))}")
            self.stopping.update(metrics[key], state.global_step)
            if self.stopping.should_stop:
                control.should_training_stop = True

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._training = False

        def state(self) -> dict[str, dict[str, object]]:
            settings: dict[str, object] = {
                "patience": self.stopping.patience,
                "min_delta": self.stopping.min_delta,
            }
            return {"args": settings, "attributes": {"saved": self.stopping.state_dict()}}

    return TrainerEarlyStopping


def _check(args: Any) -> None:
    if not args.load_best_model_at_end or args.metric_for_best_model is None:
        raise ConfigError(
            "early stopping in a Trainer needs load_best_model_at_end=True (to restore the best weights) "
            f"and metric_for_best_model={MONITORED!r}. Got load_best_model_at_end={args.load_best_model_at_end} "
            f"and metric_for_best_model={args.metric_for_best_model!r}."
        )
    # `group_by_length` was a separate setting before transformers 5.
    if getattr(args, "train_sampling_strategy", None) == "group_by_length" or getattr(args, "group_by_length", False):
        raise ConfigError(
            "group_by_length makes the Trainer evaluate the rows in another order, and predictions would be compared "
            "with the annotators of other rows. Choose another sampling strategy."
        )
