"""The samples of a run as columns beside the scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from multimodal_eval.core.sample import FIELDS, Sample

_OBJECTS = ("boxes", "messages")  # records become plain values
_KEYS = ("id", "group")  # the table of scores has them


def sample_columns(samples: Iterable[Sample], taken: Collection[str]) -> dict[str, list[object]]:
    """The fields that have a value and a column per key of the metadata; `metadata.KEY` if the name is `taken`."""
    rows = list(samples)
    columns: dict[str, list[object]] = {}
    for field in FIELDS:
        if field in _KEYS or field == "metadata":
            continue
        values = [getattr(row, field) for row in rows]
        if any(value is not None for value in values):
            columns[_free(field, taken)] = msgspec.to_builtins(values) if field in _OBJECTS else values
    for key in dict.fromkeys(key for row in rows for key in row.metadata):
        name = key if key not in taken and key not in columns and key not in FIELDS else f"metadata.{key}"
        columns[name] = [row.metadata.get(key) for row in rows]
    return columns


def _free(field: str, taken: Collection[str]) -> str:
    return f"sample.{field}" if field in taken else field
