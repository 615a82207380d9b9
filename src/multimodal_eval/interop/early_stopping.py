"""Early stopping in any training loop: which value to watch, when to stop, and the best state back.

The value is the multi-annotator F1 where annotators answered, the strict F1 elsewhere (`monitored`). `EarlyStopping`
knows no framework: it is told one value an evaluation, and keeps a copy of whatever the loop calls its state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any, Literal
from warnings import warn

from multimodal_eval.contests.clarity.labels import normalize_label
from multimodal_eval.contests.clarity.scores import compute_evasion_f1_multiannotator, compute_evasion_f1_strict
from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.metric import is_number

Mode = Literal["max", "min"]

MONITORED = "monitored_f1"  # one name for either value: a trainer must be told the name before it starts
MULTI_ANNOTATOR = "evasion_f1_multiannotator"
STRICT = "evasion_f1_strict"

_COUNTERS = ("best_value", "best_step", "misses", "non_finite", "_reference")


class EarlyStopping:
    """Stops when `patience` evaluations in a row brought no real improvement.

    Two questions are kept apart. Is this the best value so far? Any value above the best is, and its state is the one
    to remember. Was it worth waiting for? Only a value more than `min_delta` above the last one that was (below it
    with `mode="min"`) resets the count of misses, so that many tiny steps count once they add up, and the state that
    comes back is still the best one seen.

    A value that is NaN or infinite is a miss and never the best: it warns and is counted in `non_finite`.
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
        """Whether the patience is used up."""
        return self.misses >= self.patience

    def update(self, value: float, step: int) -> bool:
        """Takes the value of an evaluation; True where it is the best so far, so that its state is worth keeping."""
        if not is_number(value):
            raise ConfigError(f"early stopping needs a number at step {step}. Got {shorten(value)}.")
        self._improved = False
        if not isfinite(value):
            self.misses += 1
            self.non_finite += 1
            warn(
                f"the monitored value at step {step} is {value}, counted as no improvement "
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
            self._kept = None  # the state of an older best must not pass for this one's
        return self._improved

    def remember(self, state: Any) -> None:
        """Keeps a deep copy of the state that reached the best value: most frameworks go on writing to theirs."""
        if not self._improved:
            raise ConfigError(
                "only the state of a new best value is worth remembering, and the last update was none: "
                "call `remember` where `update` returned True."
            )
        self._kept = (deepcopy(state),)

    def restore(self) -> Any:
        """A copy of the state remembered at `best_step`."""
        if self._kept is None:
            found = (
                "no value was finite" if self.best_value is None else f"the best value is that of step {self.best_step}"
            )
            raise ConfigError(f"there is no state to restore: {found}, and no state of it was remembered.")
        return deepcopy(self._kept[0])

    def state_dict(self) -> dict[str, object]:
        """What a later `load_state_dict` needs, fit for JSON. The remembered state is not in it: save that beside."""
        return {"mode": self.mode, **{name.lstrip("_"): getattr(self, name) for name in _COUNTERS}}

    def load_state_dict(self, saved: Mapping[str, object], best_state: Any = None) -> None:
        """Goes on where `state_dict` was called; `best_state` is what `restore` gave then."""
        missing = [name for name in ("mode", *(n.lstrip("_") for n in _COUNTERS)) if name not in saved]
        if missing:
            raise ConfigError(f"this is no state of an EarlyStopping: {', '.join(missing)} missing.")
        if saved["mode"] != self.mode:
            raise ConfigError(
                f"the saved values are those of mode={saved['mode']!r}, and this object's is {self.mode!r}."
            )
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
    """The name and value to stop by: multi-annotator macro F1 where any annotator answered, else strict macro F1.

    Annotators whose every answer is outside the taxonomy are refused, not passed over: the value would be another
    one than the data promise.
    """
    rows = [row or () for row in annotator_labels or ()]
    if rows and len(rows) != len(predictions):
        message = f"{len(predictions)} predictions stand beside the annotators of {len(rows)} examples"
        raise InputError([Problem(code="LENGTH", message=message)])
    if any(normalize_label(label) for row in rows for label in row):
        return MULTI_ANNOTATOR, compute_evasion_f1_multiannotator(predictions, rows)["macro_f1"]
    if gold_labels is None:
        got = "annotators who answered nowhere" if rows else "no annotators"
        raise ConfigError(f"early stopping needs gold labels or annotators. Got no gold labels and {got}.")
    return STRICT, compute_evasion_f1_strict(predictions, gold_labels)["macro_f1"]
