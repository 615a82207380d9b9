"""Convert scores to Arrow columns and back.

A metric `m` has the columns `m` (its value), `m:status`, `m:reason`, `m:warning`, `m:stats`,
`m:details` (JSON), and `m.<part>` for each further score of a dict-valued metric. Every part of `scores/` ends up with
the same columns, so that any Parquet reader can read the folder as one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.data.runs.run_folder import RunFolder

_EXTRA: dict[str, pa.DataType] = {
    "status": pa.dictionary(pa.int8(), pa.string()),
    "reason": pa.string(),
    "warning": pa.string(),
    "stats": pa.list_(pa.float64()),
    "details": pa.string(),
}


def key_columns(samples: Sequence[Sample], first_row: int) -> dict[str, pa.Array]:
    """The columns that identify a row."""
    return {
        "row": pa.array(range(first_row, first_row + len(samples)), pa.int64()),
        "id": pa.array([sample.id for sample in samples], pa.string()),
        "group": pa.array([sample.group for sample in samples], pa.string()),
    }


def score_columns(metric: str, scores: Sequence[Score]) -> dict[str, pa.Array]:
    """The columns of one metric."""
    encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode
    columns = {metric: pa.array([score.value for score in scores], pa.float64())}
    values = {
        "status": [score.status for score in scores],
        "reason": [score.reason for score in scores],
        "warning": [score.warning for score in scores],
        "stats": [score.stats for score in scores],
        "details": [encode(score.details).decode() if score.details else None for score in scores],
    }
    for name, type_ in _EXTRA.items():
        columns[f"{metric}:{name}"] = pa.array(values[name], type_)
    parts = dict.fromkeys(part for score in scores for part in score.parts or ())
    for part in parts:
        columns[f"{metric}.{part}"] = pa.array([(score.parts or {}).get(part) for score in scores], pa.float64())
    return columns


def columns_of(table: pa.Table, metric: str) -> dict[str, pa.Array]:
    """The columns of one metric in a table."""
    names = [name for name in table.column_names if name == metric or name.startswith((f"{metric}:", f"{metric}."))]
    return {name: table.column(name).combine_chunks() for name in names}


def stored_scores(columns: Mapping[str, pa.Array], metric: str) -> list[Score]:
    """The scores of a metric, as far as a composite needs them."""
    names = (metric, f"{metric}:status", f"{metric}:reason", f"{metric}:stats")
    rows = zip(*(columns[name].to_pylist() for name in names), strict=True)
    return [Score(value, status, reason, tuple(stats) if stats else None) for value, status, reason, stats in rows]


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
