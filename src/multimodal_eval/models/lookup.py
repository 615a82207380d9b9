"""Look up models by name without loading them, and open each once per process."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from multimodal_eval.core.errors import ModelError, MultimodalEvalError
from multimodal_eval.resources.store import home

_LONGEST_REASON = 300  # characters

T = TypeVar("T")


@contextmanager
def model_faults(name: str) -> Iterator[None]:
    """Turn whatever a broken model file causes, in this package or in a library, into a ModelError.

    The libraries raise exceptions of many kinds, and code written in Rust raises its panics as a BaseException.
    """
    try:
        yield
    except (MultimodalEvalError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as fault:
        reason = (str(fault).splitlines() or [""])[0][:_LONGEST_REASON]
        raise ModelError(
            f"the model {name!r} cannot be used: its files are broken or do not fit together "
            f"({type(fault).__name__}: {reason})"
        ) from fault


@dataclass(frozen=True)
class ModelEntry(Generic[T]):
    """A model's label, a check that raises if it is not on this machine, and a function that opens it."""

    label: str
    check: Callable[[], None]
    open: Callable[[], T]


class ModelKind(Generic[T]):
    """One kind of model. At most `max_open` models stay open.

    `finder` is the import path of a function `name -> ModelEntry`, which is imported on first use.
    """

    def __init__(self, finder: str, max_open: int) -> None:
        self._finder = finder
        self._opened = lru_cache(maxsize=max_open)(lambda name, _home: self._load(name))

    def find(self, name: str) -> ModelEntry[T]:
        """Look up a model without loading it."""
        finder = pkgutil.resolve_name(self._finder)
        with model_faults(name):
            entry: ModelEntry[T] = finder(name)
        return entry

    def label(self, name: str) -> str:
        """The model's label. Loads nothing; a model of the catalogue need not be on this machine."""
        return self.find(name).label

    def check(self, name: str) -> None:
        """Raise an `UnavailableError` that says how to get the model if it is not on this machine. Loads nothing."""
        entry = self.find(name)
        with model_faults(name):
            entry.check()

    def open(self, name: str) -> T:
        """The model with that name, shared by all callers."""
        return self._opened(name, str(home()))

    def _load(self, name: str) -> T:
        entry = self.find(name)
        with model_faults(name):
            return entry.open()

    def forget(self) -> None:
        """Close the open models, so that the next `open` loads them again."""
        self._opened.cache_clear()
