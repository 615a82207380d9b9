"""Corpus statistics: what a metric gathers from all samples before it scores the first."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_type_hints, runtime_checkable

import msgspec

from multimodal_eval.core.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.core.metric import Metric
    from multimodal_eval.core.options import OptionValues

__all__ = ["Corpus", "CorpusGroups", "GroupKeys", "LargeState", "default_state", "fitted"]


@runtime_checkable
class LargeState(Protocol):
    """Corpus statistics whose full sum may not fit into memory.

    The state of each part is split into buckets; equal keys go to the same bucket in every part. Each bucket is then
    summed over all parts, without entries that no score needs. Finally the buckets are combined. A state may also have
    `rows`, the number of samples in it, which is summed too and set on the combined state.
    """

    def pack(self, buckets: int) -> list[bytes]:
        """The state, split into this many buckets."""
        ...

    @classmethod
    def merged(cls, pieces: Iterable[bytes]) -> bytes:
        """The sum of one bucket's pieces."""
        ...

    @classmethod
    def united(cls, buckets: Iterable[bytes]) -> Any:
        """The state combined from all buckets."""
        ...


class GroupKeys(Protocol):
    """The keys of some rows, by which they belong together."""

    @property
    def has_key(self) -> NDArray[np.bool_]:
        """Which rows have a key; the others belong to no other row."""
        ...

    @property
    def hashes(self) -> NDArray[np.int64]:
        """The hashes of the keys, the same in every process. Different keys may have the same hash."""
        ...


class CorpusGroups(Protocol):
    """Finds the samples that must be in one call of `fit`, so that a run can bring them together from all its parts.

    `fields` are the sample fields with the keys. If `is_required`, a run in which no sample has one is refused.
    """

    column: str | None  # for the message
    is_required: bool
    fields: tuple[str, ...]

    def keys(self, samples: Sequence[Sample]) -> GroupKeys | None:
        """The keys of the samples; None if none has one."""
        ...

    def pack(self, samples: Sequence[Sample], rows: NDArray[np.int64]) -> bytes:
        """What `fit` needs of some rows."""
        ...

    def unpack(self, pieces: Iterable[bytes]) -> tuple[Sequence[Sample], int]:
        """Samples for `fit` from many packed pieces, and the number of rows behind them."""
        ...


class Corpus(msgspec.Struct, frozen=True):
    """The corpus statistics of a metric. Each function gets those of the metric's options that it takes.

    `fit(samples)` returns a state. States are additive: that of a whole equals the sum (`+`) over its parts. None means
    that the metric needs none with these options. A state may have `settings` (for the signature), `check()` (which
    raises if the whole corpus does not suffice), `save(path)` and `load(path)`; it may be a `LargeState`.

    `groups()` finds samples that must be in one call of `fit`; `default()` is the state for a single sample, and for a
    run whose `fit` returns None. `state` is the type of a state, by default what `fit` is annotated to return. Metrics
    with the same `key`, by default `fit` and its options, share their statistics, which are computed once.
    """

    fit: Callable[..., Any]
    groups: Callable[..., CorpusGroups | None] | None = None
    default: Callable[..., Any] | None = None
    state: Any = None
    key: Hashable = None


def fitted(metric: Metric, samples: Iterable[Sample]) -> Any:
    """The corpus statistics of some samples; None if the metric needs none."""
    corpus = metric.corpus
    return None if corpus is None else corpus.fit(samples, **taken(corpus.fit, metric.options))


def default_state(metric: Metric) -> Any:
    """The state for a single sample, and for a run whose `fit` returns None."""
    default = None if metric.corpus is None else metric.corpus.default
    return None if default is None else default(**taken(default, metric.options))


def corpus_groups(metric: Metric) -> CorpusGroups | None:
    """How samples that must be fitted together are found; None if `fit` may get them in any parts."""
    groups = None if metric.corpus is None else metric.corpus.groups
    return None if groups is None else groups(**taken(groups, metric.options))


def corpus_key(metric: Metric) -> Hashable:
    """Equal for metrics that share their statistics."""
    corpus = metric.corpus
    if corpus is None or corpus.key is not None:
        return None if corpus is None else corpus.key
    defaults = {name: value for name, value in _parameters(corpus.fit).items() if value is not inspect.Parameter.empty}
    arguments = {**defaults, **taken(corpus.fit, metric.options)}
    return (corpus.fit, *((name, repr(value)) for name, value in sorted(arguments.items())))


def state_type(metric: Metric) -> Any:
    """The type of the metric's states."""
    assert metric.corpus is not None
    return returned(metric.corpus.fit) if metric.corpus.state is None else metric.corpus.state


def check_state(state: Any) -> None:
    """Raise if the corpus is too small to score with."""
    if hasattr(state, "check"):
        state.check()


def save_state(state: Any, path: Path) -> None:
    """Write a state with its own `save`, or as plain values; equal states give equal bytes."""
    if hasattr(state, "save"):
        state.save(path)
    else:
        path.write_bytes(msgspec.msgpack.encode(state, order="deterministic"))


def load_state(metric: Metric, path: Path) -> Any:
    """Read a state back."""
    kind = state_type(metric)
    if hasattr(kind, "load"):
        return kind.load(path)
    return msgspec.msgpack.decode(path.read_bytes(), type=kind)


def taken(function: Callable[..., Any], options: OptionValues) -> OptionValues:
    """The options that a function takes."""
    parameters = _parameters(function)
    return {name: value for name, value in options.items() if name in parameters}


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The arguments with their defaults, or `Parameter.empty`."""
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


@lru_cache(maxsize=256)
def returned(function: Callable[..., Any]) -> Any:
    """What a function is annotated to return; `X` for `X | None`."""
    hint = get_type_hints(function).get("return", Any)
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if len(kinds) == 1 and NoneType in get_args(hint) else hint
