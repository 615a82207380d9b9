"""Convert scores to Arrow columns and back.

A metric `m` has the columns `m` (its value), `m:status`, `m:reason`, `m:warning`, `m:stats`,
`m:details` (JSON), and `m.<part>` for each further score of a dict-valued metric. Every part of `scores/` ends up with
the same columns, so that any Parquet reader can read the folder as one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.core.arrow import integers
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import described
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.core.scores import OK, STATUSES, Scores
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import categories, few_strings, float_rows, floats, strings

_STATS = pa.list_(pa.float64())
_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=str)


def key_columns(samples: Sequence[Sample], first_row: int) -> dict[str, pa.Array]:
    """The columns that identify a row."""
    batch = Batch.of(samples)
    if batch.has_columns:
        group = batch.column("group")
        return {
            "row": batch.column("row"),
            "id": batch.column("id"),
            "group": pa.nulls(len(batch), pa.string()) if group is None else group,
        }
    return {
        "row": integers(np.arange(first_row, first_row + len(batch))),
        "id": strings([sample.id for sample in batch]),
        "group": strings([sample.group for sample in batch]),
    }


def score_columns(metric: str, scores: Sequence[Score]) -> dict[str, pa.Array]:
    """The columns of one metric."""
    rows = Scores.of(scores)
    count = len(rows)
    return {
        metric: floats(rows.values, rows.status == OK),
        f"{metric}:status": categories(rows.status, STATUSES),
        f"{metric}:reason": few_strings(count, rows.reasons),
        f"{metric}:warning": few_strings(count, rows.warnings),
        f"{metric}:stats": _stats_column(rows),
        f"{metric}:details": few_strings(count, {row: _encoded(item) for row, item in rows.details.items()}),
        **{f"{metric}.{part}": floats(values) for part, values in rows.parts.items()},
    }


def _encoded(details: Mapping[str, Any]) -> str:
    """The details as a JSON object. Details that JSON cannot represent are replaced by the reason."""
    try:
        return _ENCODER.encode(dict(details)).decode()
    except Exception as error:  # noqa: BLE001 - the values are a metric's: their own code may raise anything
        return _ENCODER.encode({"unreadable": described(error)}).decode()


def _stats_column(rows: Scores) -> pa.Array:
    if rows.stats is None:
        return pa.nulls(len(rows), _STATS)
    if isinstance(rows.stats, list):
        return pa.array(rows.stats, _STATS)
    return float_rows(rows.stats, rows.status == OK)


def columns_of(table: pa.Table, metric: str) -> dict[str, pa.Array]:
    """The columns of one metric in a table."""
    names = [name for name in table.column_names if name == metric or name.startswith((f"{metric}:", f"{metric}."))]
    return {name: table.column(name).combine_chunks() for name in names}


def stored_scores(columns: Mapping[str, pa.Array], metric: str) -> Scores:
    """The scores of a metric, as far as a composite needs them."""
    names = (metric, f"{metric}:status", f"{metric}:reason", f"{metric}:stats")
    rows = zip(*(columns[name].to_pylist() for name in names), strict=True)
    return Scores.of(
        [Score(value, status, reason, tuple(stats) if stats else None) for value, status, reason, stats in rows]
    )


def align_columns(folder: RunFolder, parts: int) -> None:
    """Rewrite the parts that lack a column, with nulls in it."""
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
    """The fields of all parts, grouped by metric, in order of appearance."""
    by_metric: dict[str, dict[str, pa.Field]] = {}
    for schema in schemas:
        for field in schema:
            metric = field.name.partition(":")[0].partition(".")[0]
            by_metric.setdefault(metric, {}).setdefault(field.name, field)
    return pa.schema([field for fields in by_metric.values() for field in fields.values()])
