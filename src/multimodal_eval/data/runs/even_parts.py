"""Every part of `scores/` gets the same columns, so that any reader of Parquet takes the folder for one table.

A metric names its further numbers (`m.part`) only by giving them, and a part of the run whose samples have none lacks
their columns until all is scored. DuckDB and polars refuse such a folder; pandas and Arrow drop a column that the first
file lacks.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from multimodal_eval.data.runs.run_folder import RunFolder


def even_out(folder: RunFolder, parts: int) -> None:
    """Write again those parts that lack a column, with nulls in it."""
    schemas = [folder.part_schema("scores", part) for part in range(parts)]
    whole = _union(schemas)
    for part, schema in enumerate(schemas):
        if not schema.equals(whole):
            table = folder.read_part("scores", part)
            columns = [
                table.column(field.name) if field.name in schema.names else pa.nulls(len(table), field.type)
                for field in whole
            ]
            folder.write_part("scores", part, pa.table(columns, schema=whole))


def _union(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The fields of all parts, each metric's together, in the order in which they turn up."""
    by_metric: dict[str, dict[str, pa.Field]] = {}
    for schema in schemas:
        for field in schema:
            metric = field.name.partition(":")[0].partition(".")[0]
            by_metric.setdefault(metric, {}).setdefault(field.name, field)
    return pa.schema([field for fields in by_metric.values() for field in fields.values()])
