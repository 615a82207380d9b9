"""Parquet files of the Hugging Face layout: `data/test-00000-of-00002.parquet`, described by `huggingface` metadata.

Images and audio are structs of bytes and path, class labels are numbers whose names are in the schema, and rows
have no ids: they are numbered from 0 in their split, as in a `datasets.Dataset`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.data.datasets.dataset_format import DatasetFormat, natural_key
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers.formats import read_parquet
from multimodal_eval.data.readers.parquet_file import parquet_errors
from multimodal_eval.data.readers.problems import Columns, Problems, Record

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMAT", "Features", "features_of"]

_SHARD = re.compile(r"(?P<split>.+?)-(?P<number>\d{5})-of-(?P<total>\d{5})(?P<end>.*)\.parquet", re.IGNORECASE)
_MEDIA = {"Image": "image", "Audio": "audio", "Video": "video"}


@dataclass(frozen=True)
class Features:
    """What the columns of a file are, beyond their types."""

    columns: tuple[str, ...]
    media: Mapping[str, str]  # column -> image, audio or video
    listed: frozenset[str]  # columns with lists of media
    names: Mapping[str, tuple[str, ...]]  # column -> the names of its class labels

    @property
    def has_ids(self) -> bool:
        """Whether the rows have ids."""
        return "id" in self.columns

    @cached_property
    def fields(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of each field with media. If no column has the name of the field, all of the kind are taken."""
        fields: dict[str, tuple[str, ...]] = {}
        for kind in dict.fromkeys(self.media.values()):
            columns = sorted((column for column in self.media if self.media[column] == kind), key=natural_key)
            if kind != "image":
                fields[kind] = (kind if kind in columns else columns[0],)
                continue
            lists = [column for column in columns if column in self.listed]
            if "image" in columns and "image" not in lists:
                fields["image"] = ("image",)
            if "images" in lists or "image" in lists:
                fields["images"] = ("images" if "images" in lists else "image",)
            if not fields:
                fields["images" if lists or len(columns) > 1 else "image"] = tuple(columns)
        return fields

    @property
    def is_plain(self) -> bool:
        """Whether the reader of other Parquet files reads the same."""
        as_named = all(columns == (field,) for field, columns in self.fields.items())
        return self.has_ids and as_named and len(self.fields) == len(self.media) and not self.names


class HfParquet(DatasetFormat):
    """The format of datasets on the Hugging Face hub."""

    name = "hf-parquet"
    suffixes = (".parquet",)

    def recognises(self, head: Head) -> bool:
        """By the metadata of the schema; not if it is as any other Parquet file."""
        if head.path.suffix.lower() != ".parquet":
            return False
        schema = _schema(head.path)
        return schema is not None and b"huggingface" in (schema.metadata or {}) and not features_of(schema).is_plain

    def part_name(self, path: Path) -> str:
        """The split, if the rows have no ids."""
        schema = _schema(path)
        if schema is None or features_of(schema).has_ids:
            return ""
        shard = _SHARD.fullmatch(path.name)
        return path.stem if shard is None else shard["split"]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per row. Images in other columns become `image` or `images`, class labels their names."""
        schema = _schema(path)
        features = Features((), {}, frozenset(), {}) if schema is None else features_of(schema)
        first = 0 if features.has_ids else _rows_before(path)
        shard = _SHARD.fullmatch(path.name)
        for row, record in read_parquet(path, problems):
            if not features.has_ids:
                record = {"id": first + row - 1, **record}
            if shard is not None:
                record.setdefault("split", shard["split"])
            yield row, _with_fields(record, features)


FORMAT = HfParquet()


def _schema(path: Path) -> pa.Schema | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return _cached_schema(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=256)
def _cached_schema(path: Path, size: int, changed: int) -> pa.Schema | None:
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except parquet_errors():
        return None


def features_of(schema: pa.Schema) -> Features:
    """The features of a schema: by its metadata, or by the types of its columns."""
    described = _described(schema)
    media: dict[str, str] = {}
    listed: set[str] = set()
    names: dict[str, tuple[str, ...]] = {}
    for column in schema:
        feature, is_list = _inner(described.get(column.name))
        kind = _MEDIA.get(str(feature.get("_type"))) if feature else None
        if kind is None and not feature:
            kind, is_list = _media_type(column.name, column.type)
        if kind is not None:
            media[column.name] = kind
            listed |= {column.name} if is_list else set()
        labels = feature.get("names") if feature.get("_type") == "ClassLabel" else None
        if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
            names[column.name] = tuple(labels)
    return Features(tuple(schema.names), media, frozenset(listed), names)


def _described(schema: pa.Schema) -> Mapping[str, Any]:
    try:
        content = msgspec.json.decode((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = content["info"]["features"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def _inner(feature: Any) -> tuple[Mapping[str, Any], bool]:
    """A feature without the list around it, and whether there is one."""
    is_list = False
    while isinstance(feature, list) and len(feature) == 1:
        feature, is_list = feature[0], True
    if not isinstance(feature, dict):
        return {}, is_list
    if feature.get("_type") in ("Sequence", "List", "LargeList") and isinstance(feature.get("feature"), dict):
        return feature["feature"], True
    return feature, is_list


def _media_type(name: str, kind: pa.DataType) -> tuple[str | None, bool]:
    """A struct of bytes and path, or a list of them, is an image, unless its name says otherwise."""
    import pyarrow as pa

    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    inner = kind.value_type if is_list else kind
    if not pa.types.is_struct(inner):
        return None, False
    is_media = sorted(inner.field(place).name for place in range(inner.num_fields)) == ["bytes", "path"]
    if not is_media or not pa.types.is_binary(inner.field("bytes").type):
        return None, False
    return (name if name in ("audio", "video") and not is_list else "image"), is_list


def _with_fields(record: Columns, features: Features) -> Columns:
    """The record with media in the fields of a sample, and with class labels by name."""
    for column, names in features.names.items():
        record[column] = _named(record.get(column), names)
    if not features.media:
        return record
    result = {column: value for column, value in record.items() if column not in features.media}
    for field, columns in features.fields.items():
        if field in result:  # paths, in a column with the name of the field
            result[f"{field}_path"] = result.pop(field)
        items = [item for column in columns for item in _items(record.get(column))]
        result[field] = items if field == "images" else items[0] if items else None
    return result


def _items(value: object) -> Iterator[object]:
    """The media of a cell: bytes, or paths."""
    for item in value if isinstance(value, list) else (value,):
        content = (item.get("bytes") or item.get("path")) if isinstance(item, dict) else item
        if content is not None:
            yield content


def _named(value: object, names: tuple[str, ...]) -> object:
    """The name of a class; datasets without labels have -1."""
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return None if value == -1 else names[value] if 0 <= value < len(names) else value
    return value


def _rows_before(path: Path) -> int:
    """The rows in the shards of the split before this one; 0 if they are not all beside it."""
    import pyarrow.parquet as pq

    shard = _SHARD.fullmatch(path.name)
    if shard is None:
        return 0
    rows = 0
    for number in range(int(shard["number"])):
        name = f"{shard['split']}-{number:05d}-of-{shard['total']}{shard['end']}{path.suffix}"
        try:
            rows += pq.read_metadata(path.with_name(name)).num_rows
        except parquet_errors():
            return 0
    return rows
