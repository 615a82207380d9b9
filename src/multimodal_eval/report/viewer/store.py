"""Query the samples of runs: pages, single samples, whole tables. `pair_store` has the pairs of two runs.

Scores are in scores/, texts in samples/. The narrow score columns decide which rows a page shows; the texts of these
rows are then read from the parts that contain them. A search reads all texts of the searched columns and caches the
matching rows for the next page.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.core.errors import MultimodalEvalError, UnknownNameError
from multimodal_eval.report.samples import DETAILS, choice_metric
from multimodal_eval.report.viewer.database import (
    Database,
    Session,
    Sql,
    all_of,
    lowered,
    of_metadata,
    of_scores,
    of_search,
    order,
    parquet,
    quoted,
)
from multimodal_eval.report.viewer.runs import NoSuchRunError, ViewedRun
from multimodal_eval.report.viewer.sample_query import PAGE, SEARCHED, SampleQuery

KEPT_SEARCHES = 12
MANY = 20_000  # samples
SERVED = ("image", "images", "audio", "video")
_EXPORTED = ("choices", "epoch")  # in addition to question and answer, if a sample has them
# The columns of the samples table. Media content may be large, so the table only checks whether there is any.
_TEXTS = ("question", "generated_answer", *SEARCHED["references"], "error", "choices", "epoch")
_SINGLE = ("image", "audio", "video")

Row = dict[str, Any]  # a row of a run folder, by column name
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Page:
    """One page of samples, and the total number of samples."""

    rows: list[Row]
    total: int
    offset: int


class Store:
    """Queries on samples."""

    def __init__(self, root: Path) -> None:
        self._database = Database(root)
        self._searches: OrderedDict[Any, Rows] = OrderedDict()
        self._preloaded: set[Any] = set()
        self._lock = Lock()

    def close(self) -> None:
        """Free the memory."""
        self._database.close()

    # for queries of other modules

    @property
    def database(self) -> Database:
        """The database with the cached tables."""
        return self._database

    def scores(self, session: Session, run: ViewedRun) -> Sql:
        """The rows, ids, scores and statuses of a run."""
        return _scores(session, run)

    def matching(self, run: ViewedRun, query: SampleQuery) -> Rows | None:
        """The rows whose texts match the query; None if it does not depend on texts."""
        return self._searched(run, query) if query.reads_texts else None

    # pages

    def page(self, run: ViewedRun, query: SampleQuery, size: int = PAGE) -> Page:
        """A page of samples with their scores, statuses and texts."""
        rows, total = self.rows(run, query, size)
        page = Page(self.samples(run, rows), total, query.offset)
        self._preload(run)
        return page

    def _preload(self, run: ViewedRun) -> None:
        """Load the scores of a large run in the background, since the user will probably sort the samples next."""
        if run.is_done and run.committed > MANY and run.identity not in self._preloaded:
            self._preloaded.add(run.identity)
            Thread(target=self._load, args=(run,), daemon=True).start()

    def _load(self, run: ViewedRun) -> None:
        with suppress(MultimodalEvalError), self._database.session(seconds=None) as session:
            _scores(session, run)

    def rows(self, run: ViewedRun, query: SampleQuery, size: int) -> tuple[list[int], int]:
        """The rows of a page, and the number of rows in the whole table."""
        if not run.scores:  # the run has just started
            return [], 0
        matches = self.matches(run, query) if query.is_filtered else None
        total = run.committed if matches is None else len(matches)
        if not query.sort and matches is not None:
            return matches[query.offset : query.offset + size].tolist(), total
        if not query.sort and run.is_whole:
            return list(range(total)[query.offset : query.offset + size]), total
        with self._database.session() as session:
            # Conditions on scores are faster to check again than to look up.
            where = Sql("") if query.reads_texts else all_of(of_scores(run, query))
            source = _among(session, _scores(session, run), matches if query.reads_texts else None)
            return _window(session, source, where, query, size, total), total

    def matches(self, run: ViewedRun, query: SampleQuery) -> Rows:
        """The rows that match all filters, ascending; cached for the next page."""
        return self._cached((run.identity, query.filters), lambda: self._matching(run, query))

    def _matching(self, run: ViewedRun, query: SampleQuery) -> Rows:
        texts = self._searched(run, query) if query.reads_texts else None
        where = all_of(of_scores(run, query))
        if texts is not None and not where.text:
            return texts
        with self._database.session() as session:
            scores = _rows_where(session, _scores(session, run), where)
        return scores if texts is None else np.intersect1d(scores, texts, assume_unique=True)

    def _cached(self, key: Any, find: Callable[[], Rows]) -> Rows:
        with self._lock:
            if key in self._searches:
                self._searches.move_to_end(key)
                return self._searches[key]
        rows = find()
        with self._lock:
            self._searches[key] = rows
            while len(self._searches) > KEPT_SEARCHES:
                self._searches.popitem(last=False)
        return rows

    @contextmanager
    def scored(
        self, run: ViewedRun, query: SampleQuery | None = None, *, load: bool = True
    ) -> Iterator[tuple[Session, Sql]]:
        """A session, and in it the row, id, scores and statuses of the matching samples as a table.

        The run must have committed parts. Without `load`, scores that are not in memory are read from the files.
        """
        matches = None if query is None or not query.is_filtered else self.matches(run, query)
        with self._database.session() as session:
            yield session, _among(session, _scores(session, run, load=load), matches)

    def _searched(self, run: ViewedRun, query: SampleQuery) -> Rows:
        """The rows whose texts match, in order; cached, since a range often changes while a search stays."""
        return self._cached((run.identity, query.text, query.field, query.metadata), lambda: self._search(run, query))

    def _search(self, run: ViewedRun, query: SampleQuery) -> Rows:
        with self._database.session() as session:
            matches = [
                _rows_where(session, source, all_of(conditions))
                for source, conditions in (
                    (_lowered(session, run, query.field), list(of_search(query))),
                    (parquet(run.samples().values()), list(of_metadata(query))),
                )
                if conditions
            ]
        return matches[0] if len(matches) == 1 else np.intersect1d(matches[0], matches[1], assume_unique=True)

    def samples(self, run: ViewedRun, rows: Sequence[int], fields: Sequence[str] | None = None) -> list[Row]:
        """Scores, statuses and texts of the given rows, in this order; with `fields`, only these texts."""
        if not rows:
            return []
        parts = sorted({run.part_of(row) for row in rows})
        shown = ["row", "id", *run.score_names, *_statuses(run)]
        with self._database.session() as session:
            scores = _by_row(session, _scores(session, run, parts), {name: quoted(name) for name in shown}, rows)
            names = {name: text for name, text in _texts(run).items() if fields is None or name in ("row", *fields)}
            texts = _by_row(session, parquet(run.samples(parts).values()), names, rows)
            if fields is None and (metric := choice_metric(run.info)) is not None:
                texts = self._with_readings(session, run, metric, parts, texts)
        return [{**scores[row], **texts[row]} for row in rows]

    def _with_readings(
        self, session: Session, run: ViewedRun, metric: str, parts: Sequence[int], texts: dict[int, Row]
    ) -> dict[int, Row]:
        """The rows with the details of a metric that reads letters."""
        if f"{metric}:details" not in run.columns:
            return texts
        columns = {"row": "row", DETAILS: quoted(f"{metric}:details")}
        read = _by_row(session, parquet(run.score_files(parts)), columns, list(texts))
        return {row: {**text, **read.get(row, {})} for row, text in texts.items()}

    def row_of(self, run: ViewedRun, identifier: str) -> int:
        """The row of the sample with an id; the first one if answers were repeated."""
        with self._database.session() as session:
            matches = _rows_where(session, _scores(session, run, load=False), Sql("where id = ?", (identifier,)))
        if not len(matches):
            raise NoSuchRunError(f"the run {run.name} has no sample with the id {identifier[:100]!r}")
        return int(matches[0])

    def sample(self, run: ViewedRun, row: int) -> tuple[Row, Row]:
        """The sample and the scores of one row, without the content of media."""
        part = _part(run, row)
        with self._database.session() as session:
            sample = _single_row(session, run.samples([part])[part], _without_content(run), row)
            return sample, _single_row(session, run.score_files([part])[0], "*", row)

    def media(self, run: ViewedRun, row: int, kind: str, item: int = 0) -> str | bytes | None:
        """The name or the content of an image, audio or video of a row. `item` is the index in `images`."""
        if kind not in SERVED:
            raise UnknownNameError("kind of media", kind[:100], SERVED)
        part = _part(run, row)
        if kind not in run.sample_columns:
            return None
        index = f"[{item + 1}]" if kind == "images" else ""  # SQL lists start at 1
        columns = f"{kind}{index} as name, {kind}_bytes{index} as content"
        with self._database.session() as session:
            medium = _single_row(session, run.samples([part])[part], columns, row)
        return medium["content"] if medium["name"] is None else str(medium["name"])

    @contextmanager
    def texts(self, run: ViewedRun) -> Iterator[tuple[Session, Sql]]:
        """A session, and in it all columns of the committed samples as a table."""
        with self._database.session() as session:
            yield session, parquet(run.samples().values())

    # whole tables

    def fields_to_export(self, run: ViewedRun) -> list[str]:
        """The additional fields for which at least one sample has a value."""
        names = [name for name in _EXPORTED if run.scores and name in run.sample_columns]
        if not names:
            return []
        texts = parquet(run.samples().values())
        with self._database.session() as session:
            counted = f"select {', '.join(f'count({name})' for name in names)} from {texts.text}"
            counts = session.execute(counted, texts.values).fetchone()
        return [name for name, count in zip(names, counts, strict=True) if count]

    def every(
        self, run: ViewedRun, query: SampleQuery, fields: Sequence[str], most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """All rows of the table for an export: row, id, the given sample fields, scores, statuses."""
        if not run.scores:
            return
        matches = self.matches(run, query) if query.is_filtered else None
        names = [f"s.{quoted(name)}" for name in (*run.score_names, *_statuses(run))]
        columns = ", ".join(["row", "s.id", *(f"t.{quoted(name)}" for name in fields), *names])
        texts = parquet(run.samples().values())
        with self._database.session(seconds=None) as session:
            scores = _among(session, _scores(session, run), matches)
            narrow = f"(select * from {scores.text}) s"
            limit = "" if most is None else f"limit {int(most)}"
            statement = f"select {columns} from {narrow} join {texts.text} t using (row) {order(query)} {limit}"
            session.execute(statement, scores.values + texts.values)
            yield from session.rows()


def _texts(run: ViewedRun) -> dict[str, str]:
    """The SQL expressions of the samples table, by name. Run folders of older versions have fewer columns."""
    existing = run.sample_columns
    return {
        "row": "row",
        **{name: quoted(name) if name in existing else "null" for name in _TEXTS},
        "has_image": "image is not null or image_bytes is not null",
        "has_images": "len(images) > 0" if "images" in existing else "false",
        "has_audio": "audio is not null or audio_bytes is not null" if "audio" in existing else "false",
    }


def _without_content(run: ViewedRun) -> str:
    """All columns except the content of media, and whether there is any content."""
    existing = run.sample_columns
    single = [kind for kind in _SINGLE if kind in existing]
    content = [f"{kind}_bytes" for kind in (*single, *(["images"] if "images" in existing else []))]
    has = ", ".join(f"{kind} is not null or {kind}_bytes is not null as has_{kind}" for kind in single)
    return f"* exclude ({', '.join(content)}), {has}"


def _statuses(run: ViewedRun) -> list[str]:
    return [f"{name}:status" for name in run.metrics]


def _scores(session: Session, run: ViewedRun, parts: Sequence[int] | None = None, *, load: bool = True) -> Sql:
    """The narrow columns of a run, from memory if they are cached, otherwise from the files of the given parts."""
    files = parquet(run.score_files(parts), union=not run.is_done)
    if not run.is_done:
        return files
    whole = parquet(run.scores.values())
    columns = ["row", "id", *map(quoted, run.score_names)]
    columns += [f"{name}::status as {name}" for name in map(quoted, _statuses(run))]
    size = run.committed * (8 * len(run.score_names) + len(run.metrics) + 48)
    source = Sql(f"select {', '.join(columns)} from {whole.text}", whole.values)
    name = session.kept(("scores", run.identity), source, size, load=load and parts is None)
    return files if name is None else Sql(name)


def _lowered(session: Session, run: ViewedRun, field: str) -> Sql:
    """The searched texts in lower case."""
    files = parquet(run.samples().values())
    source = Sql(f"select row, {', '.join(lowered(field))} from {files.text}", files.values)
    if not run.is_done:
        return Sql(f"({source.text})", source.values)
    size = 2 * sum(path.stat().st_size for path in run.samples().values())  # an estimate: compressed, all columns
    name = session.kept(("texts", field, run.identity), source, size * len(SEARCHED[field]))
    return Sql(f"({source.text})", source.values) if name is None else Sql(name)


def _among(session: Session, source: Sql, matches: Rows | None) -> Sql:
    """Only the rows that match a search."""
    if matches is None:
        return source
    session.register("matches", pa.table({"row": matches}))
    return Sql(f"(select * from {source.text} semi join matches using (row))", source.values)


def _rows_where(session: Session, source: Sql, where: Sql) -> Rows:
    cursor = session.execute(f"select row from {source.text} {where.text}", source.values + where.values)
    return np.sort(np.asarray(cursor.fetchnumpy()["row"], dtype=np.int64))


def _by_row(session: Session, source: Sql, columns: Mapping[str, str], rows: Sequence[int]) -> dict[int, Row]:
    """The given rows, by row number; `columns` are expressions by name, with the row number first."""
    chosen = "semi join (select unnest(?::bigint[]) as row) using (row)"
    session.execute(f"select {', '.join(columns.values())} from {source.text} {chosen}", (*source.values, list(rows)))
    return {values[0]: dict(zip(columns, values, strict=True)) for values in session.fetchall()}


def _part(run: ViewedRun, row: int) -> int:
    part = run.part_of(row)
    if part not in run.scores:
        raise NoSuchRunError(f"the part of row {row} is not scored yet")
    return part


def _single_row(session: Session, path: Path, columns: str, row: int) -> Row:
    source = parquet([path])
    cursor = session.execute(f"select {columns} from {source.text} where row = ?", (*source.values, row))
    names = [column[0] for column in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def _window(session: Session, source: Sql, where: Sql, query: SampleQuery, size: int, total: int) -> list[int]:
    """The rows of a page. Only the start of a sorted table is fast to reach, so pages in the second half are queried
    from the end, in reverse order."""
    size = min(size, total - query.offset)
    if size <= 0:
        return []
    reverse = query.offset > total // 2
    offset = total - query.offset - size if reverse else query.offset
    page = f"{order(query, reverse=reverse)} limit {size} offset {offset}"
    statement = f"select row from {source.text} {where.text} {page}"
    session.execute(statement, source.values + where.values)
    rows = [row for (row,) in session.fetchall()]
    return rows[::-1] if reverse else rows
