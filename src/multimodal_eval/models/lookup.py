"""Looking models up by name: what is known of one before it is loaded, and opening it once a process."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from multimodal_eval.resources.store import home

T = TypeVar("T")


@dataclass(frozen=True)
class ModelEntry(Generic[T]):
    """The label that a model has, whether it is here (`check` raises if not), and how it is opened."""

    label: str
    check: Callable[[], None]
    open: Callable[[], T]


class ModelKind(Generic[T]):
    """One kind of model, of which at most `kept` stay open.

    `finder` names its function `name -> ModelEntry`, which is imported when it is first asked.
    """

    def __init__(self, finder: str, kept: int) -> None:
        self._finder = finder
        self._opened = lru_cache(maxsize=kept)(lambda name, _home: self.find(name).open())

    def find(self, name: str) -> ModelEntry[T]:
        """Look a model up without loading it."""
        entry: ModelEntry[T] = pkgutil.resolve_name(self._finder)(name)
        return entry

    def label(self, name: str) -> str:
        """The label that a model has, without loading it. One of the catalogue need not be here."""
        return self.find(name).label

    def check(self, name: str) -> None:
        """An `UnavailableError` that says how to get the model, where it is not on this machine. Loads nothing."""
        self.find(name).check()

    def open(self, name: str) -> T:
        """The model of that name, shared by all who ask for it."""
        return self._opened(name, str(home()))

    def forget(self) -> None:
        """Open the models anew when they are asked for again."""
        self._opened.cache_clear()
