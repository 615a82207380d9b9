"""Runs as one JSONL file: an object per sample, or per metric, without missing values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.csv_table import LEFT_OUT, media_notes
from multimodal_eval.interop.export.files import whole_file
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.tables import OPTIONS, SampleTables, metric_table

__all__ = ["OPTIONS", "export"]


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """Write one object per sample, or one per metric."""
    assert path is not None  # a format of files has a path
    of_metrics = options["rows"] == "metrics"
    chosen = options["metrics"]
    tables = [metric_table(runs, chosen)] if of_metrics else SampleTables(runs, chosen, without=LEFT_OUT)
    encoder = msgspec.json.Encoder()
    with whole_file(path) as partial, partial.open("wb") as file:
        for table in tables:
            for row in table.to_pylist():
                file.write(encoder.encode({name: value for name, value in row.items() if value is not None}) + b"\n")
    return Exported(paths=(path,), notes=() if of_metrics else media_notes(runs))
