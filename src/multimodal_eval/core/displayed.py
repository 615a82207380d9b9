"""Results that a notebook shows as tables and drawings.

How a result looks is decided in `display`, which is imported when a result is shown: records do not depend on
the layer that draws them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

__all__ = ["Displayed", "HasHtml"]

_DISPLAYS = "multimodal_eval.display.results"


class _Displays(Protocol):
    def html_of(self, result: object) -> str: ...

    def text_of(self, result: object) -> str: ...


def _displays() -> _Displays:
    return cast(_Displays, import_module(_DISPLAYS))


class HasHtml:
    """A result that notebooks show as HTML. Its `repr` is that of its class."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _displays().html_of(self)


class Displayed(HasHtml):
    """A result that notebooks show as HTML, and terminals as the same tables in plain text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _displays().text_of(self)
