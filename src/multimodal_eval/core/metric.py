"""The metric protocol: fit, open, score a batch, aggregate.

A metric is also a plain callable `metric(sample) -> float | dict`, which is all that most people need. The `metric`
decorator (`core.registry`) builds one from a function (`core.function_metric`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.options import Option, Options, OptionValues, checked_values
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Estimate, Rows, Score, mean_estimate
from multimodal_eval.core.signature import Signature

Direction = Literal["higher", "lower"]
Placement = Literal["thread", "process", "model"]
Bounds = tuple[float | None, float | None]
Value = float | dict[str, Any]  # what a metric gives when it is called: a number, or several by name
Result = Value | Score | None

RESERVED_NAMES = ("row", "id", "group", "status", "composite", "composite_score")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Scorer(Protocol):
    """An opened metric: model loaded, state at hand.

    A scorer that looks at one sample after the other anyway may set `one_by_one = True`: it is then given one at a
    time, and a failure, also one that is worth another try, belongs to that sample alone.
    """

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score a sample, in the same order."""


@runtime_checkable
class LargeState(Protocol):
    """Corpus statistics whose sum may not fit into memory before it is done.

    The state of each part is cut into buckets, the same thing into the same bucket, whatever the part; then a bucket at
    a time is summed over all parts, and what no score needs is left out of it; then the buckets are put together.
    """

    def pack(self, buckets: int) -> list[bytes]:
        """The state in so many pieces."""
        ...

    @classmethod
    def merged(cls, pieces: Iterable[bytes]) -> bytes:
        """The sum of one bucket's pieces."""
        ...

    @classmethod
    def united(cls, buckets: Iterable[bytes]) -> Any:
        """The state that all buckets make."""
        ...


class Metric:
    """A metric with its four moments. Subclass it, or let the `metric` decorator do it.

    State is additive: `fit` of a whole equals the sum (`+`) of `fit` over its parts. One that grows with the corpus may
    be a `LargeState`, whose sum is made a bucket at a time.

    `options` declares the options on the class and gives their values on an instance; `configure` changes them.
    """

    name: str
    version: str = "1"
    needs: tuple[str, ...] = ()
    bounds: Bounds = (None, None)
    direction: Direction = "higher"
    placement: Placement = "thread"
    blank: float | None = None  # the value of a blank answer, where `score` shall not be asked
    summary: str = ""
    options = Options()
    state_type: Any = None

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The value for one sample; 0.0 where a needed input is missing (a run says `missing_input`)."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = self.lone_scorer.score([sample])[0]
        return 0.0 if score.value is None else score.value

    def __init_subclass__(cls) -> None:
        if not isinstance(cls.options, Options):
            raise TypeError(f"{cls.__name__}.options must be Options(name=Option(type, default), …)")

    def __getstate__(self) -> dict[str, object]:
        """For a copy, here or in another process: without what was computed and kept, such as an opened scorer."""
        kind = type(self)
        return {key: value for key, value in vars(self).items() if not _is_kept(getattr(kind, key, None))}

    @cached_property
    def lone_scorer(self) -> Scorer:
        """The metric opened for samples on their own."""
        return self.open(self.default_state())

    @property
    def declared_options(self) -> Mapping[str, Option]:
        """The options that the metric has, with their types, defaults and choices."""
        return type(self).options

    def known_options(self, options: OptionValues) -> OptionValues:
        """Those of some options that this metric has."""
        return {name: value for name, value in options.items() if name in self.declared_options}

    def configure(self, options: OptionValues) -> Self:
        """A copy of the metric with these options; the others stay as they are."""
        metric = copy(self)
        metric.options = {**self.options, **checked_values(self.declared_options, self.name, options)}
        metric.check_options()
        return metric

    def check_options(self) -> None:
        """Refuse options that do not go together, and set the attributes that depend on them: `needs`, `placement`.

        Called after options were changed, with all of them; each by itself has been checked. The class attributes are
        those of the default options.
        """

    def signature(self, state: Any = None) -> Signature:
        """Every setting that changes this metric's numbers."""
        return Signature(self.name, self.version, dict(self.options))

    def unavailable(self) -> str | None:
        """Why the metric cannot run on this machine and what to do about it, or None."""
        return None

    def settled_options(self) -> OptionValues:
        """Options whose value the environment decides, with that value: a run remembers them."""
        return {}

    def resources(self) -> tuple[str, ...]:
        """What the metric needs of the things that `mmeval fetch` brings, by the names it takes."""
        return ()

    @property
    def definition(self) -> tuple[str, str | None]:
        """The version, and a digest of the code if no version was declared: equal for the same definition."""
        return self.version, None

    @property
    def averages(self) -> bool:
        """Whether the metric's figure is the mean of its values."""
        return type(self).aggregate is Metric.aggregate

    @property
    def fits(self) -> bool:
        """Whether the metric wants to see the whole corpus before it scores."""
        return type(self).fit is not Metric.fit

    def fit(self, samples: Iterable[Sample]) -> Any:
        """Corpus statistics of some samples, or None where the metric needs none."""
        return None

    @property
    def corpus_key(self) -> tuple[Any, ...]:
        """Metrics with the same key fit the same statistics: they are gathered once for all of them."""
        return (self.name,)

    def default_state(self) -> Any:
        """The state for a sample on its own, and for a run whose `fit` gives None."""
        return None

    def check_state(self, state: Any) -> None:
        """Raise where the whole corpus is not enough to score with."""

    def save_state(self, state: Any, path: Path) -> None:
        """Write a state, the same bytes for equal states: by its own `save`, or as plain values."""
        if hasattr(state, "save"):
            state.save(path)
        else:
            path.write_bytes(msgspec.msgpack.encode(state, order="deterministic"))

    def load_state(self, path: Path) -> Any:
        """Read a state back."""
        if hasattr(self.state_type, "load"):
            return self.state_type.load(path)
        return msgspec.msgpack.decode(path.read_bytes(), type=self.state_type or Any)

    def open(self, state: Any) -> Scorer:
        """Get ready to score: once a worker."""
        raise NotImplementedError

    def aggregate(self, rows: Rows) -> Estimate:
        """The value for all scored rows (never none), with one influence value a row."""
        return mean_estimate(rows)

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        """The same for a part of a metric that gives several numbers; `rows.values` are the part's."""
        return mean_estimate(rows)


class StoredMean(Metric):
    """Stands for a metric that is not registered here and whose figure is the mean of values that a run stored."""

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name, self.bounds = name, bounds


def is_number(value: object) -> bool:
    """Whether a value can be a score: a Python or NumPy real number, but no bool."""
    if type(value) in (float, int):  # nearly always, and far quicker to see
        return True
    from numbers import Real

    return isinstance(value, Real) and not isinstance(value, bool)


def _is_kept(attribute: object) -> bool:
    return isinstance(attribute, cached_property)


def code_digest(function: Callable[..., Any]) -> str:
    """A digest of a function's source, for what has no version."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return "unknown"
    return hashlib.sha256(source.encode()).hexdigest()[:8]


def check_name(name: str) -> None:
    """A metric's name becomes columns and files: letters, digits, `_` and `-`, and none that a run uses itself."""
    if not _NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise ConfigError(
            f"{name!r} cannot name a metric: use letters, digits, '_' and '-', and not {', '.join(RESERVED_NAMES)}"
        )
