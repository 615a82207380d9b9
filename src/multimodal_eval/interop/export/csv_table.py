"""Runs as one CSV file. Lists and objects are JSON; a missing value is an empty cell, an empty text is `""`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv as pc

from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.tables import OPTIONS, SampleTables, metric_table
from multimodal_eval.interop.export.whole_files import whole_file

__all__ = ["OPTIONS", "export"]

_LEFT_OUT = ("_bytes", ":stats")
_MEDIA = ("image_bytes", "audio_bytes", "video_bytes", "images_bytes")


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """Write one row per sample, or one row per metric."""
    assert path is not None  # a format of files has a path
    with whole_file(path) as partial:
        if options["rows"] == "metrics":
            pc.write_csv(metric_table(runs, options["metrics"]), partial)
            return Exported(paths=(path,))
        tables = SampleTables(runs, options["metrics"], without=_LEFT_OUT)
        schema = pa.schema([(field.name, _cell_type(field.type)) for field in tables.schema])
        with pc.CSVWriter(partial, schema) as writer:
            for table in tables:
                writer.write_table(pa.table([_cells(column) for column in table.columns], schema=schema))
    has_media = any(
        run.folder.has_values("samples", part, _MEDIA) for run in runs for part in range(len(run.info.parts))
    )
    note = "the bytes of images, audio and video are left out; the format parquet has them"
    return Exported(paths=(path,), notes=(note,) if has_media else ())


def _cell_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_list(kind) else kind


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if not pa.types.is_list(column.type):
        return column
    encode = msgspec.json.encode
    return pa.array([None if value is None else encode(value).decode() for value in column.to_pylist()], pa.string())
