"""Tables in memory as records: pandas and polars frames, Arrow tables, Hugging Face datasets; ids for rows without.

None of these libraries is imported. An object is recognised by the module of its class, or by its Arrow interface.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.records import ColumnMap, RecordChecker

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERED = "the samples have no ids: they are numbered from 0, in their order"


class Table(Protocol):
    """A table with the Arrow interface: a frame of pandas or polars, or a table of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream."""


def without_frames(data: Any) -> Any:
    """The records of a frame, a table or a dataset; other data unchanged."""
    if type(data) in (list, dict):
        return data
    if _is_a(data, "pandas", "DataFrame"):
        return _rows_of_pandas(data)
    if _is_a(data, "polars", "LazyFrame"):
        data = data.collect()
    if _is_a(data, "polars", "DataFrame"):
        return data.to_dicts()
    if _is_a(data, "datasets", "DatasetDict") or _is_a(data, "datasets", "IterableDatasetDict"):
        splits = ", ".join(map(repr, data))
        raise ConfigError(f"the data have several splits: {splits}. Pass one of them: data[{next(iter(data), '')!r}]")
    if _is_a(data, "datasets", "Dataset"):
        return _rows_of_dataset(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _rows_of_arrow(data)
    if not isinstance(data, Iterable) or isinstance(data, bytes):
        raise ConfigError(f"the data must be a path, a frame, a table, or records. Got {shorten(data)} instead.")
    return data


def _is_a(data: object, library: str, name: str) -> bool:
    """Whether the class or one of its bases has this name in this library."""
    return any(base.__name__ == name and base.__module__.partition(".")[0] == library for base in type(data).__mro__)


def _rows_of_pandas(frame: Any) -> list[Columns]:
    """The rows; missing values (None, NaN, NA, NaT) become None, and the named levels of the index are columns."""
    names = [str(name) for name in frame.columns]
    levels = [name for name in frame.index.names if name is not None and str(name) not in names]
    _refuse_repeated([*names, *map(str, levels)])
    columns = {str(level): _cells(frame.index.get_level_values(level)) for level in levels}
    columns |= {name: _cells(frame.iloc[:, place]) for place, name in enumerate(names)}
    rows = zip(*columns.values(), strict=True) if columns else ((),) * len(frame)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _cells(series: Any) -> list[object]:
    return [
        None if is_missing else _plain(value)
        for value, is_missing in zip(series.tolist(), series.isna().tolist(), strict=True)
    ]


def _plain(value: Any, depth: int = 0) -> object:
    """An array in a cell as a list: pandas reads the lists of a Parquet file as arrays."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if type(value) is not list or depth > limits.DEEPEST:  # the check of the values refuses deeper ones
        return value
    return [_plain(item, depth + 1) for item in value]


def _rows_of_dataset(dataset: Any) -> list[Columns]:
    """The rows of a Hugging Face dataset as they are stored: images are not decoded, class labels get their names."""
    rows = _rows_of_arrow(dataset.with_format("arrow")[:])
    for column, feature in (dataset.features or {}).items():
        if hasattr(feature, "int2str"):
            for row in rows:
                code = row[column]
                row[column] = feature.names[code] if isinstance(code, int) and code >= 0 else None  # -1: no label
    return rows


def _rows_of_arrow(data: Any) -> list[Columns]:
    import pyarrow as pa

    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise ConfigError(f"{type(data).__name__} is not a table with named columns: {error}") from None
    _refuse_repeated(table.column_names)
    for column in table.schema:
        if _is_deep(column.type):
            limits.refuse_nesting(column.name)
    rows: list[Columns] = table.to_pylist()
    return rows


def _is_deep(kind: pa.DataType) -> bool:
    """Whether a type has more levels than values may have; a map is a list of pairs, and has two."""
    levels = [(kind, 0)]
    while levels:
        inner, depth = levels.pop()
        if depth > limits.DEEPEST:
            return True
        levels += [(inner.field(place).type, depth + 1) for place in range(inner.num_fields)]
    return False


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        message = f"the table has more than one column named {', '.join(map(repr, repeated))}"
        raise InputError([Problem(code="DUPLICATE", message=message, field=repeated[0])])


Row = Sample | Mapping[str, object]


def with_ids(rows: Sequence[Row], columns: ColumnMap) -> tuple[Sequence[Row], list[str]]:
    """The rows, numbered from 0 if none of them has an id, and a note about it.

    If only some of them have an id, all stay as they are, and the check of the records refuses the others.
    """
    first = rows[0] if rows else None
    if not isinstance(first, Mapping) or first.get("id") is not None or "id" in columns:
        return rows, []
    id_of = RecordChecker(None, Problems(), columns).id_of
    if not all(isinstance(row, Mapping) and id_of(row) is None for row in rows):
        return rows, []
    return [{**row, "id": str(number)} for number, row in enumerate(rows) if isinstance(row, Mapping)], [NUMBERED]
