"""The names of 0.1 that metrics and their callers may still use, with a DeprecationWarning, until 0.4."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from multimodal_eval.core.corpus import (
    Corpus,
    CorpusGroups,
    check_state,
    corpus_groups,
    corpus_key,
    default_state,
    fitted,
    load_state,
    save_state,
    state_type,
)
from multimodal_eval.core.metric import (
    Aggregate,
    Bounds,
    BoundsWithParts,
    Metric,
    Signature,
    blank_value,
    code_of,
    configured,
    declared_options,
    described_needs,
    known_options,
    lone_scorer,
    part_bounds,
    registered_name,
    renamed,
    sample_problems,
    signature_of,
    summary_of,
    within,
)
from multimodal_eval.core.options import OptionValues
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import MEAN, Estimate, Rows
from multimodal_eval.core.scoring import aggregate_of, averages, kind_of

# What a subclass defines instead.
_DEFINED = {
    **dict.fromkeys(("fit", "fits", "state_type", "corpus_key", "corpus_groups", "default_state"), "corpus"),
    **dict.fromkeys(("check_options", "settled_options"), "settle"),
    **dict.fromkeys(("blank", "problem"), "needs, with a Need,"),
    "part_bounds": "bounds, with BoundsWithParts,",
    "aggregate_part": "aggregate, as a mapping from parts to functions,",
    "signature": "settings",
    "summary": "a docstring",
}
# Names that cannot be translated are refused: what to do instead.
_REFUSED = {
    **dict.fromkeys(("check_state", "save_state", "load_state"), "give the state a method check, save or load"),
    **dict.fromkeys(("averages", "kind_of"), "a metric whose aggregate is not a core.score.Mean has a corpus score"),
    "origin_signature": "return Estimate(…, origin_signature=…) from the aggregate",
}
_UNTIL = "Names of 0.1 work until 0.4"


def adapt(cls: type[Metric]) -> None:
    """Make `OlderMetric` the first base of a class that defines names of 0.1."""
    from multimodal_eval.core.metric import _OLDER

    if cls.__module__ == __name__:
        return
    older = sorted(_OLDER & vars(cls).keys())
    for name in older:
        if name not in _DEFINED:
            advice = _REFUSED.get(name, "see docs/adding-a-metric.md")
            raise TypeError(f"{cls.__name__}.{name}: metrics no longer have `{name}`: {advice}")
    news = ", ".join(f"`{name}` (now {_DEFINED[name].rstrip(',')})" for name in older)
    message = f"the metric {cls.__name__} defines {news}: see docs/adding-a-metric.md. {_UNTIL}"
    warnings.warn(message, DeprecationWarning, stacklevel=4)
    if not issubclass(cls, OlderMetric):
        cls.__bases__ = (OlderMetric, *(base for base in cls.__bases__ if base is not Metric))


class OlderMetric(Metric):
    """A metric with the names of 0.1: `settle` derives what the others read from them."""

    blank: float | None = None
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})
    state_type: Any = None

    def settle(self) -> OptionValues | None:
        """Set what the older names say."""
        settled = super().settle()
        self.check_options()
        has_problem = type(self).problem is not OlderMetric.problem
        self.needs = described_needs(self.needs, self.blank, self.problem if has_problem else None)
        if self.part_bounds:
            self.bounds = BoundsWithParts(self.bounds, self.part_bounds)
        if self.fits:
            state = self.state_type or Any
            self.corpus = Corpus(self.fit, self._groups, self.default_state, state, self.corpus_key)
        if type(self).aggregate_part is not OlderMetric.aggregate_part:
            self.aggregate = _OfParts(aggregate_of(self), self.aggregate_part)
        return {**(settled or {}), **self.settled_options()} or None

    def settings(self, state: Any) -> Mapping[str, object]:
        """The settings of the older signature."""
        return self.signature(state).settings

    def check_options(self) -> None:
        """Refuse incompatible options."""

    def settled_options(self) -> OptionValues:
        """Options whose value depends on the environment."""
        return {}

    def signature(self, state: Any = None) -> Signature:
        """Every setting that changes the values."""
        return Signature(registered_name(self), self.version, super().settings(state))

    def problem(self, sample: Sample) -> str | None:
        """Why a sample cannot be scored."""
        return None

    @property
    def fits(self) -> bool:
        """Whether there are corpus statistics."""
        return type(self).fit is not OlderMetric.fit

    def fit(self, samples: Iterable[Sample]) -> Any:
        """Corpus statistics of some samples."""
        return None

    @property
    def corpus_groups(self) -> CorpusGroups | None:
        """How samples that must be fitted together are found."""
        return None

    def _groups(self) -> CorpusGroups | None:
        return self.corpus_groups

    @property
    def corpus_key(self) -> tuple[Any, ...]:
        """Metrics with the same key share their statistics."""
        return (self.name,)

    def default_state(self) -> Any:
        """The state for a single sample."""
        return None

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        """The value for one part."""
        return MEAN(rows)


class _OfParts(Mapping[str, Aggregate]):
    """The aggregate of a metric, and of every part by an older `aggregate_part`."""

    def __init__(self, whole: Aggregate, aggregate_part: Callable[[str, Rows], Estimate]) -> None:
        self._whole, self._aggregate_part = whole, aggregate_part

    def __getitem__(self, part: str) -> Aggregate:
        return partial(self._aggregate_part, part) if part else self._whole

    def __iter__(self) -> Iterator[str]:
        return iter(("",))

    def __len__(self) -> int:
        return 1


# What a caller reads instead, and its value.
_READ: dict[str, tuple[str, Callable[[Metric], Any]]] = {
    "aggregate_part": ("core.scoring.aggregate_of", lambda m: lambda part, rows: aggregate_of(m, part)(rows)),
    "averages": ("core.scoring.averages", averages),
    "blank": ("core.metric.blank_value", blank_value),
    "check_options": ("settle", lambda m: m.settle),
    "check_state": ("core.corpus.check_state", lambda m: check_state),
    "checks_samples": ("core.metric.sample_problems", lambda m: bool(sample_problems(m))),
    "configure": ("core.metric.configured", lambda m: partial(configured, m)),
    "corpus_groups": ("core.corpus.corpus_groups", corpus_groups),
    "corpus_key": ("core.corpus.corpus_key", corpus_key),
    "declared_options": ("core.metric.declared_options", declared_options),
    "default_state": ("core.corpus.default_state", lambda m: partial(default_state, m)),
    "definition": ("version", lambda m: (m.version, code_of(m))),
    "fit": ("core.corpus.fitted", lambda m: partial(fitted, m)),
    "fits": ("corpus", lambda m: m.corpus is not None),
    "kind_of": ("core.scoring.kind_of", lambda m: partial(kind_of, m)),
    "known_options": ("core.metric.known_options", lambda m: partial(known_options, m)),
    "load_state": ("core.corpus.load_state", lambda m: partial(load_state, m)),
    "lone_scorer": ("core.metric.lone_scorer", lone_scorer),
    "part_bounds": ("core.metric.part_bounds", part_bounds),
    "problem": (
        "core.metric.sample_problems",
        lambda m: lambda sample: next(filter(None, (problem(sample) for problem in sample_problems(m))), None),
    ),
    "renamed": ("core.metric.renamed", lambda m: partial(renamed, m)),
    "save_state": ("core.corpus.save_state", lambda m: save_state),
    "settled_options": ("settle", lambda m: lambda: m.settle() or {}),
    "signature": ("core.metric.signature_of", lambda m: partial(signature_of, m)),
    "state_type": ("core.corpus.state_type", lambda m: None if m.corpus is None else state_type(m)),
    "summary": ("core.metric.summary_of", summary_of),
    "variant_of": (
        "core.metric.registered_name",
        lambda m: None if registered_name(m) == m.name else registered_name(m),
    ),
    "within": ("core.metric.within", lambda m: partial(within, m)),
}


def older_member(metric: Metric, name: str) -> Any:
    """What a member of 0.1 was."""
    if name not in _READ:
        raise AttributeError(f"metrics no longer have `{name}`: {_REFUSED[name]}")
    new, value = _READ[name]
    warnings.warn(f"Metric.{name} is now `{new}`. {_UNTIL}", DeprecationWarning, stacklevel=3)
    return value(metric)
