"""Metrics built from a function of one sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import msgspec

from multimodal_eval.core.corpus import Corpus, CorpusGroups, default_state, returned
from multimodal_eval.core.metric import (
    Aggregate,
    Bounds,
    BoundsWithParts,
    Direction,
    Metric,
    Placement,
    Result,
    Scorer,
    Value,
    check_name,
    code_digest,
    described_needs,
    is_number,
)
from multimodal_eval.core.options import OptionValues, defaults_of, options_of
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, mean_estimate

# Keys of a dict-valued result that can be the metric's value, if the metric does not name one.
HEADLINES = ("composite_score", "score", "value")


class FunctionMetric(Metric):
    """A metric built from a function of one sample, or of many. Its options are the function's keyword arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        *,
        needs: Sequence[str] = (),
        blank: float | None = None,
        problem: Callable[..., str | None] | None = None,
        bounds: Bounds = (None, None),
        part_bounds: Mapping[str, Bounds] | None = None,
        direction: Direction = "higher",
        placement: Placement | None = None,
        version: str | None = None,
        headline: str | None = None,
        corpus: Callable[..., Any] | None = None,
        corpus_groups: Callable[..., CorpusGroups | None] | None = None,
        default_corpus: Callable[..., Any] | None = None,
        batch: Callable[..., Sequence[Score]] | bool | None = None,
        aggregate: Aggregate | None = None,
        part_aggregates: Mapping[str, Aggregate] | None = None,
    ) -> None:
        self.function, self.name, self.headline = function, name, headline
        self._batch = batch if callable(batch) else function if batch else None
        self._takes_many = batch is True
        self.needs, self.direction = described_needs(needs, blank, problem), direction
        self.bounds = BoundsWithParts(bounds, part_bounds) if part_bounds else bounds
        self.placement = placement or ("thread" if self._batch else "process")
        self._has_version, self.version = version is not None, version or "1"
        self.__doc__, self.__name__ = function.__doc__, getattr(function, "__name__", name)
        self.__module__, self.__qualname__ = function.__module__, getattr(function, "__qualname__", name)
        self._declared_options = options_of(function)
        self.options = defaults_of(self._declared_options)
        if corpus is not None:
            self.corpus = Corpus(corpus, corpus_groups, default_corpus, returned(corpus))
        if part_aggregates:
            # Not a `Mean` even if no aggregate is given: without this code, a run must not average its parts.
            self.aggregate = {"": aggregate or mean_estimate, **part_aggregates}
        elif aggregate is not None:
            self.aggregate = aggregate

    def __repr__(self) -> str:
        return f"<metric {self.name}>"

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The function's result, or the value of a Score; 0.0 if a needed input is missing or there is no value."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        if self.corpus is not None and extra.get("corpus") is None:
            extra["corpus"] = self._lone_state
        options = {**self.options, **extra}
        result = self.function([sample], **options)[0] if self._takes_many else self.function(sample, **options)
        if isinstance(result, Score):
            return 0.0 if result.value is None else result.value
        value: Value = result
        return value

    @cached_property
    def _lone_state(self) -> Any:
        return default_state(self)

    @property
    def code(self) -> str | None:
        """A digest of the function's source if no version is declared."""
        return None if self._has_version else code_digest(self.function)

    def settings(self, state: Any) -> Mapping[str, object]:
        """The options, the state's `settings` if it has any, and the code's digest if no version is declared."""
        code = self.code
        return {
            **super().settings(state),
            **getattr(state, "settings", {}),
            **({} if code is None else {"code": code}),
        }

    def open(self, state: Any) -> Scorer:
        """A scorer that calls the function on each sample, or the batch function if there is one."""
        extra = dict(self.options)
        if self.corpus is not None:
            extra["corpus"] = state
        return FunctionScorer(self, extra) if self._batch is None else _BatchScorer(partial(self._batch, **extra))


class _BatchScorer(msgspec.Struct, frozen=True):
    score: Callable[[Sequence[Sample]], Sequence[Score]]  # the batch function with its options


class FunctionScorer:
    """Calls a function on one sample at a time."""

    one_by_one = True  # a batch saves nothing, so a failure is attributed to its sample directly

    def __init__(self, owner: FunctionMetric, extra: OptionValues) -> None:
        self.owner, self.extra = owner, extra

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample."""
        return [self.as_score(self.function(sample)) for sample in batch]

    @property
    def function(self) -> Callable[[Sample], Result]:
        """The function with its options."""
        return partial(self.owner.function, **self.extra) if self.extra else self.owner.function

    def as_score(self, result: Result) -> Score:
        """The score of what the function returned."""
        if isinstance(result, Score):
            return result
        if result is None:
            return Score(None, "degenerate", "the metric returned no value for this sample")
        if isinstance(result, Mapping):
            return _score_of_parts(self.owner.name, self.owner.headline, result)
        return Score(result)


def _score_of_parts(name: str, headline: str | None, result: Mapping[str, Any]) -> Score:
    """The score of a dict-valued result: the headline is the value, other numbers are parts, the rest is details.

    Without a headline there is no value, and the parts stay.
    """
    candidates = [headline] if headline else [*HEADLINES, name]
    value_key = next((key for key in candidates if key in result), None)
    parts = {key: value for key, value in result.items() if is_number(value) and key != value_key}
    details = {key: value for key, value in result.items() if key not in parts and key != value_key}
    if value_key is not None:
        return Score(result[value_key], parts=parts or None, details=details or None)
    reason = f"the result has no headline: one of {', '.join(map(str, candidates))} must be a key"
    if headline or not parts:
        return Score(None, "error", reason)
    return Score(None, "degenerate", f"{reason}. Its parts are kept", parts=parts, details=details or None)


@lru_cache(maxsize=1024)
def as_metric(name: str, entry: Callable[..., Any]) -> Metric:
    """The metric of a registered callable: the callable itself, or a wrapper around a plain function."""
    check_name(name)
    return entry if isinstance(entry, Metric) else FunctionMetric(entry, name)
