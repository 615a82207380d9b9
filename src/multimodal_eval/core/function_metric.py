"""Metrics built from a function of one sample."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

from multimodal_eval.core.corpus import Corpus, CorpusGroups, default_state, returned, taken
from multimodal_eval.core.metric import (
    Kind,
    Metric,
    Result,
    Scorer,
    Value,
    check_name,
    code_digest,
    is_number,
)
from multimodal_eval.core.options import Option, OptionValues, defaults_of, options_of, signed_values
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Estimate, Rows, Score
from multimodal_eval.core.signature import Signature

# Keys of a dict-valued result that can be the metric's value, if the metric does not name one.
HEADLINES = ("composite_score", "score", "value")


class FunctionMetric(Metric):
    """A metric built from a function of one sample. Its options are the function's keyword arguments."""

    def __init__(
        self,
        function: Callable[..., Result],
        name: str,
        *,
        corpus: Callable[..., Any] | None = None,
        corpus_groups: Callable[..., CorpusGroups | None] | None = None,
        default_corpus: Callable[..., Any] | None = None,
        batch: Callable[..., Sequence[Score]] | None = None,
        aggregate: Callable[[Rows], Estimate] | None = None,
        part_aggregates: Mapping[str, Callable[[Rows], Estimate]] | None = None,
        headline: str | None = None,
        problem: Callable[..., str | None] | None = None,
        **declared: Any,
    ) -> None:
        self.function, self.name, self.headline = function, name, headline
        self._batch, self._problem = batch, problem
        self._aggregate, self._part_aggregates = aggregate, dict(part_aggregates or {})
        self._declared = declared
        self.placement = "process" if batch is None else "thread"
        for attribute, value in declared.items():
            setattr(self, attribute, value)
        self.summary = (inspect.getdoc(function) or "").strip().split("\n\n")[0].replace("\n", " ")
        self.__doc__, self.__name__ = function.__doc__, getattr(function, "__name__", name)
        self.__module__, self.__qualname__ = function.__module__, getattr(function, "__qualname__", name)
        self._options = options_of(function)
        self.options = defaults_of(self._options)
        if corpus is not None:
            self.corpus = Corpus(corpus, corpus_groups, default_corpus, returned(corpus))

    def __repr__(self) -> str:
        return f"<metric {self.name}>"

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The function's result, or the value of a Score; 0.0 if a needed input is missing or there is no value."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        if self.corpus is not None and extra.get("corpus") is None:
            extra["corpus"] = self._lone_state
        result = self.function(sample, **{**self.options, **extra})
        if isinstance(result, Score):
            return 0.0 if result.value is None else result.value
        return result  # type: ignore[return-value]

    @cached_property
    def _lone_state(self) -> Any:
        return default_state(self)

    @property
    def declared_options(self) -> Mapping[str, Option]:
        """The options from the function's signature."""
        return self._options

    def signature(self, state: Any = None) -> Signature:
        """The options, the state's `settings` if it has any, and the code's digest if no version is declared."""
        settings = {**signed_values(self._options, self.options), **getattr(state, "settings", {})}
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
        """Whether neither the value nor a part has a declared aggregate."""
        return self._aggregate is None and not self._part_aggregates

    def problem(self, sample: Sample) -> str | None:
        """What the declared function returns; it gets the options that it takes."""
        return None if self._problem is None else self._problem(sample, **self._problem_options)

    @cached_property
    def _problem_options(self) -> OptionValues:
        return {} if self._problem is None else taken(self._problem, self.options)

    @property
    def checks_samples(self) -> bool:
        """Whether a function that refuses samples is declared."""
        return self._problem is not None

    def open(self, state: Any) -> Scorer:
        """A scorer that calls the function on each sample, or the batch function if there is one."""
        extra = dict(self.options)
        if self.corpus is not None:
            extra["corpus"] = state
        return FunctionScorer(self, extra) if self._batch is None else _BatchScorer(self._batch, extra)

    def kind_of(self, part: str = "") -> Kind:
        """Whether the result is a mean: unless an aggregate is declared."""
        return "corpus" if (part in self._part_aggregates if part else not self.averages) else "mean"

    def aggregate(self, rows: Rows) -> Estimate:
        """The declared aggregate, or the mean."""
        return self._aggregate(rows) if self._aggregate is not None else super().aggregate(rows)

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        """The declared aggregate of the part, or the mean."""
        aggregate = self._part_aggregates.get(part)
        return aggregate(rows) if aggregate is not None else super().aggregate_part(part, rows)


class _BatchScorer:
    def __init__(self, function: Callable[..., Sequence[Score]], extra: OptionValues) -> None:
        self.function, self.extra = function, extra

    def score(self, batch: Sequence[Sample]) -> Sequence[Score]:
        return self.function(batch, **self.extra)


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
