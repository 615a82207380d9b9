"""Early stopping in any training loop: which value to monitor, when to stop, and how to restore the best state.

The value is the multi-annotator F1 if there are annotator labels, otherwise the strict F1 (`monitored`).
`EarlyStopping` does not depend on a framework: it takes one value per evaluation, and keeps a copy of any state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any, Literal, TypedDict
from warnings import warn

from multimodal_eval.contests.clarity.labels import normalize_label
from multimodal_eval.contests.clarity.scores import compute_evasion_f1_multiannotator, compute_evasion_f1_strict
from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.metric import is_number

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
