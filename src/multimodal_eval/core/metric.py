"""The metric protocol: fit, open, score a batch, aggregate.

A metric is also a plain callable `metric(sample) -> float | dict`, which is all that most people need;
the `metric` decorator builds one from a function, and `as_metric` wraps a function that nobody decorated.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, get_type_hints, runtime_checkable

import msgspec

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Estimate, Rows, Score, mean_estimate
from multimodal_eval.core.signature import Signature

Direction = Literal["higher", "lower"]
Placement = Literal["thread", "process", "model"]
Bounds = tuple[float | None, float | None]
Result = float | dict[str, Any] | Score | None

RESERVED_NAMES = ("row", "id", "group", "status", "composite", "composite_score")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

# The part of a dict-valued result that is the metric's value, where it does not say so itself.
HEADLINES = ("composite_score", "score", "value")


class Scorer(Protocol):
    """An opened metric: model loaded, state at hand."""

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
    """

    name: str
    version: str = "1"
    needs: tuple[str, ...] = ()
    bounds: Bounds = (None, None)
    direction: Direction = "higher"
    placement: Placement = "thread"
    blank: float | None = None  # the value of a blank answer, where `score` shall not be asked
    summary: str = ""
    options: Mapping[str, Any] = {}
    state_type: Any = None

    def __call__(self, sample: Sample, **extra: Any) -> float | dict[str, Any]:
        """The value for one sample; 0.0 where a needed input is missing (a run says `missing_input`)."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = self.lone_scorer.score([sample])[0]
        return 0.0 if score.value is None else score.value

    def __getstate__(self) -> dict[str, Any]:
        """For another process: without the scorer that was opened here."""
        return {key: value for key, value in vars(self).items() if key != "lone_scorer"}

    @cached_property
    def lone_scorer(self) -> Scorer:
        """The metric opened for samples on their own."""
        return self.open(self.default_state())

    def configure(self, options: Mapping[str, Any]) -> Metric:
        """The same metric with other options."""
        if options:
            raise ConfigError(f"{self.name} has no options. Got {', '.join(map(repr, options))}.")
        return self

    def signature(self, state: Any = None) -> Signature:
        """Every setting that changes this metric's numbers."""
        return Signature(self.name, self.version, dict(self.options))

    def unavailable(self) -> str | None:
        """Why the metric cannot run on this machine and what to do about it, or None."""
        return None

    def settled_options(self) -> dict[str, Any]:
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


class FunctionMetric(Metric):
    """A metric made of a function of one sample."""

    def __init__(
        self,
        function: Callable[..., Result],
        name: str,
        *,
        options: Mapping[str, Any] | None = None,
        corpus: Callable[..., Any] | None = None,
        default_corpus: Callable[..., Any] | None = None,
        batch: Callable[..., list[Score]] | None = None,
        aggregate: Callable[[Rows], Estimate] | None = None,
        part_aggregates: Mapping[str, Callable[[Rows], Estimate]] | None = None,
        headline: str | None = None,
        **declared: Any,
    ) -> None:
        self.function, self.name, self.headline = function, name, headline
        self._corpus, self._default_corpus, self._batch = corpus, default_corpus, batch
        self._aggregate, self._part_aggregates = aggregate, dict(part_aggregates or {})
        self._declared = declared
        self.placement = "process" if batch is None else "thread"
        for attribute, value in declared.items():
            setattr(self, attribute, value)
        self.summary = (inspect.getdoc(function) or "").strip().split("\n\n")[0].replace("\n", " ")
        self.__doc__, self.__name__ = function.__doc__, getattr(function, "__name__", name)
        self.__module__, self.__qualname__ = function.__module__, getattr(function, "__qualname__", name)
        self.defaults = _keyword_options(function)
        self.options = {**self.defaults, **(options or {})}
        if corpus is not None:
            self.state_type = _without_none(get_type_hints(corpus).get("return", Any))

    def __repr__(self) -> str:
        return f"<metric {self.name}>"

    def __call__(self, sample: Sample, **extra: Any) -> float | dict[str, Any]:
        """Call the function itself; 0.0 where a needed input is missing."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        if self._corpus is not None and extra.get("corpus") is None:
            extra["corpus"] = self._lone_state
        return self.function(sample, **{**self.options, **extra})  # type: ignore[return-value]

    @cached_property
    def _lone_state(self) -> Any:
        return self.default_state()

    def configure(self, options: Mapping[str, Any]) -> FunctionMetric:
        """The same metric with other values for the function's keyword options."""
        for key in options:
            if key not in self.defaults:
                raise ConfigError(f"{self.name} has no option {key!r}.{did_you_mean(key, list(self.defaults))}")
        return FunctionMetric(
            self.function,
            self.name,
            options={**self.options, **options},
            corpus=self._corpus,
            default_corpus=self._default_corpus,
            batch=self._batch,
            aggregate=self._aggregate,
            part_aggregates=self._part_aggregates,
            headline=self.headline,
            **self._declared,
        )

    def signature(self, state: Any = None) -> Signature:
        """The options; the state's own `settings` where it has them; the code of an undeclared version."""
        settings = {**self.options, **getattr(state, "settings", {})}
        version, code = self.definition
        if code is not None:
            settings["code"] = code
        return Signature(self.name, version, settings)

    @property
    def definition(self) -> tuple[str, str | None]:
        """The declared version, or a digest of the function's source."""
        return self.version, None if "version" in self._declared else code_digest(self.function)

    @property
    def averages(self) -> bool:
        """Whether no other aggregate was declared, of the value or of a part."""
        return self._aggregate is None and not self._part_aggregates

    @property
    def fits(self) -> bool:
        """Whether a corpus function was given."""
        return self._corpus is not None

    def fit(self, samples: Iterable[Sample]) -> Any:
        """The corpus function over these samples, given the options that it asks for."""
        if self._corpus is None:
            return None
        return self._corpus(samples, **self._options_for(self._corpus))

    @property
    def corpus_key(self) -> tuple[Any, ...]:
        """The corpus function and the options that it takes."""
        if self._corpus is None:
            return (self.name,)
        options = sorted(self._options_for(self._corpus).items())
        return (self._corpus, *((key, repr(value)) for key, value in options))

    def default_state(self) -> Any:
        """The declared default corpus."""
        return None if self._default_corpus is None else self._default_corpus(**self._options_for(self._default_corpus))

    def _options_for(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Those of the metric's options that another function takes too."""
        taken = inspect.signature(function).parameters
        return {key: value for key, value in self.options.items() if key in taken}

    def check_state(self, state: Any) -> None:
        """Ask the state itself, where it knows when it is too small."""
        if hasattr(state, "check"):
            state.check()

    def open(self, state: Any) -> Scorer:
        """A scorer that calls the function on each sample, or on the batch where there is one for that."""
        extra = dict(self.options)
        if self._corpus is not None:
            extra["corpus"] = state
        return _FunctionScorer(self, extra) if self._batch is None else _BatchScorer(self._batch, extra)

    def aggregate(self, rows: Rows) -> Estimate:
        """The declared aggregate, or the mean."""
        return self._aggregate(rows) if self._aggregate is not None else super().aggregate(rows)

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        """The declared aggregate of that part, or the mean."""
        own = self._part_aggregates.get(part)
        return own(rows) if own is not None else super().aggregate_part(part, rows)


class _BatchScorer:
    def __init__(self, function: Callable[..., list[Score]], extra: dict[str, Any]) -> None:
        self.function, self.extra = function, extra

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return self.function(batch, **self.extra)


class _FunctionScorer:
    one_by_one = True  # nothing is gained by a batch, so a failure belongs to its sample at once

    def __init__(self, owner: FunctionMetric, extra: dict[str, Any]) -> None:
        self.owner, self.extra = owner, extra

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        function, extra = self.owner.function, self.extra
        return [self._as_score(function(sample, **extra)) for sample in batch]

    def _as_score(self, result: Result) -> Score:
        if isinstance(result, Score):
            return result
        if result is None:
            return Score(None, "degenerate", "the metric gave no value for this sample")
        if isinstance(result, Mapping):
            return _score_of_parts(self.owner.name, self.owner.headline, result)
        return Score(result)


def _score_of_parts(name: str, headline: str | None, result: Mapping[str, Any]) -> Score:
    """A dict-valued result: its headline is the value, its numbers are parts, the rest explains."""
    candidates = [headline] if headline else [*HEADLINES, name]
    chosen = next((key for key in candidates if key in result), None)
    if chosen is None:
        return Score(
            None,
            "error",
            f"the result has no headline: one of {', '.join(map(str, candidates))} must be a key",
        )
    parts = {key: value for key, value in result.items() if is_number(value) and key != chosen}
    details = {key: value for key, value in result.items() if key not in parts and key != chosen}
    return Score(result[chosen], parts=parts or None, details=details or None)


def is_number(value: object) -> bool:
    """Whether a value can be a score: a Python or NumPy real number, but no bool."""
    if type(value) in (float, int):  # nearly always, and far quicker to see
        return True
    from numbers import Real

    return isinstance(value, Real) and not isinstance(value, bool)


def _keyword_options(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters behind the sample that have a default: the options of a function metric."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):  # a builtin without a signature
        return {}
    return {p.name: p.default for p in parameters if p.default is not p.empty and p.name != "corpus"}


def _without_none(hint: Any) -> Any:
    """`X` of a hint `X | None`."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in get_args(hint) else hint


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


@lru_cache(maxsize=1024)
def as_metric(name: str, entry: Callable[..., Any]) -> Metric:
    """The metric behind a registered callable: itself, or a wrapper around a plain function."""
    check_name(name)
    return entry if isinstance(entry, Metric) else FunctionMetric(entry, name)
