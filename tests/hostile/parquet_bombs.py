"""Bombs of Parquet, and of many files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.bomb_registry import bomb


def _parquet(path: Path, table: pa.Table, times: int = 1, **options: object) -> list[Path]:
    with pq.ParquetWriter(path, table.schema, **{"compression": "zstd", **options}) as writer:
        for _ in range(times):
            writer.write_table(table, row_group_size=len(table))
    return [path]


def _repeated(value: str | bytes, times: int) -> pa.Array:
    """A dictionary array, so that this program needs little memory."""
    indices = pa.Array.from_buffers(pa.int32(), times, [None, pa.py_buffer(bytes(4 * times))])
    return pa.DictionaryArray.from_arrays(indices, pa.array([value]))


@bomb
def parquet_of_one_long_text(folder: Path) -> list[Path]:
    rows = 100_000
    text = _repeated("x" * 900_000, rows)
    return _parquet(folder / "a.parquet", pa.table({"id": pa.array(range(rows)), "answer": text}))


@bomb
def parquet_of_long_bytes(folder: Path) -> list[Path]:
    rows = 100_000
    image = _repeated(b"x" * 9_000_000, rows)
    return _parquet(folder / "a.parquet", pa.table({"id": pa.array(range(rows)), "image": image}))


@bomb
def parquet_of_compressible_pages(folder: Path) -> list[Path]:
    table = pa.table({"id": pa.array(["x" * 900_000] * 300), "answer": pa.array(["x" * 900_000] * 300)})
    return _parquet(folder / "a.parquet", table, 16, use_dictionary=False)


@bomb
def parquet_of_prefixes(folder: Path) -> list[Path]:
    table = pa.table({"id": pa.array(["x" * 900_000] * 200), "answer": pa.array(["x" * 900_000] * 200)})
    prefixes = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY", "write_statistics": False}
    return _parquet(folder / "a.parquet", table, 40, **prefixes)


@bomb
def parquet_of_one_page(folder: Path) -> list[Path]:
    table = pa.table({"id": ["a"], "answer": pa.array(["x" * 1_900_000_000])})
    return _parquet(folder / "a.parquet", table, use_dictionary=False, data_page_size=1 << 31, write_statistics=False)


@bomb
def parquet_of_many_rows(folder: Path) -> list[Path]:
    rows = 20_000_000
    return _parquet(folder / "a.parquet", pa.table({"id": _repeated("a", rows)}), 10)


@bomb
def parquet_of_many_rows_without_ids(folder: Path) -> list[Path]:
    rows = 20_000_000
    return _parquet(folder / "a.parquet", pa.table({"answer": _repeated("a", rows)}), 10)


@bomb
def parquet_of_many_numbers(folder: Path) -> list[Path]:
    import numpy as np

    rows = 20_000_000
    table = pa.table({"id": pa.array(np.arange(rows)), "epoch": pa.array(np.zeros(rows, np.int64))})
    return _parquet(
        folder / "a.parquet",
        table,
        10,
        use_dictionary=False,
        column_encoding="DELTA_BINARY_PACKED",
        write_statistics=False,
    )


@bomb
def parquet_of_nested_lists(folder: Path) -> list[Path]:
    items = 60_000_000
    offsets = pa.array([0, items], pa.int32())
    lists = pa.ListArray.from_arrays(
        offsets, pa.Array.from_buffers(pa.int8(), items, [None, pa.py_buffer(bytes(items))])
    )
    return _parquet(folder / "a.parquet", pa.table({"id": ["a"], "answer": ["b"], "m": lists}))


@bomb
def parquet_of_lists_of_texts(folder: Path) -> list[Path]:
    items = 20_000_000
    offsets = pa.array([0, items], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, _repeated("a caption of some length", items))
    return _parquet(folder / "a.parquet", pa.table({"id": ["a"], "answer": ["b"], "references": lists}), 3)


@bomb
def parquet_of_many_columns(folder: Path) -> list[Path]:
    columns = {f"c{number}": pa.array([1]) for number in range(20_000)}
    return _parquet(folder / "a.parquet", pa.table({"id": ["a"], "answer": ["b"], **columns}), write_statistics=False)


@bomb
def parquet_of_many_row_groups(folder: Path) -> list[Path]:
    table = pa.table({"id": ["a"], "answer": ["b"]})
    return _parquet(folder / "a.parquet", table, 40_000, write_statistics=False)


@bomb
def parquet_of_deep_lists(folder: Path) -> list[Path]:
    kind: pa.DataType = pa.int8()
    value: object = 1
    for _ in range(60):
        kind, value = pa.list_(kind), [value]
    return _parquet(folder / "a.parquet", pa.table({"id": ["a"], "answer": ["b"], "m": pa.array([value], kind)}))


@bomb
def folder_of_many_files(folder: Path) -> list[Path]:
    inner = folder / "data"
    inner.mkdir()
    for number in range(3000):
        (inner / f"{number}.jsonl").write_bytes(b"1\n" * 1500)
    return [inner]
