"""The values that occur in the metadata of a run, with their counts, for the filters of samples."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock, Thread

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.report.viewer.conditions import pointer
from multimodal_eval.report.viewer.database import Session, Sql
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import LONGEST
from multimodal_eval.report.viewer.store import MANY, Store

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
