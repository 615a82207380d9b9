"""Runs as one CSV file. Lists and objects are JSON; a missing value is an empty cell, an empty text is `""`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from multimodal_eval.core.csv_cells import Cell, csv_lines
from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.files import whole_file
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.tables import OPTIONS, SampleTables, metric_table

__all__ = ["OPTIONS", "export"]

LEFT_OUT = ("_bytes", ":stats")
_MEDIA = ("image_bytes", "audio_bytes", "video_bytes", "images_bytes")


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """Write one row per sample, or one row per metric."""
    assert path is not None  # a format of files has a path
    with whole_file(path) as partial:
        if options["rows"] == "metrics":
            metrics = metric_table(runs, options["metrics"])
            _write(partial, metrics.schema, [metrics])
            return Exported(paths=(path,))
        tables = SampleTables(runs, options["metrics"], without=LEFT_OUT)
        _write(partial, tables.schema, tables)
    return Exported(paths=(path,), notes=media_notes(runs))


def media_notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """What a format of texts leaves out, if the runs have it."""
    has_media = any(
        run.folder.has_values("samples", part, _MEDIA) for run in runs for part in range(len(run.info.parts))
    )
    return ("the bytes of images, audio and video are left out; the format parquet has them",) if has_media else ()


def _write(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
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
