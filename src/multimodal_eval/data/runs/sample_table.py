"""Convert samples and scores to the Arrow tables of a run folder, and back."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval._native import python_string_lists as lists_of_array
from multimodal_eval._native import python_strings as strings_of_array
from multimodal_eval.core.arrow import chunks_of, integers
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.errors import InputError, Problem, described
from multimodal_eval.core.sample import FIELDS, Box, Sample
from multimodal_eval.core.score import OK, STATUSES, Score, Scores
from multimodal_eval.data.runs.run_folder import RunFolder

# Arrow arrays from Python and NumPy values.
#
# `pyarrow.array` imports pandas if it is installed, which takes longer than scoring thousands of captions. These
# functions build the same arrays from their buffers.

Bits = NDArray[np.uint8] | None  # validity, one bit per row; None if no row is null
_LONGEST = 2**31 - 1  # bytes of text in one array


def array_of(kind: pa.DataType, length: int, validity: Bits, *data: Any, items: pa.Array | None = None) -> pa.Array:
    """An array from its buffers, which are not copied; an array of lists has `items`."""
    buffers = [None if validity is None else pa.py_buffer(validity), *map(pa.py_buffer, data)]
    return pa.Array.from_buffers(kind, length, buffers, children=None if items is None else [items])


def _bits(is_valid: NDArray[np.bool_]) -> Bits:
    return None if is_valid.all() else np.packbits(is_valid, bitorder="little")


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Where the text or the list of each row starts, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def floats(values: NDArray[np.float64], is_valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """A float64 array; null where `is_valid` is false, or where the value is NaN."""
    data = np.array(values, np.float64)
    valid = ~np.isnan(data) if is_valid is None else is_valid
    data[~valid] = 0.0
    return array_of(pa.float64(), len(data), _bits(valid), data)


def strings(values: Sequence[str | None]) -> pa.Array:
    """A string array."""
    has_nulls = None in values
    texts: Sequence[str] = [value or "" for value in values] if has_nulls else values  # type: ignore[assignment]
    joined = "".join(texts)
    if joined.isascii():
        data, sizes = joined.encode(), map(len, texts)
    else:
        encoded = [text.encode() for text in texts]
        data, sizes = b"".join(encoded), map(len, encoded)
    if len(data) > _LONGEST:
        return pa.array(values, pa.string())  # which refuses it in its own words
    offsets = _offsets(np.fromiter(sizes, np.int64, len(texts)))
    validity = None
    if has_nulls:
        validity = _bits(np.fromiter((value is not None for value in values), np.bool_, len(values)))
    return array_of(pa.string(), len(values), validity, offsets, data)


def few_strings(length: int, values: Mapping[int, str]) -> pa.Array:
    """A string array with values in a few rows, by row number."""
    valid = np.zeros(length, np.bool_)
    sizes = np.zeros(length, np.int64)
    pieces = []
    for row in sorted(values):
        pieces.append(values[row].encode())
        valid[row], sizes[row] = True, len(pieces[-1])
    return array_of(pa.string(), length, _bits(valid), _offsets(sizes), b"".join(pieces))


def string_lists(values: Sequence[Sequence[str] | None]) -> pa.Array:
    """An array of lists of strings."""
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    offsets = _offsets(np.fromiter((len(value or ()) for value in values), np.int64, len(values)))
    items = strings(list(chain.from_iterable(value or () for value in values)))
    return array_of(pa.list_(pa.string()), len(values), _bits(valid), offsets, items=items)


def float_rows(table: NDArray[np.float64], is_valid: NDArray[np.bool_]) -> pa.Array:
    """An array of lists of equal length: the rows of a table, null where `is_valid` is false."""
    kept = table[is_valid]
    items = floats(kept.reshape(-1), np.ones(kept.size, np.bool_))
    offsets = _offsets(np.where(is_valid, table.shape[1], 0))
    return array_of(pa.list_(pa.float64()), len(is_valid), _bits(is_valid), offsets, items=items)


def categories(codes: NDArray[np.uint8], names: Sequence[str]) -> pa.Array:
    """A dictionary array of names by code; the dictionary has the names in use, in order of appearance."""
    used, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), np.int8)
    rank[order] = np.arange(len(used))
    indices = array_of(pa.int8(), len(codes), None, rank[inverse.reshape(-1)])
    return pa.DictionaryArray.from_arrays(indices, strings([names[code] for code in used[order].tolist()]))


def python_strings(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """The values of a string column; several times as fast as `to_pylist`."""
    return list(chain.from_iterable(map(strings_of_array, chunks_of(column))))


def python_string_lists(column: pa.Array | pa.ChunkedArray) -> list[list[str] | None]:
    """The values of a column of lists of strings."""
    values: list[Any] = list(chain.from_iterable(map(lists_of_array, chunks_of(column))))
    return values


_JSON: dict[str, msgspec.json.Decoder[Any]] = {
    "annotations": msgspec.json.Decoder(),
    "boxes": msgspec.json.Decoder(list[Box]),
    "choices": msgspec.json.Decoder(list[str] | dict[str, str]),
    "messages": msgspec.json.Decoder(list[Message]),
    "metadata": msgspec.json.Decoder(),
}
_IN_ORDER = ("choices", "messages")  # other objects are stored with their keys sorted
_ENCODERS = {
    name: msgspec.json.Encoder(order=None if name in _IN_ORDER else "deterministic", enc_hook=str) for name in _JSON
}
_MEDIA = ("image", "audio", "video")
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # those that PNG stores exactly
# No format can store these modes.
_CONVERTED = {"HSV": "RGB", "La": "LA", "RGBa": "RGBA"}
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(FIELDS, pa.string()),
    "references": pa.list_(pa.string()),
    "images": pa.list_(pa.string()),
    "epoch": pa.int64(),
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
        if name == "images":  # each item is a path or bytes
            fields.append(pa.field("images_bytes", pa.list_(pa.binary())))
    return pa.schema(fields)


SCHEMA = _schema()
# All fields by position, without the metaclass that looks for aliases.
_new_sample = partial(msgspec.StructMeta.__call__, Sample)
assert FIELDS[-1] == "metadata"


def to_table(samples: Sequence[Sample], first_row: int) -> pa.Table:
    """The samples as a table; `first_row` is the number of the first sample in the input."""
    return table_of_columns(columns_of_samples(samples), len(samples), first_row)


def columns_of_samples(samples: Sequence[Sample]) -> dict[str, pa.Array]:
    """The columns of some samples, without those that have no value."""
    columns: dict[str, list[Any]] = {}
    for name in FIELDS:
        values = list(map(attrgetter(name), samples))
        if values.count(None) == len(values):
            continue
        if name in _MEDIA:
            stored = [_stored(sample, name, value) for sample, value in zip(samples, values, strict=True)]
            columns[name], columns[f"{name}_bytes"] = _names(stored), _contents(stored)
        elif name == "images":
            lists = [_stored_images(sample) for sample in samples]
            columns[name] = [None if images is None else _names(images) for images in lists]
            columns["images_bytes"] = [None if images is None else _contents(images) for images in lists]
        elif name in _JSON:
            if name == "messages":
                values = list(map(_stored_messages, samples))
            encode = _ENCODERS[name].encode
            columns[name] = [None if value is None or value == {} else encode(value).decode() for value in values]
        else:
            columns[name] = values
    return {
        name: _array(values, SCHEMA.field(name).type)
        for name, values in columns.items()
        if values.count(None) < len(values)
    }


def table_of_columns(columns: Mapping[str, pa.Array | pa.ChunkedArray], length: int, first_row: int) -> pa.Table:
    """The table with the given columns; all others are null."""
    columns = {**columns, "row": integers(np.arange(first_row, first_row + length))}
    arrays = [columns[field.name] if field.name in columns else pa.nulls(length, field.type) for field in SCHEMA]
    return pa.table(arrays, schema=SCHEMA).combine_chunks()


def columns_of(table: pa.Table) -> dict[str, pa.Array]:
    """The columns with a value."""
    return {
        name: chunks_of(table.column(name).combine_chunks())[0]
        for name in table.column_names
        if name == "id" or table.column(name).null_count < len(table)
    }


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        return strings(values)
    if kind == _TYPES["references"]:
        return string_lists(values)
    return pa.array(values, kind)


def _names(stored: Sequence[str | bytes | None]) -> list[str | None]:
    return [value if isinstance(value, str) else None for value in stored]


def _contents(stored: Sequence[str | bytes | None]) -> list[bytes | None]:
    return [value if isinstance(value, bytes) else None for value in stored]


def _stored_images(sample: Sample) -> list[str | bytes | None] | None:
    if sample.images is None:
        return None
    return [_stored(sample, f"images[{place}]", image) for place, image in enumerate(sample.images)]


def _stored_messages(sample: Sample) -> list[Message] | None:
    """The messages with bytes replaced by data URIs, because JSON has no bytes."""
    if sample.messages is None:
        return None
    return [
        msgspec.structs.replace(message, content=[_stored_part(sample, part) for part in message.content])
        if isinstance(message.content, list)
        else message
        for message in sample.messages
    ]


def _stored_part(sample: Sample, part: MessagePart) -> MessagePart:
    content = _stored(sample, "messages", part.content)
    if isinstance(content, bytes):
        content = f"data:application/octet-stream;base64,{b64encode(content).decode()}"
    return msgspec.structs.replace(part, content=content)


def _stored(sample: Sample, field: str, value: Any) -> str | bytes | None:
    """An image in memory becomes the bytes of a file; other values are unchanged."""
    if value is None or isinstance(value, str | bytes):
        return value
    buffer = io.BytesIO()
    try:
        image = value.convert(_CONVERTED[value.mode]) if value.mode in _CONVERTED else value
        image.save(buffer, format="PNG" if image.mode in _PNG_MODES else "TIFF", exif=value.getexif())
    except Exception as error:  # noqa: BLE001 - an image that was opened but not yet read may raise anything
        message = f"`{field}` cannot be stored: {type(error).__name__}: {error}."
        hint = "Pass its path or its bytes instead; then only this sample is unscored."
        raise InputError([Problem(code="FORMAT", message=message, id=sample.id, field=field, hint=hint)]) from None
    return buffer.getvalue()


def decoded_field(name: str, text: str) -> Any:
    """The value of a field that is stored as JSON."""
    return _JSON[name].decode(text)


def columns_of_fields(fields: Collection[str]) -> list[str]:
    """The columns that store the given fields."""
    return [name for name in SCHEMA.names if name in fields or name.removesuffix("_bytes") in fields]


def to_batch(table: pa.Table) -> Batch:
    """The rows of a table as a batch; columns without a value are left out."""
    return Batch(len(table), columns_of(table), _samples_of)


def _samples_of(batch: Batch) -> list[Sample]:
    columns = {name: batch.column(name) for name in SCHEMA.names if batch.column(name) is not None}
    for name in _MEDIA:
        if name in columns or f"{name}_bytes" in columns:
            for stored, kind in ((name, pa.string()), (f"{name}_bytes", pa.binary())):
                columns.setdefault(stored, pa.nulls(len(batch), kind))
    return to_samples(pa.table(columns))


def to_samples(table: pa.Table) -> list[Sample]:
    """The samples of a table, without fields whose columns it lacks."""
    columns = [_values(table, name) for name in FIELDS]
    if columns[-1] is None:
        columns[-1] = [{} for _ in range(len(table))]  # the metadata
    return list(map(_new_sample, *(repeat(None, len(table)) if values is None else values for values in columns)))


def _values(table: pa.Table, name: str) -> list[Any] | None:
    """The values of a field; None if the table has none."""
    if name not in table.column_names:
        return None
    column = table.column(name)
    if name in _MEDIA and table.column(f"{name}_bytes").null_count < len(table):
        return _either(column.to_pylist(), table.column(f"{name}_bytes").to_pylist())
    if column.null_count == len(table):
        return None
    if column.type == pa.string():
        values: list[Any] = python_strings(column)
    elif name == "references":
        values = python_string_lists(column)
    else:
        values = column.to_pylist()
    if name == "images":
        contents = table.column("images_bytes").to_pylist()
        return [names and _either(names, data) for names, data in zip(values, contents, strict=True)]
    if name in _JSON:
        decode = _JSON[name].decode
        values = [None if text is None else decode(text) for text in values]
    return [value or {} for value in values] if name == "metadata" else values


def _either(names: Sequence[str | None], contents: Sequence[bytes | None]) -> list[str | bytes | None]:
    return [data if name is None else name for name, data in zip(names, contents, strict=True)]


# Convert scores to Arrow columns and back.
#
# A metric `m` has the columns `m` (its value), `m:status`, `m:reason`, `m:warning`, `m:stats`, `m:details` (JSON), and
# `m.<part>` for each further score of a dict-valued metric. Every part of `scores/` ends up with the same columns, so
# that any Parquet reader can read the folder as one table.

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


def columns_of_metric(table: pa.Table, metric: str) -> dict[str, pa.Array]:
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
