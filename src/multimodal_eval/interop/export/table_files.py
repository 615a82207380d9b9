"""Runs as one CSV, JSONL or Parquet file: a row per sample, or a row per metric.

In CSV, lists and objects are JSON; a missing value is an empty cell, an empty text is `""`. JSONL leaves out missing
values. Only Parquet has the bytes of media and the statistics of metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from multimodal_eval.core.csv_cells import Cell, csv_lines
from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.files import whole_file
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.tables import OPTIONS, SampleTables, metric_table

__all__ = ["CSV", "JSONL", "PARQUET", "TableFile"]

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
