"""Runs as one Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.files import whole_file
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.tables import OPTIONS, SampleTables, metric_table

__all__ = ["OPTIONS", "export"]


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """Write one row per sample, with bytes of media and statistics of metrics too, or one row per metric."""
    assert path is not None  # a format of files has a path
    with whole_file(path) as partial:
        if options["rows"] == "metrics":
            pq.write_table(metric_table(runs, options["metrics"]), partial)
            return Exported(paths=(path,))
        tables = SampleTables(runs, options["metrics"])
        with pq.ParquetWriter(partial, tables.schema) as writer:
            for table in tables:
                writer.write_table(table)
    return Exported(paths=(path,))
