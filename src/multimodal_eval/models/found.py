"""A model that was looked up and not loaded yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Found(Generic[T]):
    """The label that a model has, whether it is here (`check` raises if not), and how it is opened."""

    label: str
    check: Callable[[], None]
    open: Callable[[], T]
