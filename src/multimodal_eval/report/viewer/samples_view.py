"""The content of the samples page: rows, filters with their charts and lists, and what to do if nothing matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from multimodal_eval.report.viewer.active_filters import ActiveFilter, active_filters, without_filters
from multimodal_eval.report.viewer.histograms import Histogram, Histograms
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import PAGE, SampleQuery
from multimodal_eval.report.viewer.sample_rows import ShownRow, shown_rows
from multimodal_eval.report.viewer.store import MANY, Store
from multimodal_eval.report.viewer.value_lists import ValueList, ValueLists

MOST_ADVICE = 8  # filters that are tried without if nothing matches
MOST_CHARTS = 12
SWAPPED = "#order,.chart"  # the elements outside of the table that change with the query, as selectors


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """The range of a metric, with the histogram to choose it from if there is one."""

    metric: str
    number: int  # its position among the scores of the run, for the id of its chart
    least: str
    most: str
    chart: Histogram | None


@dataclass(frozen=True, slots=True)
class SamplesView:
    """One page of samples."""

    run: ViewedRun
    query: SampleQuery
    rows: list[ShownRow]
    total: int
    offset: int
    filters: list[ActiveFilter]
    advice: list[tuple[ActiveFilter, int]]  # each filter with the number of samples that match without it
    ranges: list[RangeFilter]
    are_counted: bool  # whether the histograms are ready
    values: list[ValueList] | None  # None while they are counted
    columns: list[str]  # the metrics of the table
    card_metrics: list[str]

    @property
    def here(self) -> str:
        """The address of the page without its query."""
        return f"/samples/{quote(self.run.name, safe='/')}"

    def link(self, query: SampleQuery) -> str:
        """The address of another query on these samples."""
        address = query.address()
        return f"{self.here}?{address}" if address else self.here

    def page_at(self, offset: int) -> str:
        """The address of another page."""
        return self.link(self.query.at(offset))

    @property
    def cleared(self) -> str:
        """The address without filters."""
        return self.link(without_filters(self.query))


def samples_view(
    store: Store, histograms: Histograms, value_lists: ValueLists, run: ViewedRun, query: SampleQuery
) -> SamplesView:
    """Read what the page shows."""
    page = store.page(run, query, PAGE)
    filters = active_filters(query)
    return SamplesView(
        run,
        query,
        shown_rows(run, query, page),
        page.total,
        page.offset,
        filters,
        _advice(store, run, filters) if query.is_filtered and not page.total else [],
        *_ranges(histograms, run, query),
        with_chosen(value_lists.of(run), query),
        _columns(run, query),
        _card_metrics(run, query),
    )


def _advice(store: Store, run: ViewedRun, filters: list[ActiveFilter]) -> list[tuple[ActiveFilter, int]]:
    """How many samples match without each filter, the largest number first. Nothing for a single filter."""
    if len(filters) < 2:
        return []
    counted = [(active, store.rows(run, active.without, 0)[1]) for active in filters[:MOST_ADVICE]]
    return sorted(counted, key=lambda pair: -pair[1])


def _ranges(histograms: Histograms, run: ViewedRun, query: SampleQuery) -> tuple[list[RangeFilter], bool]:
    """All metrics and their parts; those with a range, and the first metrics, have a histogram.

    A page does not wait for the histograms of a large run.
    """
    ranged = {name for name, _, _ in query.ranges}
    drawn = [name for name in run.score_names if name in ranged or name in run.metrics[:MOST_CHARTS]]
    are_ready = run.committed <= MANY or histograms.are_ready(run, drawn)
    charts = histograms.of(run, drawn, query) if are_ready else {}
    limits = [
        RangeFilter(name, number, query.limit(name, "min"), query.limit(name, "max"), charts.get(name))
        for number, name in enumerate(run.score_names)
    ]
    return sorted(limits, key=lambda range_: range_.chart is None), are_ready


def with_chosen(lists: list[ValueList] | None, query: SampleQuery) -> list[ValueList] | None:
    """Add the chosen keys and values that no sample has, so that they stay in the form."""
    if lists is None:
        return None
    chosen = dict(query.metadata)
    known = {values.key for values in lists}
    absent = [ValueList(key, tuple((value, 0) for value in values), len(values)) for key, values in query.metadata]
    return [
        *(_with_values(values, chosen.get(values.key, ())) for values in lists),
        *(values for values in absent if values.key not in known),
    ]


def _with_values(values: ValueList, chosen: Sequence[str]) -> ValueList:
    missing = [(value, 0) for value in chosen if value not in dict(values.values)]
    if not missing or not values.is_complete:  # an incomplete list has a text field for each of them
        return values
    return ValueList(values.key, (*values.values, *missing), values.distinct + len(missing))


def _columns(run: ViewedRun, query: SampleQuery) -> list[str]:
    """The metrics, and the part that the table is sorted by."""
    return [*run.metrics, *([query.sort] if query.sort and query.sort not in run.metrics else [])]


def _card_metrics(run: ViewedRun, query: SampleQuery) -> list[str]:
    """The headline, the metric of the order and those with a range."""
    names = [run.headline or "", query.sort, *(name for name, _, _ in query.ranges)]
    return [name for name in dict.fromkeys(names) if name in run.score_names]
