"""The content of the samples page: rows, filters with their charts and lists, and what to do if nothing matches."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, Thread
from urllib.parse import quote

import msgspec

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.visible import shortened
from multimodal_eval.data.runs.sample_table import decoded_field
from multimodal_eval.evaluation.choices import options_of
from multimodal_eval.report.highlight import Span, highlighted
from multimodal_eval.report.samples import DETAILS, ChoiceReading, choice_metric, marked_letter, reading_of
from multimodal_eval.report.viewer.database import Session, Sql, pointer
from multimodal_eval.report.viewer.histograms import Histogram, Histograms
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_page import REFERENCES, choices_line, decoded, listed
from multimodal_eval.report.viewer.sample_query import (
    LONGEST,
    PAGE,
    ActiveFilter,
    SampleQuery,
    active_filters,
    without_filters,
)
from multimodal_eval.report.viewer.store import MANY, Page, Row, Store

# The values that occur in the metadata of a run, with their counts, for the filters.


MOST_KEYS = 20
LISTED = 50  # values of a key
KEPT = 64  # runs
_SCALARS = ("VARCHAR", "BOOLEAN", "BIGINT", "UBIGINT", "HUGEINT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class ValueList:
    """A key of the metadata with its most frequent values and their counts. `distinct` counts all values."""

    key: str
    values: tuple[tuple[str, int], ...]
    distinct: int

    @property
    def is_complete(self) -> bool:
        """Whether every value is listed."""
        return self.distinct == len(self.values)


class ValueLists:
    """The value lists of runs, cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: OrderedDict[object, list[ValueList]] = OrderedDict()
        self._counting: set[object] = set()
        self._lock = Lock()

    def of(self, run: ViewedRun) -> list[ValueList] | None:
        """The keys with their values. The values of a large run are counted in the background: None until then."""
        if not run.scores:
            return []
        with self._lock:
            if run.identity in self._cached:
                return self._cached[run.identity]
            is_counted = run.identity in self._counting
            self._counting.add(run.identity)
        if run.committed <= MANY:
            return self._count(run)
        if not is_counted:
            Thread(target=self._count, args=(run,), daemon=True).start()
        return None

    def _count(self, run: ViewedRun) -> list[ValueList]:
        lists: list[ValueList] = []
        try:
            with self._store.texts(run) as (session, source):
                lists = [_values(session, source, key) for key in _keys(session, source)]
        except MultimodalEvalError:  # metadata that is not JSON, or too much of it: the page has no lists
            lists = []
        with self._lock:
            self._cached[run.identity] = lists = [values for values in lists if values.distinct]
            self._counting.discard(run.identity)
            while len(self._cached) > KEPT:
                self._cached.popitem(last=False)
        return lists


def _keys(session: Session, source: Sql) -> list[str]:
    """The keys of most samples, the most frequent first."""
    keys = f"select unnest(json_keys(metadata)) as k from {source.text} where json_type(metadata) = 'OBJECT'"
    session.execute(
        f"select k from ({keys}) where length(k) <= {LONGEST} group by k order by count(*) desc, k limit {MOST_KEYS}",
        source.values,
    )
    return [key for (key,) in session.fetchall() if "\0" not in key]


def _values(session: Session, source: Sql, key: str) -> ValueList:
    """The most frequent values of a key that a filter can name: not empty, no lists or objects."""
    value = f"select json_extract_string(metadata, ?) as v, json_type(metadata, ?) as t from {source.text}"
    where = f"t in {_SCALARS} and length(v) between 1 and {LONGEST} and not contains(v, chr(0))"
    counts = f"select v, count(*) as n from ({value}) where {where} group by v"
    session.execute(
        f"select v, n, count(*) over () from ({counts}) order by n desc, v limit {LISTED}",
        (pointer(key), pointer(key), *source.values),
    )
    rows = session.fetchall()
    distinct = rows[0][2] if rows else 0
    # Values of which each occurs once (numbers, names of files) are not worth a list.
    is_listed = bool(rows) and (distinct <= LISTED or rows[0][1] > 1)
    return ValueList(key, tuple((value, count) for value, count, _ in rows) if is_listed else (), distinct)


# A sample as a row of the table or a card of the gallery.


MOST_REFERENCES = 3  # of a row; the page of the sample shows all


@dataclass(frozen=True, slots=True)
class ShownReference:
    """A reference with marked words, and how many times the sample has it."""

    spans: list[Span]
    count: int


@dataclass(frozen=True, slots=True)
class ShownRow:
    """What a table row or a card shows of a sample."""

    row: int
    id: str
    epoch: int | None
    question: str | None
    choices: str  # in one line
    answer: list[Span] | None  # None without an answer; empty if it is blank
    references: list[ShownReference]
    more_references: int
    error: str | None
    image: str | None  # the parameters of its address
    has_audio: bool
    values: Mapping[str, float | None]
    statuses: Mapping[str, str | None]
    parameters: str  # of the address of its page
    reading: ChoiceReading | None = None  # of a multiple-choice question


def shown_rows(run: ViewedRun, query: SampleQuery, page: Page) -> list[ShownRow]:
    """The rows of a page, in order."""
    query_string = query.at(0).address()
    suffix = f"&{query_string}" if query_string else ""
    return [
        _shown(run, row, f"row={row['row']}&at={at}{suffix}") for at, row in enumerate(page.rows, start=page.offset)
    ]


def _shown(run: ViewedRun, row: Row, parameters: str) -> ShownRow:
    references = Counter(reference_texts(row))
    shown = list(references)[:MOST_REFERENCES]
    answer = row["generated_answer"]
    marked = highlighted(shortened(answer or ""), [shortened(text) for text in shown])
    sample, reading = reading_of_row(run, row)
    spans = marked.answer
    if reading is not None and answer is not None:
        spans, shown = marked_letter(answer, reading.read, [options_of(sample).get(reading.read, "")]), []
    image = "kind=image" if row["has_image"] else "kind=images" if row["has_images"] else None
    return ShownRow(
        row["row"],
        row["id"],
        row["epoch"],
        row["question"],
        choices_line(row["choices"]),
        None if answer is None else spans if answer.strip() else [],
        [ShownReference(each, references[text]) for text, each in zip(shown, marked.references, strict=False)],
        len(references) - len(shown) if reading is None else 0,
        row["error"],
        None if image is None else f"row={row['row']}&{image}",
        bool(row["has_audio"]),
        {name: row[name] for name in run.score_names},
        {name: row[f"{name}:status"] for name in run.metrics},
        parameters,
        reading,
    )


def reading_of_row(run: ViewedRun, row: Row) -> tuple[Sample, ChoiceReading | None]:
    """A row as a sample, and the letter that was read in its answer if it is a multiple-choice question."""
    try:
        choices = None if row["choices"] is None else decoded_field("choices", row["choices"])
    except (msgspec.MsgspecError, TypeError):  # a column of another type, in a run folder from another program
        choices = None
    gold = {name: row[name] for name in ("expected_answer", "references", "caption")}
    sample = Sample(row["id"], choices=choices, generated_answer=row["generated_answer"], **gold)
    metric = choice_metric(run.info)
    details = decoded(row.get(DETAILS)) if metric is not None else None
    if metric is None or not isinstance(details, dict):
        return sample, None
    return sample, reading_of(run.info, metric, sample, details, row.get(metric))


def reference_texts(row: Row) -> Sequence[str]:
    """All references of a sample; the same text may occur several times."""
    return [text for name in REFERENCES for text in listed(row[name]) if text is not None]


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
    def reads_letters(self) -> bool:
        """Whether the answers are to multiple-choice questions."""
        return any(row.reading for row in self.rows)

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
