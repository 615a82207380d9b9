"""Runs as tables: one row per sample with its fields and scores, or one row per metric with its interval.

As Arrow tables, or as one CSV, JSONL or Parquet file. In CSV, lists and objects are JSON; a missing value is an empty
cell, an empty text is `""`. JSONL leaves out missing values. Only Parquet has the bytes of media and the statistics of
metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from multimodal_eval.analysis.pairing import run_names
from multimodal_eval.core.csv_cells import Cell, csv_lines
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.sample_table import SCHEMA
from multimodal_eval.interop.export.files import UNCORRECTED, claim_of, method_of, published, whole_file
from multimodal_eval.interop.export.registry import Exported

__all__ = ["CSV", "JSONL", "OPTIONS", "PARQUET", "SampleTables", "TableFile", "metric_table", "metrics_of"]

OPTIONS = Options(
    rows=Option(str, "samples", choices=("samples", "metrics"), help="one row per sample, or one per metric"),
    metrics=Option(list[str] | None, None, help="the metrics; null for all"),
)
_KEYS = ("row", "id", "group")  # of the table of scores; the samples have them too
_COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "metric")),
        *((name, pa.float64()) for name in ("value", "stderr", "low", "high")),
        ("method", pa.string()),
        *((name, pa.int64()) for name in ("scored", "total")),
        *((name, pa.string()) for name in ("direction", "kind", "signature", "note")),
    ]
)


def metrics_of(run: Run, chosen: Sequence[str] | None) -> list[str]:
    """The chosen metrics of a run, or all; the composite is among them."""
    for name in chosen or ():
        if name not in run.entries:
            raise UnknownNameError("metric of this run", name, run.entries)
    return list(run.entries) if chosen is None else list(chosen)


def metric_table(runs: Sequence[Run], metrics: Sequence[str] | None = None) -> pa.Table:
    """One row per run and metric; parts are `metric.part`.

    A score that human labels correct is the value; that of the judge is `metric.uncorrected`.
    """
    rows: list[dict[str, object]] = []
    for run, name in zip(runs, run_names(runs), strict=True):
        for metric in metrics_of(run, metrics):
            entry, raw = published(run.entries[metric])
            common = {"run": name, "kind": run.kind_of(metric)}
            labels = run.entries[metric].calibrated
            corrected = None if raw is None or labels is None else f"{labels.labels} human labels: {labels.signed}"
            note = corrected or claim_of(run, metric)
            rows.append({**common, "metric": metric, **_figure(run, entry), **_counts(entry), "note": note})
            if raw is not None:
                rows.append({**common, "metric": f"{metric}.{UNCORRECTED}", **_figure(run, raw), **_counts(raw)})
            for part in entry.parts:
                full, figure = f"{metric}.{part}", entry.part(part)
                values = {**_figure(run, figure), **_counts(figure)}
                rows.append({"run": name, "kind": run.kind_of(full), "metric": full, **values})
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def _figure(run: Run, figure: Figure) -> dict[str, object]:
    values = {name: getattr(figure, name) for name in ("value", "stderr", "low", "high")}
    return {**values, "method": method_of(run, figure)}


def _counts(entry: Figure) -> dict[str, object]:
    return {
        "scored": entry.n_scored,
        "total": entry.n_total,
        "direction": entry.better,
        "signature": entry.signed,
    }


class SampleTables:
    """The samples of runs with their scores, part by part. All tables have the same columns.

    Columns: `run`, the fields of the samples, then those of the scores (`cider_d`, `cider_d:status` …). Columns
    without a single value are left out; `without` names further ones by their endings.
    """

    def __init__(
        self, runs: Sequence[Run], metrics: Sequence[str] | None = None, *, without: tuple[str, ...] = ()
    ) -> None:
        self._runs = list(zip(run_names(runs), runs, strict=True))
        fields: dict[str, pa.DataType] = {"run": pa.string()}
        for _, run in self._runs:
            fields |= {name: kind for name, kind in _sample_fields(run).items() if not name.endswith(without)}
        for _, run in self._runs:
            scores = _score_fields(run, metrics_of(run, metrics))
            fields |= {name: kind for name, kind in scores.items() if not name.endswith(without)}
        self.schema = pa.schema(list(fields.items()))

    def __iter__(self) -> Iterator[pa.Table]:
        for name, run in self._runs:
            for number in range(len(run.info.parts)):
                yield self._part(name, run, number)

    def _part(self, name: str, run: Run, number: int) -> pa.Table:
        samples = run.folder.read_part("samples", number, [each for each in self.schema.names if each in SCHEMA.names])
        scores = run.folder.read_part("scores", number)
        length = len(samples)
        columns: list[pa.ChunkedArray | pa.Array] = []
        for field in self.schema:
            table = samples if field.name in samples.column_names else scores
            if field.name == "run":
                columns.append(pa.array([name] * length, pa.string()))
            elif field.name in table.column_names:
                columns.append(_plain(table.column(field.name)))
            else:
                columns.append(pa.nulls(length, field.type))
        return pa.table(columns, schema=self.schema)


def _sample_fields(run: Run) -> dict[str, pa.DataType]:
    numbers = range(len(run.info.parts))
    return {
        field.name: field.type
        for field in SCHEMA
        if field.name == "id" or any(run.folder.has_values("samples", number, [field.name]) for number in numbers)
    }


def _score_fields(run: Run, metrics: Sequence[str]) -> dict[str, pa.DataType]:
    fields: dict[str, pa.DataType] = {}
    numbers = range(len(run.info.parts))
    for number in numbers:
        for field in run.folder.part_schema("scores", number):
            if field.name in _KEYS or not any(_belongs(field.name, metric) for metric in metrics):
                continue
            if any(run.folder.has_values("scores", each, [field.name]) for each in numbers):
                fields[field.name] = _plain_type(field.type)
    return fields


def _belongs(column: str, metric: str) -> bool:
    return column == metric or column.startswith((f"{metric}:", f"{metric}."))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


_OF_TEXTS = ("_bytes", ":stats")  # left out of formats of texts
_MEDIA = ("image_bytes", "audio_bytes", "video_bytes", "images_bytes")


class _Write(Protocol):
    def __call__(self, path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None: ...


class TableFile:
    """An exporter of one file."""

    def __init__(self, write: _Write, without: tuple[str, ...] = _OF_TEXTS) -> None:
        self.OPTIONS, self._write, self._without = OPTIONS, write, without

    def export(self, runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
        """Write one row per sample, or one row per metric."""
        assert path is not None  # a format of files has a path
        with whole_file(path) as partial:
            if options["rows"] == "metrics":
                metrics = metric_table(runs, options["metrics"])
                self._write(partial, metrics.schema, [metrics])
                return Exported(paths=(path,))
            tables = SampleTables(runs, options["metrics"], without=self._without)
            self._write(partial, tables.schema, tables)
        return Exported(paths=(path,), notes=_media_notes(runs) if self._without else ())


def _media_notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """What a format of texts leaves out, if the runs have it."""
    has_media = any(
        run.folder.has_values("samples", part, _MEDIA) for run in runs for part in range(len(run.info.parts))
    )
    return ("the bytes of images, audio and video are left out; the format parquet has them",) if has_media else ()


def _write_csv(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines([schema.names]))
        for table in tables:
            file.writelines(csv_lines(zip(*map(_cells, table.columns), strict=True)))


def _cells(column: pa.ChunkedArray) -> list[Cell]:
    """The values; lists as JSON."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_list(column.type):
        return values
    return [None if value is None else msgspec.json.encode(value).decode() for value in values]


def _write_jsonl(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for table in tables:
            for row in table.to_pylist():
                file.write(encoder.encode({name: value for name, value in row.items() if value is not None}) + b"\n")


def _write_parquet(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(table)


CSV, JSONL, PARQUET = TableFile(_write_csv), TableFile(_write_jsonl), TableFile(_write_parquet, without=())
