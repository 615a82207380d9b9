"""Samples as an Arrow table and back: how a run folder keeps what was scored."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.sample import FIELDS, Sample

_JSON = ("annotations", "metadata")
_MEDIA = ("image", "audio")
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # those that PNG keeps exactly
# No format keeps these.
_CONVERTED = {"HSV": "RGB", "La": "LA", "RGBa": "RGBA"}
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(FIELDS, pa.string()),
    "references": pa.list_(pa.string()),
    "logprobs": pa.list_(pa.float64()),
    "perplexity": pa.float64(),
    "relevant": pa.bool_(),
}


def _schema() -> pa.Schema:
    fields = [pa.field("row", pa.int64())]
    for name in FIELDS:
        fields.append(pa.field(name, _TYPES[name]))
        if name in _MEDIA:
            fields.append(pa.field(f"{name}_bytes", pa.binary()))
    return pa.schema(fields)


SCHEMA = _schema()


def to_table(samples: Sequence[Sample], first_row: int) -> pa.Table:
    """The samples as a table; `first_row` is the number of the first in its input."""
    encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode
    columns: dict[str, Any] = {"row": range(first_row, first_row + len(samples))}
    for name in FIELDS:
        values = list(map(attrgetter(name), samples))
        if name in _MEDIA:
            stored = [
                None if value is None else _stored_media(sample, name)
                for sample, value in zip(samples, values, strict=True)
            ]
            columns[name] = [value if isinstance(value, str) else None for value in stored]
            columns[f"{name}_bytes"] = [value if isinstance(value, bytes) else None for value in stored]
            continue
        columns[name] = [encode(value).decode() if value else None for value in values] if name in _JSON else values
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names}, SCHEMA)


def _stored_media(sample: Sample, field: str) -> str | bytes | None:
    """A picture in memory becomes the bytes of a file; all else is kept as it is."""
    value = getattr(sample, field)
    if value is None or isinstance(value, str | bytes):
        return value
    buffer = io.BytesIO()
    try:
        picture = value.convert(_CONVERTED[value.mode]) if value.mode in _CONVERTED else value
        picture.save(buffer, format="PNG" if picture.mode in _PNG_MODES else "TIFF", exif=value.getexif())
    except Exception as error:  # noqa: BLE001 - a picture that was opened and not yet read may fail in any way
        message = f"`{field}` cannot be stored: {type(error).__name__}: {error}."
        hint = "Give its path or its bytes, and the sample alone is unscored."
        raise InputError([Problem(code="FORMAT", message=message, id=sample.id, field=field, hint=hint)]) from None
    return buffer.getvalue()


def columns_of_fields(fields: Collection[str]) -> list[str]:
    """The columns in which some fields are kept."""
    return [name for name in SCHEMA.names if name in fields or name.removesuffix("_bytes") in fields]


def to_samples(table: pa.Table) -> list[Sample]:
    """The samples of a table; fields whose columns it lacks are left out."""
    decode = msgspec.json.Decoder().decode
    columns: list[list[Any]] = []
    names = []
    for name in FIELDS:
        if name not in table.column_names:
            continue
        column = table.column(name)
        bytes_column = table.column(f"{name}_bytes") if name in _MEDIA else None
        if bytes_column is not None and bytes_column.null_count < len(table):
            pairs = zip(column.to_pylist(), bytes_column.to_pylist(), strict=True)
            values = [text if text is not None else data for text, data in pairs]
        elif column.null_count == len(table):
            continue
        elif name in _JSON:
            values = [None if text is None else decode(text) for text in column.to_pylist()]
        else:
            values = column.to_pylist()
        if name == "metadata":
            values = [value or {} for value in values]
        names.append(name)
        columns.append(values)
    return [Sample(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
