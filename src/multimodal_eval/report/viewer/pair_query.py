"""A query for the samples of two runs, read from query parameters and checked against the runs.

Search and metadata filters are those of the table of samples. Score ranges name a side: `min.a.cider` is the lowest
cider in the first run, `max.b.cider` the highest in the second, and `min.d` and `max.d` limit the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import STATUSES, Parameters, SampleQuery, read_query, whole_number

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
