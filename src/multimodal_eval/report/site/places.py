"""Where submissions are among the others, by each metric."""

from __future__ import annotations

from collections.abc import Iterable

from multimodal_eval.report.site.content import SiteContent, Submission

__all__ = ["Places", "tied_places"]

SHADES = 3


class Places:
    """The order of the submissions by every metric."""

    def __init__(self, site: SiteContent) -> None:
        names = {name for submission in site.submissions for name in submission.entries}
        self._sorted = {name: _best_first(site, name) for name in names}

    def of(self, submission: Submission) -> dict[str, int | None]:
        """The place by each metric, with equal places for equal values; None without a value."""
        return {
            name: None if entry.value is None else self._sorted[name].index(entry.value) + 1
            for name, entry in submission.entries.items()
        }

    def shade(self, value: float | None, metric: str) -> int:
        """How dark the cell of a value is: 0 for the worst values of the column, up to 3 for the best."""
        ordered = self._sorted[metric]
        best, worst = (ordered[0], ordered[-1]) if ordered else (0.0, 0.0)
        if value is None or best == worst:
            return 0
        return min(SHADES, int((SHADES + 1) * (value - worst) / (best - worst)))


def _best_first(site: SiteContent, metric: str) -> list[float]:
    entries = [entry for submission in site.submissions if (entry := submission.entries.get(metric)) is not None]
    values = [entry.value for entry in entries if entry.value is not None]
    return sorted(values, reverse=bool(entries) and entries[0].direction == "higher")


def tied_places(submission: Submission, site: SiteContent) -> str:
    """The places of the submissions that are tied with this one: 2–5, 7."""
    others = (site.find(name) for name in submission.row.tied_with or ())
    return ", ".join(_ranges(sorted({other.row.place for other in others if other is not None})))


def _ranges(places: Iterable[int]) -> Iterable[str]:
    start = end = None
    for place in (*places, None):
        if place is not None and end is not None and place == end + 1:
            end = place
            continue
        if start is not None:
            yield str(start) if start == end else f"{start}, {end}" if end == start + 1 else f"{start}–{end}"
        start = end = place
