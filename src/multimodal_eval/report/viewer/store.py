"""The samples of runs: pages of them, one of them, pairs of them.

Numbers lie in scores/, texts in samples/. What decides about a page is looked up in the narrow columns alone; the texts
of the rows that are shown are then read from the parts that hold them. A search reads every text of the columns that it
searches; the rows that it found are kept for the next page.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.report.viewer.conditions import all_of, lowered, of_metadata, of_scores, of_search, order
from multimodal_eval.report.viewer.database import Database, Session, Sql, parquet, quoted
from multimodal_eval.report.viewer.runs import NoSuchRunError, ViewedRun
from multimodal_eval.report.viewer.sample_query import PAGE, PLACES, SampleQuery

KEPT_SEARCHES = 8
MANY = 20_000  # samples
SERVED = ("image", "images", "audio")  # a video is named only
_EXPORTED = ("choices", "epoch")  # beside question and answer, if a sample has them
# What a table shows of a sample. Media may be content, and large: that there are some is enough.
_TEXTS = ("question", "generated_answer", "error", "choices", "epoch")
_SINGLE = ("image", "audio", "video")

Row = dict[str, Any]  # a row of a run folder by its columns, which a metric may name as it likes
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Page:
    """Some samples in order, and how many there are."""

    rows: list[Row]
    total: int
    offset: int


class Store:
    """Questions about samples."""

    def __init__(self, root: Path) -> None:
        self._database = Database(root)
        self._found: OrderedDict[Any, Rows] = OrderedDict()
        self._aligned: dict[Any, bool] = {}
        self._expected: set[Any] = set()
        self._lock = Lock()

    def close(self) -> None:
        """Let go of the memory."""
        self._database.close()

    # pages

    def page(self, run: ViewedRun, query: SampleQuery, size: int = PAGE) -> Page:
        """The samples of a page with their numbers, statuses and texts."""
        rows, total = self.rows(run, query, size)
        page = Page(self.samples(run, rows), total, query.offset)
        self._expect(run)
        return page

    def _expect(self, run: ViewedRun) -> None:
        """Whoever looks at samples will sort them: the numbers of a large run are loaded while the page is read."""
        if run.is_done and run.committed > MANY and run.identity not in self._expected:
            self._expected.add(run.identity)
            Thread(target=self._load, args=(run,), daemon=True).start()

    def _load(self, run: ViewedRun) -> None:
        with self._database.session(seconds=None) as session:
            _scores(session, run)

    def rows(self, run: ViewedRun, query: SampleQuery, size: int) -> tuple[list[int], int]:
        """Which rows a page has, and how many the whole table."""
        if not run.scores:  # a run that has only begun
            return [], 0
        found = self._searched(run, query) if query.reads_texts else None
        where = all_of(of_scores(run, query))
        if not where.text and not query.sort:
            if found is not None:
                return found[query.offset : query.offset + size].tolist(), len(found)
            if run.is_whole:
                return list(range(run.committed)[query.offset : query.offset + size]), run.committed
        with self._database.session() as session:
            source = _among(session, _scores(session, run), found)
            total = run.committed if found is None else len(found)
            if where.text:
                counted = f"select count(*) from {source.text} {where.text}"
                total = session.execute(counted, source.values + where.values).fetchone()[0]
            return _window(session, source, where, query, size, total), total

    def _searched(self, run: ViewedRun, query: SampleQuery) -> Rows:
        """The rows whose texts fit, in order; kept, since the next page asks again."""
        question = (run.identity, query.text, query.place, query.key, query.value)
        with self._lock:
            if question in self._found:
                self._found.move_to_end(question)
                return self._found[question]
        with self._database.session() as session:
            found = [
                _rows_where(session, source, all_of(conditions))
                for source, conditions in (
                    (_lowered(session, run, query.place), list(of_search(query))),
                    (parquet(run.samples().values()), list(of_metadata(query))),
                )
                if conditions
            ]
        rows = found[0] if len(found) == 1 else np.intersect1d(found[0], found[1], assume_unique=True)
        with self._lock:
            self._found[question] = rows
            while len(self._found) > KEPT_SEARCHES:
                self._found.popitem(last=False)
        return rows

    def samples(self, run: ViewedRun, rows: Sequence[int]) -> list[Row]:
        """Numbers, statuses and texts of some rows, in their order."""
        if not rows:
            return []
        parts = sorted({run.part_of(row) for row in rows})
        shown = ["row", "id", *run.numbers, *_statuses(run)]
        with self._database.session() as session:
            scores = _by_row(session, _scores(session, run, parts), {name: quoted(name) for name in shown}, rows)
            texts = _by_row(session, parquet(run.samples(parts).values()), _texts(run), rows)
        return [{**scores[row], **texts[row]} for row in rows]

    def sample(self, run: ViewedRun, row: int) -> tuple[Row, Row]:
        """Everything about one row but the content of media: what was given, and what was scored."""
        part = _part(run, row)
        with self._database.session() as session:
            given = _one(session, run.samples([part])[part], _without_content(run), row)
            return given, _one(session, run.scores[part], "*", row)

    def media(self, run: ViewedRun, row: int, kind: str, item: int = 0) -> str | bytes | None:
        """An image or an audio of a row: its name, or its content. `item` counts the `images` from 0."""
        if kind not in SERVED:
            raise UnknownNameError("kind of media", kind[:100], SERVED)
        part = _part(run, row)
        if kind not in run.sample_columns:
            return None
        place = f"[{item + 1}]" if kind == "images" else ""
        columns = f"{kind}{place} as name, {kind}_bytes{place} as content"
        with self._database.session() as session:
            found = _one(session, run.samples([part])[part], columns, row)
        return found["content"] if found["name"] is None else str(found["name"])

    def metadata_examples(self, run: ViewedRun) -> list[str]:
        """The metadata of the first samples, as JSON, to name its keys."""
        if not run.scores:
            return []
        source = parquet(run.samples(list(run.scores)[:1]).values())
        with self._database.session() as session:
            session.execute(f"select metadata from {source.text} limit 200", source.values)
            return [text for (text,) in session.fetchall() if text]

    # whole tables

    def fields_to_export(self, run: ViewedRun) -> list[str]:
        """The further fields of which some sample has a value."""
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
        """All rows of the table for an export: row, id, these fields of the samples, numbers, statuses."""
        if not run.scores:
            return
        found = self._searched(run, query) if query.reads_texts else None
        where = all_of(of_scores(run, query))
        names = [f"s.{quoted(name)}" for name in (*run.numbers, *_statuses(run))]
        columns = ", ".join(["row", "s.id", *(f"t.{quoted(name)}" for name in fields), *names])
        texts = parquet(run.samples().values())
        with self._database.session(seconds=None) as session:
            scores = _among(session, _scores(session, run), found)
            narrow = f"(select * from {scores.text} {where.text}) s"
            limit = "" if most is None else f"limit {int(most)}"
            statement = f"select {columns} from {narrow} join {texts.text} t using (row) {order(query)} {limit}"
            session.execute(statement, scores.values + where.values + texts.values)
            yield from session.rows()

    # two runs

    def pairs(
        self, first: ViewedRun, second: ViewedRun, number: str, *, falling: bool, offset: int, size: int = PAGE
    ) -> Page:
        """The samples of two runs with the second's number minus the first's, in the order of that difference."""
        with self._database.session() as session:
            source = self._joined(session, first, second, number)
            total = session.execute(f"select count(*) from {source.text}", source.values).fetchone()[0]
            page = f"{_by_difference(falling)} limit {int(size)} offset {int(offset)}"
            session.execute(f"select a, b, x, y, d from {source.text} {page}", source.values)
            found = session.fetchall()
        left = {row["row"]: row for row in self.samples(first, [row for row, *_ in found])}
        right = {row["row"]: row for row in self.samples(second, [row for _, row, *_ in found])}
        joined = [
            {"first": left[a], "second": right[b], "id": left[a]["id"], "a": x, "b": y, "difference": d}
            for a, b, x, y, d in found
        ]
        return Page(joined, total, offset)

    def every_pair(
        self, first: ViewedRun, second: ViewedRun, number: str, *, falling: bool, most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """All of them for an export: id, first, second, difference."""
        with self._database.session(seconds=None) as session:
            source = self._joined(session, first, second, number)
            limit = "" if most is None else f"limit {int(most)}"
            statement = f"select id, x, y, d from {source.text} {_by_difference(falling)} {limit}"
            session.execute(statement, source.values)
            yield from session.rows()

    def _joined(self, session: Session, first: ViewedRun, second: ViewedRun, number: str) -> Sql:
        """Both runs by id. Runs over the same file have the same ids in the same places, which is a quicker join."""
        name = quoted(number)
        left, right = _scores(session, first), _scores(session, second)
        by = "join {} r using (id)"
        if not left.values and not right.values and self._is_aligned(session, first, second, left, right):
            by = "positional join {} r"
        chosen = f"l.row a, r.row b, l.id id, l.{name} x, r.{name} y, r.{name} - l.{name} d"
        return Sql(f"(select {chosen} from {left.text} l {by.format(right.text)})", left.values + right.values)

    def _is_aligned(self, session: Session, first: ViewedRun, second: ViewedRun, left: Sql, right: Sql) -> bool:
        pair = (first.identity, second.identity)
        if pair not in self._aligned:
            unlike = (
                f"select 1 from {left.text} l positional join {right.text} r where l.id is distinct from r.id limit 1"
            )
            self._aligned[pair] = session.execute(unlike).fetchone() is None
        return self._aligned[pair]


def _texts(run: ViewedRun) -> dict[str, str]:
    """What the table shows of a sample, as expressions by name; run folders of older versions have fewer columns."""
    there = run.sample_columns
    return {
        "row": "row",
        **{name: name if name in there else "null" for name in _TEXTS},
        "has_image": "image is not null or image_bytes is not null",
        "has_images": "images is not null" if "images" in there else "false",
    }


def _without_content(run: ViewedRun) -> str:
    """Every column but the content of media, and whether there is any."""
    there = run.sample_columns
    single = [kind for kind in _SINGLE if kind in there]
    content = [f"{kind}_bytes" for kind in (*single, *(["images"] if "images" in there else []))]
    has = ", ".join(f"{kind} is not null or {kind}_bytes is not null as has_{kind}" for kind in single)
    return f"* exclude ({', '.join(content)}), {has}"


def _statuses(run: ViewedRun) -> list[str]:
    return [f"{name}:status" for name in run.metrics]


def _scores(session: Session, run: ViewedRun, parts: Sequence[int] | None = None) -> Sql:
    """The narrow columns of a run: in memory where they are kept, else in its files, of which some parts may do."""
    files = parquet([run.scores[part] for part in parts or run.scores], union=not run.is_done)
    if not run.is_done:
        return files
    whole = parquet(run.scores.values())
    columns = ["row", "id", *map(quoted, run.numbers)]
    columns += [f"{name}::status as {name}" for name in map(quoted, _statuses(run))]
    size = run.committed * (8 * len(run.numbers) + len(run.metrics) + 48)
    wanted = Sql(f"select {', '.join(columns)} from {whole.text}", whole.values)
    name = session.kept(("scores", run.identity), wanted, size, load=parts is None)
    return files if name is None else Sql(name)


def _lowered(session: Session, run: ViewedRun, place: str) -> Sql:
    """The texts that a search looks at, in small letters."""
    files = parquet(run.samples().values())
    wanted = Sql(f"select row, {', '.join(lowered(place))} from {files.text}", files.values)
    if not run.is_done:
        return Sql(f"({wanted.text})", wanted.values)
    size = 2 * sum(path.stat().st_size for path in run.samples().values())  # compressed, and all columns of them
    name = session.kept(("texts", place, run.identity), wanted, size * len(PLACES[place]))
    return Sql(f"({wanted.text})", wanted.values) if name is None else Sql(name)


def _among(session: Session, source: Sql, found: Rows | None) -> Sql:
    """Only the rows that a search found."""
    if found is None:
        return source
    session.register("found", pa.table({"row": found}))
    return Sql(f"(select * from {source.text} semi join found using (row))", source.values)


def _rows_where(session: Session, source: Sql, where: Sql) -> Rows:
    cursor = session.execute(f"select row from {source.text} {where.text}", source.values + where.values)
    return np.sort(np.asarray(cursor.fetchnumpy()["row"], dtype=np.int64))


def _by_row(session: Session, source: Sql, columns: Mapping[str, str], rows: Sequence[int]) -> dict[int, Row]:
    """Some rows by their numbers; `columns` are expressions by name, that of the row first."""
    wanted = "semi join (select unnest(?::bigint[]) as row) using (row)"
    session.execute(f"select {', '.join(columns.values())} from {source.text} {wanted}", (*source.values, list(rows)))
    return {found[0]: dict(zip(columns, found, strict=True)) for found in session.fetchall()}


def _part(run: ViewedRun, row: int) -> int:
    part = run.part_of(row)
    if part not in run.scores:
        raise NoSuchRunError(f"the part of row {row} is not scored yet")
    return part


def _one(session: Session, path: Path, columns: str, row: int) -> Row:
    source = parquet([path])
    cursor = session.execute(f"select {columns} from {source.text} where row = ?", (*source.values, row))
    names = [column[0] for column in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def _window(session: Session, source: Sql, where: Sql, query: SampleQuery, size: int, total: int) -> list[int]:
    """A page of rows. Only the beginning of an order is quick to find: what lies behind the middle is looked for from
    the end, in the order turned round."""
    size = min(size, total - query.offset)
    if size <= 0:
        return []
    turned = query.offset > total // 2
    offset = total - query.offset - size if turned else query.offset
    statement = f"select row from {source.text} {where.text} {order(query, turned=turned)} limit {size} offset {offset}"
    session.execute(statement, source.values + where.values)
    rows = [row for (row,) in session.fetchall()]
    return rows[::-1] if turned else rows


def _by_difference(falling: bool) -> str:
    return f"order by d {'desc' if falling else 'asc'} nulls last, a"
