"""The samples of two runs: a query, read from query parameters, and its pages, counts of outcomes and exports.

Search and metadata filters are those of the table of samples. Score ranges name a side: `min.a.cider` is the lowest
cider in the first run, `max.b.cider` the highest in the second, and `min.d` and `max.d` limit the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.visible import LONGEST
from multimodal_eval.report.highlight import Span, differences
from multimodal_eval.report.viewer.database import Session, Sql, all_of, quoted
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_page import REFERENCES, listed
from multimodal_eval.report.viewer.sample_query import PAGE, STATUSES, Parameters, SampleQuery, read_query, whole_number
from multimodal_eval.report.viewer.store import Row, Store

OUTCOMES = {"first": "A is better", "tie": "tie", "second": "B is better", "unscored": "not scored in both"}
ORDERS = {"difference": "difference B − A", "change": "size of the difference", "a": "score of A", "b": "score of B"}
_OWN = ("run", "number", "outcome", "status", "sort", "desc", "offset")
_SIDES = ("a", "b")


@dataclass(frozen=True)
class PairQuery:
    """Two runs, a metric, search, filters, order and page."""

    first: ViewedRun
    second: ViewedRun
    metric: str
    common: SampleQuery = field(default_factory=SampleQuery)  # search and metadata
    limits: tuple[SampleQuery, SampleQuery] = (SampleQuery(), SampleQuery())  # the score ranges of each run
    difference: SampleQuery = field(default_factory=SampleQuery)  # its range is named `d`
    status: str = ""
    outcome: str = ""
    sort: str = "difference"
    descending: bool = False
    offset: int = 0

    @property
    def runs(self) -> tuple[ViewedRun, ViewedRun]:
        """Both runs."""
        return self.first, self.second

    @property
    def is_filtered(self) -> bool:
        """Whether the query may exclude pairs."""
        parts = (self.common, *self.limits, self.difference)
        return bool(self.status or self.outcome or any(part.is_filtered for part in parts))

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower score is better."""
        return is_lower_better(self.first, self.metric)

    def at(self, offset: int) -> PairQuery:
        """The same query with another offset."""
        return replace(self, offset=max(offset, 0))

    def with_outcome(self, outcome: str) -> PairQuery:
        """The same query with another outcome, from its first page."""
        return replace(self, outcome=outcome, offset=0)

    def unfiltered(self) -> PairQuery:
        """The same runs, metric and order without any filter."""
        return PairQuery(self.first, self.second, self.metric, sort=self.sort, descending=self.descending)

    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters, without default values."""
        named = {
            "number": self.metric,
            "outcome": self.outcome,
            "status": self.status,
            "sort": self.sort if self.sort != "difference" else "",
            "desc": "1" if self.descending else "",
            "offset": str(self.offset or ""),
        }
        limits = [
            (f"{name[:3]}.{side}.{name[4:]}", value)
            for side, query in zip(_SIDES, self.limits, strict=True)
            for name, value in query.parameters()
        ]
        return [
            *(("run", run.name) for run in self.runs),
            *((name, value) for name, value in named.items() if value),
            *self.common.parameters(),
            *limits,
            *self.difference.parameters(),
        ]

    def address(self) -> str:
        """The query string."""
        return urlencode(self.parameters())

    def limit(self, end: str) -> str:
        """One end of a range as the form shows it, such as `min.a.cider` or `max.d`."""
        return next((value for name, value in self.parameters() if name == end), "")

    def filters(self) -> list[tuple[str, str]]:
        """The parameters that the form of the page does not set itself: ranges of other metrics."""
        of_form = {f"{end}.{side}.{self.metric}" for end in ("min", "max") for side in _SIDES}
        return [(name, value) for name, value in self.parameters() if name[:6] in _PREFIXES and name not in of_form]


_PREFIXES = tuple(f"{end}.{side}." for end in ("min", "max") for side in _SIDES)


def read_pair_query(parameters: Parameters, first: ViewedRun, second: ViewedRun) -> PairQuery:
    """Parse query parameters. Unknown metrics and invalid values are errors."""
    values = dict(parameters)
    shared = shared_metrics((first, second))
    ranges = [(name, value) for name, value in parameters if name[:4] in ("min.", "max.")]
    sided: dict[str, list[tuple[str, str]]] = {"a": [], "b": [], "d": []}
    for name, value in ranges:
        side, dot, metric = name[4:].partition(".")
        if side not in sided or (side == "d") == bool(dot):
            raise UnknownNameError("score range", name[:100], [*_PREFIXES, "min.d", "max.d"])
        sided[side].append((f"{name[:4]}{metric or side}", value))
    rest = [(name, value) for name, value in parameters if name not in _OWN and (name, value) not in ranges]
    return PairQuery(
        first,
        second,
        _chosen("metric in both runs", values.get("number") or (shared[0] if shared else ""), shared),
        read_query(rest, ()),
        (read_query(sided["a"], first.score_names), read_query(sided["b"], second.score_names)),
        read_query(sided["d"], ["d"]),
        _chosen("value of `status`", values.get("status", ""), ("", *STATUSES)),
        _chosen("value of `outcome`", values.get("outcome", ""), ("", *OUTCOMES)),
        _chosen("value of `sort`", values.get("sort") or "difference", ORDERS),
        _chosen("value of `desc`", values.get("desc", ""), ("", "1")) == "1",
        whole_number(values, "offset"),
    )


def _chosen(what: str, value: str, known: Sequence[str] | dict[str, str]) -> str:
    if value not in known:
        raise UnknownNameError(what, value[:100], [name for name in known if name])
    return value


def shared_metrics(runs: Sequence[ViewedRun]) -> list[str]:
    """The metrics, and parts of metrics, that all runs have."""
    return [name for name in runs[0].score_names if all(name in run.score_names for run in runs)]


def is_lower_better(run: ViewedRun, metric: str) -> bool:
    """Whether a lower score of the metric, or of the metric that it is a part of, is better."""
    entries = run.run.entries
    name = metric_and_part(metric, entries)[0]
    return name in entries and entries[name].direction == "lower"


# Query the samples of two runs that have the same id: pages with both answers, counts of outcomes, exports.


# How the second score compares with the first, from the gain: the difference, or its opposite if lower is better.
_OUTCOME_CONDITIONS = {"first": "g < 0", "tie": "g = 0", "second": "g > 0", "unscored": "g is null"}
_ANSWER = ("generated_answer", "error")  # the texts that differ between the runs
_SORT_KEYS = {"difference": "d", "change": "abs(d)", "a": "x", "b": "y"}


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """How many pairs each run wins."""

    first: int
    tie: int
    second: int
    unscored: int

    @property
    def total(self) -> int:
        """All pairs."""
        return self.first + self.tie + self.second + self.unscored

    def of(self, outcome: str) -> int:
        """The number of pairs with an outcome, or of all pairs."""
        return int(getattr(self, outcome)) if outcome else self.total


@dataclass(frozen=True, slots=True)
class Pair:
    """A sample in both runs, with its two scores."""

    first: Row
    second: Row
    references: list[str]
    answers: tuple[list[Span], list[Span]]  # with the content words that only one of them has marked
    a: float | None
    b: float | None
    difference: float | None
    outcome: str

    @property
    def id(self) -> str:
        """The id, which is the same in both runs."""
        return str(self.first["id"])


@dataclass(frozen=True)
class PairPage:
    """One page of pairs; `counts` ignore the filter by outcome."""

    rows: list[Pair]
    total: int
    offset: int
    counts: OutcomeCounts


class PairStore:
    """Queries on the samples of two runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._aligned: dict[Any, bool] = {}

    def page(self, query: PairQuery, size: int = PAGE) -> PairPage:
        """A page of pairs with the texts of both samples."""
        with self.store.database.session() as session:
            source = self.pairs(session, query)
            counts = _counts(session, source)
            total = counts.of(query.outcome)
            pairs = _window(session, source, query, size, total)
        return PairPage(self._with_texts(query, pairs), total, query.offset, counts)

    def _with_texts(self, query: PairQuery, pairs: Sequence[tuple[Any, ...]]) -> list[Pair]:
        rows_a, rows_b = [a for a, *_ in pairs], [b for _, b, *_ in pairs]
        left = {row["row"]: row for row in self.store.samples(query.first, rows_a)}
        right = {row["row"]: row for row in self.store.samples(query.second, rows_b, _ANSWER)}
        return [
            Pair(
                left[a],
                right[b],
                _references(left[a]),
                _marked(left[a], right[b]),
                x,
                y,
                d,
                outcome_of(d, lower=query.lower_is_better),
            )
            for a, b, x, y, d in pairs
        ]

    def every(self, query: PairQuery, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """All pairs for an export: id, first score, second score, difference."""
        with self.store.database.session(seconds=None) as session:
            source = self.pairs(session, query)
            limit = "" if most is None else f"limit {int(most)}"
            where = _of_outcome(query)
            session.execute(f"select id, x, y, d from {source.text} {where} {_order(query)} {limit}", source.values)
            yield from session.rows()

    def pairs(self, session: Session, query: PairQuery, extra: Sequence[str] = (), *, outcome: bool = False) -> Sql:
        """Both runs joined by id, with all filters; that of the outcome only if asked for.

        Columns: rows a and b, id, scores x and y, difference d, gain g. `extra` are further expressions on the tables
        l and r.
        """
        joined = self.joined(session, *query.runs)
        x, y = (f"{side}.{quoted(query.metric)}" for side in "lr")
        difference = _number(f"{y} - {x}")
        gain = _number(f"{x} - {y}") if query.lower_is_better else difference
        columns = ", ".join(
            ["l.row a", "r.row b", "l.id id", f"{x} x", f"{y} y", f"{difference} d", f"{gain} g", *extra]
        )
        where = all_of([*_limits(query), *_status(query), *self._matching(session, query)])
        pairs = f"(select {columns} from {joined.text} {where.text})"
        text = f"(select * from {pairs} {_of_outcome(query)})" if outcome and query.outcome else pairs
        return Sql(text, joined.values + where.values)

    def joined(self, session: Session, first: ViewedRun, second: ViewedRun) -> Sql:
        """The scores of two runs as tables l and r, joined by id.

        If the ids are in the same order, a positional join is faster.
        """
        left, right = (self.store.scores(session, run) for run in (first, second))
        by = "join {} r on l.id = r.id"
        if not left.values and not right.values and self._is_aligned(session, first, second, left, right):
            by = "positional join {} r"
        return Sql(f"{left.text} l {by.format(right.text)}", left.values + right.values)

    def _matching(self, session: Session, query: PairQuery) -> Iterator[Sql]:
        """The pairs that a search or a metadata filter finds. Answers are searched in both runs."""
        rows = self.store.matching(query.first, query.common)
        if rows is None:
            return
        session.register("matches_first", pa.table({"row": rows}))
        condition = "l.row in (select row from matches_first)"
        if query.common.text and query.common.field == "answer":
            others = self.store.matching(query.second, query.common)
            session.register("matches_second", pa.table({"row": others}))
            condition = f"({condition} or r.row in (select row from matches_second))"
        yield Sql(condition)

    def _is_aligned(self, session: Session, first: ViewedRun, second: ViewedRun, left: Sql, right: Sql) -> bool:
        pair = (first.identity, second.identity)
        if pair not in self._aligned:
            mismatch = (
                f"select 1 from {left.text} l positional join {right.text} r where l.id is distinct from r.id limit 1"
            )
            self._aligned[pair] = session.execute(mismatch).fetchone() is None
        return self._aligned[pair]


def _references(row: Row) -> list[str]:
    """The references, without repetitions."""
    return list(dict.fromkeys(text for name in REFERENCES for text in listed(row.get(name))))


def _number(expression: str) -> str:
    """An expression that is null instead of NaN, which DuckDB sorts above all numbers."""
    return f"case when isnan({expression}) then null else {expression} end"


def _marked(first: Row, second: Row) -> tuple[list[Span], list[Span]]:
    texts = [(row["generated_answer"] or "")[:LONGEST] for row in (first, second)]
    return differences(texts[0], texts[1])


def outcome_of(difference: float | None, *, lower: bool) -> str:
    """Which run is better, from the second score minus the first."""
    if difference is None or difference == 0:
        return "unscored" if difference is None else "tie"
    return "second" if (difference > 0) != lower else "first"


def _limits(query: PairQuery) -> Iterator[Sql]:
    for side, limits in zip("lr", query.limits, strict=True):
        for name, least, most in limits.ranges:
            yield from _between(f"{side}.{quoted(name)}", least, most)
    metric = quoted(query.metric)
    for _, least, most in query.difference.ranges:
        yield from _between(f"(r.{metric} - l.{metric})", least, most)


def _between(column: str, least: float | None, most: float | None) -> Iterator[Sql]:
    if least is not None:
        yield Sql(f"{column} >= ? and not isnan({column})", (least,))
    if most is not None:
        yield Sql(f"{column} <= ?", (most,))


def _status(query: PairQuery) -> Iterator[Sql]:
    """Both samples are scored, or at least one has the status."""
    if not query.status:
        return
    columns = [
        f"{side}.{quoted(metric_and_part(query.metric, run.metrics)[0] + ':status')}"
        for side, run in zip("lr", query.runs, strict=True)
    ]
    if query.status == "ok":
        yield Sql("(" + " and ".join(f"{column} = 'ok'" for column in columns) + ")")
    elif query.status == "unscored":
        yield Sql("(" + " or ".join(f"{column} <> 'ok'" for column in columns) + ")")
    else:
        yield Sql("(" + " or ".join(f"{column} = ?" for column in columns) + ")", (query.status,) * 2)


def _of_outcome(query: PairQuery) -> str:
    return f"where {_OUTCOME_CONDITIONS[query.outcome]}" if query.outcome else ""


def _counts(session: Session, source: Sql) -> OutcomeCounts:
    counted = ", ".join(f"count(*) filter ({condition})" for condition in _OUTCOME_CONDITIONS.values())
    return OutcomeCounts(*session.execute(f"select {counted} from {source.text}", source.values).fetchone())


def _order(query: PairQuery, *, reverse: bool = False) -> str:
    direction = "desc" if query.descending != reverse else "asc"
    ends = ("first", "desc") if reverse else ("last", "asc")
    return f"order by {_SORT_KEYS[query.sort]} {direction} nulls {ends[0]}, a {ends[1]}"


def _window(session: Session, source: Sql, query: PairQuery, size: int, total: int) -> list[tuple[Any, ...]]:
    """The pairs of a page; pages in the second half are queried from the end, which is faster to reach."""
    size = min(size, total - query.offset)
    if size <= 0:
        return []
    reverse = query.offset > total // 2
    offset = total - query.offset - size if reverse else query.offset
    page = f"{_of_outcome(query)} {_order(query, reverse=reverse)} limit {size} offset {offset}"
    session.execute(f"select a, b, x, y, d from {source.text} {page}", source.values)
    pairs = session.fetchall()
    return pairs[::-1] if reverse else pairs
