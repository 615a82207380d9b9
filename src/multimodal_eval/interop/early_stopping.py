"""Early stopping in any training loop: which value to monitor, when to stop, and how to restore the best state.

The value is the multi-annotator F1 if there are annotator labels, otherwise the strict F1 (`monitored`).
`EarlyStopping` does not depend on a framework: it takes one value per evaluation, and keeps a copy of any state.
The callbacks for the `Trainer` of transformers and for Lightning are below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from math import isfinite, nan
from typing import Any, Literal, TypedDict
from warnings import warn

from multimodal_eval.contests.clarity.labels import normalize_label
from multimodal_eval.contests.clarity.scores import compute_evasion_f1_multiannotator, compute_evasion_f1_strict
from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.metric import is_number
from multimodal_eval.core.optional import require

Mode = Literal["max", "min"]

MONITORED = "monitored_f1"  # one name for both values, because a trainer needs the name before it starts
MULTI_ANNOTATOR = "evasion_f1_multiannotator"
STRICT = "evasion_f1_strict"

_COUNTERS = ("best_value", "best_step", "misses", "non_finite", "_reference")


class StoppingState(TypedDict):
    """The result of `EarlyStopping.state_dict`."""

    mode: Mode
    best_value: float | None
    best_step: int | None
    misses: int
    non_finite: int
    reference: float | None


class EarlyStopping:
    """Stops after `patience` evaluations in a row without a real improvement.

    The best value and real improvements are tracked separately. Any value above the best so far becomes the best, and
    its state is the one to remember. Only a value more than `min_delta` above the last real improvement (below it with
    `mode="min"`) resets the count of misses. Many small steps therefore count once they add up, and the restored state
    is always the best one seen.

    A value that is NaN or infinite is a miss and never the best. It raises a warning and is counted in `non_finite`.
    """

    def __init__(self, patience: int = 3, min_delta: float = 0.0, mode: Mode = "max") -> None:
        if type(patience) is not int or patience < 1:
            raise ConfigError(f"`patience` must be a whole number of evaluations, 1 or more. Got {shorten(patience)}.")
        if not is_number(min_delta) or not isfinite(min_delta) or min_delta < 0:
            raise ConfigError(f"`min_delta` must be a number, 0 or more. Got {shorten(min_delta)}.")
        if mode not in ("max", "min"):
            raise ConfigError(f"`mode` must be 'max' or 'min'. Got {shorten(mode)}.")
        self.patience, self.min_delta, self.mode = patience, float(min_delta), mode
        self.best_value: float | None = None
        self.best_step: int | None = None
        self.misses = 0
        self.non_finite = 0
        self._reference: float | None = None  # the last value that reset the misses
        self._improved = False
        self._kept: tuple[Any] | None = None  # in a tuple, because None may be a state

    @property
    def should_stop(self) -> bool:
        """Whether there have been `patience` misses in a row."""
        return self.misses >= self.patience

    def update(self, value: float, step: int) -> bool:
        """Take the value of an evaluation; True if it is the best so far, so that its state should be remembered."""
        if not is_number(value):
            raise ConfigError(f"early stopping needs a number at step {step}. Got {shorten(value)}.")
        self._improved = False
        if not isfinite(value):
            self.misses += 1
            self.non_finite += 1
            warn(
                f"the monitored value at step {step} is {value} and counts as no improvement "
                f"({self.misses} of {self.patience}). Has the training diverged?",
                stacklevel=2,
            )
            return False
        value = float(value)
        if self._reference is None or self._gain(value, self._reference) > self.min_delta:
            self._reference, self.misses = value, 0
        else:
            self.misses += 1
        if self.best_value is None or self._gain(value, self.best_value) > 0:
            self.best_value, self.best_step, self._improved = value, step, True
            self._kept = None  # never restore the state of an older best value
        return self._improved

    def remember(self, state: Any) -> None:
        """Keep a deep copy of the state with the best value, because most frameworks update their state in place."""
        if not self._improved:
            raise ConfigError(
                "only the state of a new best value can be remembered, and the last update was not a new best. "
                "Call `remember` only if `update` returned True."
            )
        self._kept = (deepcopy(state),)

    def restore(self) -> Any:
        """A copy of the state remembered at `best_step`."""
        if self._kept is None:
            reason = "no value was finite"
            if self.best_value is not None:
                reason = f"the best value is that of step {self.best_step}, and its state was not remembered"
            raise ConfigError(f"there is no state to restore: {reason}.")
        return deepcopy(self._kept[0])

    def state_dict(self) -> StoppingState:
        """The counters for `load_state_dict`, valid JSON. The remembered state is not included: save it separately."""
        return {
            "mode": self.mode,
            "best_value": self.best_value,
            "best_step": self.best_step,
            "misses": self.misses,
            "non_finite": self.non_finite,
            "reference": self._reference,
        }

    def load_state_dict(self, saved: Mapping[str, object], best_state: Any = None) -> None:
        """Continue from a result of `state_dict`; `best_state` is what `restore` returned then."""
        missing = [name for name in StoppingState.__annotations__ if name not in saved]
        if missing:
            raise ConfigError(f"this is not the state of an EarlyStopping: {', '.join(missing)} missing.")
        if saved["mode"] != self.mode:
            raise ConfigError(f"the saved state has mode={saved['mode']!r}, but this object has {self.mode!r}.")
        for name in _COUNTERS:
            setattr(self, name, saved[name.lstrip("_")])
        self._improved = False
        self._kept = None if best_state is None else (deepcopy(best_state),)

    def _gain(self, value: float, other: float) -> float:
        return value - other if self.mode == "max" else other - value


def monitored(
    predictions: Sequence[str | None],
    gold_labels: Sequence[str | None] | None = None,
    annotator_labels: Sequence[Sequence[str | None]] | None = None,
) -> tuple[str, float]:
    """The name and value to monitor: multi-annotator macro F1 if there is any annotator label, else strict macro F1.

    If all annotator labels are outside the taxonomy, they are refused: a fallback to the strict F1 would go unnoticed.
    """
    rows = [row or () for row in annotator_labels or ()]
    if rows and len(rows) != len(predictions):
        message = f"there are {len(predictions)} predictions but {len(rows)} lists of annotators' labels"
        raise InputError([Problem(code="LENGTH", message=message)])
    if any(normalize_label(label) for row in rows for label in row):
        return MULTI_ANNOTATOR, compute_evasion_f1_multiannotator(predictions, rows)["macro_f1"]
    if gold_labels is None:
        got = "no labels from the annotators" if rows else "no annotators"
        raise ConfigError(f"early stopping needs gold labels or annotators. Got no gold labels and {got}.")
    return STRICT, compute_evasion_f1_strict(predictions, gold_labels)["macro_f1"]


# Early stopping in the `Trainer` of transformers: its `compute_metrics` and a callback.
#
# The Trainer itself keeps the checkpoint of the best value and loads it at the end (`load_best_model_at_end`). Here
# are the value, and a callback that handles NaN and improvements below `min_delta` like `EarlyStopping`.


_TRAINER = "trainer"


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
    return _trainer_callback_class()(patience, min_delta)


@cache
def _trainer_callback_class() -> Any:
    """The class, created on first use because transformers is slow to import and may not be installed."""
    library: Any = require("transformers.trainer_callback", extra=_TRAINER, purpose="early stopping in a Trainer")

    class TrainerEarlyStopping(library.TrainerCallback, library.ExportableState):  # type: ignore[misc]
        """Passes the value of every evaluation during training to `EarlyStopping`."""

        def __init__(self, patience: int, min_delta: float) -> None:
            self.stopping = EarlyStopping(patience, min_delta)
            self.saved: StoppingState | None = None  # set by the Trainer from a checkpoint
            self._training = False

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            _check_trainer(args)
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


def _check_trainer(args: Any) -> None:
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


# Early stopping in Lightning: a callback that stops the fit and restores the best weights.


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
    return _lightning_callback_class()(monitor, EarlyStopping(patience, min_delta, mode))


@cache
def _lightning_callback_class() -> Any:
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
