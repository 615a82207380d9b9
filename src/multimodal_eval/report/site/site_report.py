"""The report of a submission as a page of the site."""

from __future__ import annotations

__all__ = ["with_link_back"]

_SECTIONS = '<nav aria-label="Sections">'
_BACK = '<a href="index.html">← Submission</a>'


def with_link_back(page: str) -> str:
    """The report with a link to the page of its submission. Otherwise it stays one file that loads nothing."""
    return page.replace(_SECTIONS, f"{_SECTIONS}\n{_BACK}", 1)
