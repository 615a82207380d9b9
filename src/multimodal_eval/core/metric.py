"""The metric protocol: fit, open, score a batch, aggregate. What a metric declares is here, in one class of 14 members.

A metric is also a plain callable `metric(sample) -> float | dict`, which is all that most people need. The `metric`
decorator (`core.registry`) builds one from a function (`core.function_metric`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Container, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import msgspec

from multimodal_eval.core.corpus import Corpus, LargeState, default_state, taken
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Bounds as Bounds
from multimodal_eval.core.figure import Direction as Direction
from multimodal_eval.core.figure import Kind as Kind
from multimodal_eval.core.options import Option, Options, OptionValues, checked_values, signed_values
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import MEAN, Estimate, Rows, Score
from multimodal_eval.core.system_files import DEVICE

__all__ = [
    "BoundsWithParts",
    "LargeState",
    "Metric",
    "Need",
    "Scorer",
    "configured",
    "declared_options",
    "known_options",
    "lone_scorer",
    "renamed",
    "require_references",
    "signature_of",
    "summary_of",
]

Placement = Literal["thread", "process", "model"]
Value = float | dict[str, Any]  # what a call of a metric returns: a number, or several by name
Result = Value | Score | None
Aggregate = Callable[[Rows], Estimate]
M = TypeVar("M", bound="Metric")

MEDIA_FIELDS = ("image", "images", "audio", "video", "messages")  # fields of a sample that name files
RESERVED_NAMES = ("row", "id", "group", "status", "composite", "composite_score")
# Names of 0.1 that a subclass may define or a caller may read (`core.older_metric`).
_OLDER = frozenset(
    "aggregate_part averages blank check_options check_state checks_samples configure corpus_groups corpus_key "
    "declared_options default_state definition fit fits kind_of known_options load_state lone_scorer "
    "origin_signature part_bounds problem renamed save_state settled_options signature state_type summary variant_of "
    "within".split()
)
_LONE, _VARIANT_OF = "_lone_scorer", "_variant_of"  # entries of an instance
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_@-]*")


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


class Need(str):
    """A field that a metric needs, with more about it: `needs = ("references", Need("generated_answer", blank=0.0))`.

    `blank` is the value of a blank answer; without one, `score` decides. `problem(sample)` says why a sample cannot be
    scored, so that the input is refused with its line, or None. It gets those of the metric's options that it takes. A
    run asks before it scores anything; the sample has only its id and the fields that the metric needs.
    """

    blank: float | None
    problem: Callable[..., str | None] | None

    def __new__(
        cls, field: str, *, blank: float | None = None, problem: Callable[..., str | None] | None = None
    ) -> Self:
        """The name of the field is the string itself."""
        need = super().__new__(cls, field)
        need.blank, need.problem = blank, problem
        return need


class BoundsWithParts(tuple[float | None, float | None]):
    """The bounds of a metric with those of its parts, at which their intervals end."""

    parts: Mapping[str, Bounds]

    def __new__(cls, bounds: Bounds, parts: Mapping[str, Bounds] = MappingProxyType({})) -> Self:
        """The lowest and the highest value are the pair itself."""
        whole = super().__new__(cls, bounds)
        whole.parts = dict(parts)
        return whole


class Metric:
    """A metric with four steps: fit (`corpus`), open, score, aggregate. Subclass it, or use the `metric` decorator.

    The first paragraph of the docstring is its summary in `mmeval ls metrics`.

    `needs` are the fields without which a sample is unscored; a `Need` says more about one. `bounds` are checked on
    every value; `BoundsWithParts` also has those of parts. `corpus` declares the statistics of the whole corpus that
    the metric needs before it scores. `aggregate` is a function from rows to an estimate, or functions by part, with
    the value itself under ""; what is not named is a `Mean`.

    `options` declares the options on the class and holds their values on an instance; `configured` changes them. The
    other class attributes hold for the default options; `settle` sets those that depend on options.

    It may have `seen_bounds(values)`: the range in a run with these values, if it is not a setting. It may also have
    `reading_note(batches)`: how it read the samples of a run, which have only the fields that it needs; the note quotes
    none of them, and is None if there is no doubt.
    """

    name: str
    version: str = "1"
    needs: tuple[str, ...] = ()
    bounds: Bounds = (None, None)
    direction: Direction = "higher"
    placement: Placement = "thread"
    options = Options()
    corpus: Corpus | None = None
    aggregate: Aggregate | Mapping[str, Aggregate] = MEAN

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The value for one sample; 0.0 if a needed input is missing (in a run, the status `missing_input`)."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = lone_scorer(self).score([sample])[0]
        return 0.0 if score.value is None else score.value

    def __init_subclass__(cls) -> None:
        if not isinstance(cls.options, Options):
            raise TypeError(f"{cls.__name__}.options must be Options(name=Option(type, default), …)")
        if not _OLDER.isdisjoint(vars(cls)):
            from multimodal_eval.core.older_metric import adapt

            adapt(cls)

    if not TYPE_CHECKING:  # a type checker shall not accept every name

        def __getattr__(self, name: str) -> Any:
            if name not in _OLDER:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            from multimodal_eval.core.older_metric import older_member

            return older_member(self, name)

    def __getstate__(self) -> dict[str, object]:
        """The state for copies and pickles, without cached properties and the opened scorer."""
        kind = type(self)
        return {
            key: value
            for key, value in vars(self).items()
            if key != _LONE and not isinstance(getattr(kind, key, None), cached_property)
        }

    def settle(self) -> OptionValues | None:
        """Refuse incompatible options, and set the attributes that depend on options: `needs`, `bounds`, `aggregate`…

        Called with all options after a change, maybe more than once; each option by itself is already checked. Returns
        the options whose value depends on the environment, with that value, if there are any: a run stores them.
        """

    def settings(self, state: Any) -> Mapping[str, object]:
        """Every setting that changes this metric's values, in the order of the signature: by default the options."""
        return signed_values(declared_options(self), self.options)

    def unavailable(self) -> str | None:
        """Why the metric cannot run on this machine and what to do about it, or None."""
        return None

    def resources(self) -> tuple[str, ...]:
        """The resources that the metric needs, by their names in `mmeval fetch`."""
        return ()

    def open(self, state: Any) -> Scorer:
        """Prepare for scoring; called once per worker."""
        raise NotImplementedError


class StoredMean(Metric):
    """Replaces a metric that is not registered here and whose result is the mean of a run's stored values."""

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name, self.bounds = name, bounds


def infers_bounds(metric: Metric) -> bool:
    """Whether the metric's range is known only after scoring."""
    return hasattr(type(metric), "seen_bounds")


def configured(metric: M, options: OptionValues) -> M:
    """A copy of the metric with these options; the other options are unchanged."""
    changed = copy(metric)
    changed.options = {**metric.options, **checked_values(declared_options(metric), metric.name, options)}
    changed.settle()
    return changed


def renamed(metric: M, name: str) -> M:
    """A copy with another name, so that a run can compute the metric several times with different options."""
    harness, dot, recorded = name.partition(".")  # a score that another program recorded is HARNESS.NAME
    check_name(harness)
    if dot and recorded not in RESERVED_NAMES:  # `id` is a column of a run, but `eee.id` is not
        check_name(recorded)
    variant = copy(metric)
    variant.name = name
    vars(variant)[_VARIANT_OF] = registered_name(metric)
    variant.settle()
    return variant


def within(metric: M, bounds: Bounds) -> M:
    """A copy with this range."""
    changed = copy(metric)
    changed.bounds = bounds
    return changed


def registered_name(metric: Metric) -> str:
    """The metric's own name, also if a run computes it under another."""
    name: str = vars(metric).get(_VARIANT_OF, metric.name)
    return name


def declared_options(metric: Metric) -> Mapping[str, Option]:
    """The metric's options with their types, defaults and choices."""
    declared: Mapping[str, Option] = vars(metric).get("_declared_options", type(metric).options)
    return declared


def known_options(metric: Metric, options: OptionValues) -> OptionValues:
    """The subset of these options that the metric has."""
    declared = declared_options(metric)
    return {name: value for name, value in options.items() if name in declared}


def signature_of(metric: Metric, state: Any = None) -> Signature:
    """Every setting that changes the metric's values."""
    return Signature(registered_name(metric), metric.version, metric.settings(state))


def code_of(metric: Metric) -> str | None:
    """A digest of the metric's code, if it has no version."""
    return getattr(metric, "code", None)


def summary_of(metric: Metric) -> str:
    """The first paragraph of the documentation, in one line."""
    return inspect.cleandoc(metric.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def part_bounds(metric: Metric) -> Mapping[str, Bounds]:
    """The bounds of the parts that have any."""
    return metric.bounds.parts if isinstance(metric.bounds, BoundsWithParts) else {}


def blank_value(metric: Metric) -> float | None:
    """The value of a blank answer; None if `score` decides."""
    return next((need.blank for need in metric.needs if isinstance(need, Need) and need.blank is not None), None)


def opens_media(metric: Metric) -> bool:
    """Whether the metric reads media files of the samples."""
    return any(field in MEDIA_FIELDS for need in metric.needs for field in need.split("|"))


def sample_problems(metric: Metric) -> list[Callable[[Sample], str | None]]:
    """The functions that refuse samples of this metric."""
    problems = (need.problem for need in metric.needs if isinstance(need, Need) and need.problem is not None)
    return [partial(problem, **taken(problem, metric.options)) for problem in problems]


def described_needs(
    needs: Sequence[str], blank: float | None, problem: Callable[..., str | None] | None
) -> tuple[str, ...]:
    """The needs, of which one says what a blank answer counts as and which samples are refused."""
    if blank is None and problem is None:
        return tuple(needs)
    fields = tuple(needs) or ("id",)  # which every sample has
    place = fields.index("generated_answer") if "generated_answer" in fields else 0
    return (*fields[:place], Need(fields[place], blank=blank, problem=problem), *fields[place + 1 :])


def lone_scorer(metric: Metric) -> Scorer:
    """The metric opened for single samples: once, and again if the environment changes one of its options."""
    settled = repr(metric.settle())
    opened: tuple[str, Scorer] | None = vars(metric).get(_LONE)
    if opened is None or opened[0] != settled:
        opened = vars(metric)[_LONE] = (settled, metric.open(default_state(metric)))
    return opened[1]


def is_number(value: object) -> bool:
    """Whether a value can be a score: a Python or NumPy real number, but not a bool."""
    if type(value) in (float, int):  # the common case, and a much faster check
        return True
    from numbers import Real

    return isinstance(value, Real) and not isinstance(value, bool)


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
            f"{name!r} cannot name a metric: use letters, digits, '_-@', and not {', '.join(RESERVED_NAMES)}, "
            "nor a device of Windows such as con or nul"
        )


def require_references(metric: str, references: Sequence[str]) -> None:
    """Raise `ConfigError` for an empty list, and for a string, which would count as a list of its letters."""
    if isinstance(references, str) or not references:
        got = repr(references) if isinstance(references, str) else "an empty list"
        raise ConfigError(f"{metric} needs a list of at least one reference. Got {got} instead.")


# The signature: every setting that changes a score, short enough to print next to it.


class Signature(msgspec.Struct, frozen=True):
    """A metric, its version and its settings in display order.

    Two scores may be compared only if their signatures are equal.

    >>> from multimodal_eval import Signature
    >>> str(Signature("cider_d", "1", {"tok": "ptb", "df": "coco-val2014"}))
    'cider_d|v:1|tok:ptb|df:coco-val2014'
    """

    metric: str
    version: str
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        shown = {"v": self.version, **self.settings}
        return "|".join([self.metric, *(f"{key}:{_brief(value)}" for key, value in shown.items())])

    def to_dict(self) -> dict[str, object]:
        """The signature as a JSON object."""
        named = {"metric": self.metric, "version": self.version}
        return {**named, **self.settings, **named}

    def extended(self, **settings: object) -> Signature:
        """The signature with further settings appended."""
        return Signature(self.metric, self.version, {**self.settings, **settings})


def _brief(value: object) -> str:
    if isinstance(value, Mapping):
        return "+".join(f"{_brief(weight)}*{part}" for part, weight in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
