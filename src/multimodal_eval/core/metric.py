"""The metric protocol: fit, open, score a batch, aggregate.

A metric is also a plain callable `metric(sample) -> float | dict`, which is all that most people need. The `metric`
decorator (`core.registry`) builds one from a function (`core.function_metric`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from multimodal_eval.core.corpus import Corpus, default_state
from multimodal_eval.core.corpus import LargeState as LargeState  # its documented path
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.options import Option, Options, OptionValues, checked_values, signed_values
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Estimate, Rows, Score, mean_estimate
from multimodal_eval.core.signature import Signature
from multimodal_eval.core.system_files import DEVICE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.core.batch import Batch

Direction = Literal["higher", "lower"]
# A score of a run: the mean of its samples, a score of all of them together, or a mean weighted by strata.
Kind = Literal["mean", "corpus", "weighted mean"]
Placement = Literal["thread", "process", "model"]
Bounds = tuple[float | None, float | None]
Value = float | dict[str, Any]  # what a call of a metric returns: a number, or several by name
Result = Value | Score | None

RESERVED_NAMES = ("row", "id", "group", "status", "composite", "composite_score")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Scorer(Protocol):
    """An opened metric, with its model and state loaded.

    It may have `expect(batch)`: in a run, it is called with samples that are scored later in one call, so that their
    files can be read in time. With `is_concurrent = True`, two threads may call `score` at the same time.

    A scorer that handles samples one by one anyway may set `one_by_one = True`. It then gets one sample per call, and a
    failure, retryable or not, belongs to that sample alone.
    """

    def score(self, batch: Sequence[Sample]) -> Sequence[Score]:
        """One score per sample, in the same order: a list, or `Scores`, which holds them as arrays.

        In a run, `batch` is a `Batch`, which also has the columns of the samples.
        """


class Metric:
    """A metric with four steps: fit, open, score, aggregate. Subclass it, or use the `metric` decorator.

    `corpus` declares the statistics of the whole corpus that it needs before it scores, if any.

    `options` declares the options on the class and holds their values on an instance; `configure` changes them.
    """

    name: str
    version: str = "1"
    needs: tuple[str, ...] = ()
    bounds: Bounds = (None, None)
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})  # of further values, if they have any
    direction: Direction = "higher"
    placement: Placement = "thread"
    blank: float | None = None  # the value of a blank answer; None: `score` decides
    summary: str = ""
    options = Options()
    corpus: Corpus | None = None
    variant_of: str | None = None  # the metric's own name, if a run computes it under another

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The value for one sample; 0.0 if a needed input is missing (in a run, the status `missing_input`)."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = self.lone_scorer.score([sample])[0]
        return 0.0 if score.value is None else score.value

    def __init_subclass__(cls) -> None:
        if not isinstance(cls.options, Options):
            raise TypeError(f"{cls.__name__}.options must be Options(name=Option(type, default), …)")

    def __getstate__(self) -> dict[str, object]:
        """The state for copies and pickles, without cached properties such as an opened scorer."""
        kind = type(self)
        return {key: value for key, value in vars(self).items() if not _is_cached(getattr(kind, key, None))}

    @cached_property
    def lone_scorer(self) -> Scorer:
        """The metric opened for single samples."""
        return self.open(default_state(self))

    @property
    def declared_options(self) -> Mapping[str, Option]:
        """The metric's options with their types, defaults and choices."""
        return type(self).options

    def known_options(self, options: OptionValues) -> OptionValues:
        """The subset of these options that this metric has."""
        return {name: value for name, value in options.items() if name in self.declared_options}

    def configure(self, options: OptionValues) -> Self:
        """A copy of the metric with these options; the other options are unchanged."""
        metric = copy(self)
        metric.options = {**self.options, **checked_values(self.declared_options, self.name, options)}
        metric.check_options()
        return metric

    def renamed(self, name: str) -> Self:
        """A copy with another name, so that a run can compute the metric several times with different options."""
        harness, dot, recorded = name.partition(".")  # a score that another program recorded is HARNESS.NAME
        check_name(harness)
        if dot and recorded not in RESERVED_NAMES:  # `id` is a column of a run, but `eee.id` is not
            check_name(recorded)
        metric = copy(self)
        metric.name, metric.variant_of = name, self.variant_of or self.name
        return metric

    def check_options(self) -> None:
        """Refuse incompatible options, and set the attributes that depend on options: `needs`, `placement`.

        Called with all options after a change; each option by itself is already checked. The class attributes hold for
        the default options.
        """

    def signature(self, state: Any = None) -> Signature:
        """Every setting that changes this metric's values."""
        return Signature(self.name, self.version, signed_values(self.declared_options, self.options))

    def origin_signature(self, rows: Rows) -> str | None:
        """The signature that the metric's original program prints for these rows; None if it has none."""
        return None

    def seen_bounds(self, values: NDArray[np.float64]) -> Bounds:
        """The range of the metric in a run with these values (at least one).

        A metric whose range is not a setting may conclude it from the values, all of which must be inside it.
        """
        return self.bounds

    @property
    def infers_bounds(self) -> bool:
        """Whether the range is known only after scoring."""
        return type(self).seen_bounds is not Metric.seen_bounds

    def within(self, bounds: Bounds) -> Self:
        """A copy with this range."""
        metric = copy(self)
        metric.bounds = bounds
        return metric

    def unavailable(self) -> str | None:
        """Why the metric cannot run on this machine and what to do about it, or None."""
        return None

    def settled_options(self) -> OptionValues:
        """Options whose value depends on the environment, with that value; a run stores them."""
        return {}

    def resources(self) -> tuple[str, ...]:
        """The resources that the metric needs, by their names in `mmeval fetch`."""
        return ()

    @property
    def definition(self) -> tuple[str, str | None]:
        """The version, and a digest of the code if no version is declared."""
        return self.version, None

    @property
    def averages(self) -> bool:
        """Whether the metric's result is the mean of its values."""
        return type(self).aggregate is Metric.aggregate

    def kind_of(self, part: str = "") -> Kind:
        """What the result of the metric, or of one of its parts, is: the mean of the samples, or a corpus score."""
        averages = type(self).aggregate_part is Metric.aggregate_part if part else self.averages
        return "mean" if averages else "corpus"

    def problem(self, sample: Sample) -> str | None:
        """Why a sample cannot be scored, so that the input is refused with its line; None if it can be.

        A run asks before it scores anything. The sample has only its id and the fields in `needs`.
        """
        return None

    @property
    def checks_samples(self) -> bool:
        """Whether the metric refuses some samples."""
        return type(self).problem is not Metric.problem

    def reading_note(self, batches: Iterable[Batch]) -> str | None:
        """What a run says about how the metric read its samples, without quoting them; None if there is no doubt.

        The samples have only their ids and the fields in `needs`.
        """
        return None

    def open(self, state: Any) -> Scorer:
        """Prepare for scoring; called once per worker."""
        raise NotImplementedError

    def aggregate(self, rows: Rows) -> Estimate:
        """The value for all scored rows (at least one), with one influence value per row."""
        return mean_estimate(rows)

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        """The value for one part of a metric with several; `rows.values` are the part's."""
        return mean_estimate(rows)


class StoredMean(Metric):
    """Replaces a metric that is not registered here and whose result is the mean of a run's stored values."""

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name, self.bounds = name, bounds


def is_number(value: object) -> bool:
    """Whether a value can be a score: a Python or NumPy real number, but not a bool."""
    if type(value) in (float, int):  # the common case, and a much faster check
        return True
    from numbers import Real

    return isinstance(value, Real) and not isinstance(value, bool)


def _is_cached(attribute: object) -> bool:
    return isinstance(attribute, cached_property)


def code_digest(function: Callable[..., Any]) -> str:
    """A digest of a function's source, for metrics without a version."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return "unknown"
    return hashlib.sha256(source.encode()).hexdigest()[:8]


def metric_and_part(name: str, metrics: Container[str]) -> tuple[str, str]:
    """The metric and the part in the name of a score; the part is empty for the metric itself.

    `metrics` are the known ones: `bleu.bleu_1` is a part of bleu, but `lm-eval.acc` is a metric of an imported log.
    """
    head, dot, tail = name, "", ""
    while head not in metrics and "." in head:
        head, dot, last = head.rpartition(".")
        tail = f"{last}.{tail}" if tail else last
    if head in metrics or not dot:
        return head, tail
    head, _, tail = name.partition(".")
    return head, tail


def is_name(name: str) -> bool:
    """Whether a name is valid as a column and file name, and no run uses it itself."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED_NAMES and not DEVICE.fullmatch(name)


def check_name(name: str) -> None:
    """Refuse a name that is not valid as a column or file name, or that a run uses itself."""
    if not is_name(name):
        raise ConfigError(
            f"{name!r} cannot name a metric: use letters, digits, '_' and '-', and not {', '.join(RESERVED_NAMES)}, "
            "nor a device of Windows such as con or nul"
        )
