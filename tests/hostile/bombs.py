"""Small files that cost a careless reader much memory or time: at most 10 MB each.

`BOMBS` names a function per file. It writes the file below a folder and returns the arguments of `mmeval validate`.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["BOMBS", "Bomb"]

Bomb = Callable[[Path], list[Path]]
BOMBS: dict[str, Bomb] = {}
SIZE = 10_000_000


def bomb(make: Bomb) -> Bomb:
    """Register a bomb under the name of its function."""
    BOMBS[make.__name__] = make
    return make


def _written(path: Path, content: bytes) -> list[Path]:
    path.write_bytes(content[:SIZE])
    return [path]


def _gz(path: Path, *pieces: tuple[bytes, int]) -> list[Path]:
    """Some pieces, each repeated, in a member of its own: so the file is written at once."""
    content = b"".join(gzip.compress(piece, 9) * times for piece, times in pieces)
    return _written(path, content)


def _zst(path: Path, piece: bytes, times: int) -> list[Path]:
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        for _ in range(times):
            stream.write(piece)
    return [path]


def _line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


ZEROS = b"0" * (1 << 20)
SHORT = _line(id="a", generated_answer="b")


# Compressed text


@bomb
def zst_of_one_line(folder: Path) -> list[Path]:
    return _zst(folder / "a.jsonl.zst", ZEROS, 3072)


@bomb
def zst_of_a_document(folder: Path) -> list[Path]:
    return _zst(folder / "a.json.zst", ZEROS, 3072)


@bomb
def zst_of_brackets(folder: Path) -> list[Path]:
    return _zst(folder / "a.json.zst", b"[],{}," * (1 << 18), 1024)


@bomb
def zst_of_an_array_of_nothing(folder: Path) -> list[Path]:
    path = folder / "a.json.zst"
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(b"[")
        for _ in range(120):
            stream.write(b"{}," * (1 << 19))
        stream.write(b"{}]")
    return [path]


@bomb
def zst_of_an_object_of_lists(folder: Path) -> list[Path]:
    path = folder / "a.json.zst"
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(b'{"annotations": [')
        for _ in range(120):
            stream.write(b"{}," * (1 << 19))
        stream.write(b"{}]}")
    return [path]


@bomb
def zst_of_a_line_of_lists(folder: Path) -> list[Path]:
    path = folder / "a.jsonl.zst"
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        for number in range(4):
            stream.write(b'{"id": "%d", "a": [' % number + b"[]," * (20 << 20) + b"[]]}\n")
    return [path]


@bomb
def zst_of_records_with_lists(folder: Path) -> list[Path]:
    path = folder / "a.jsonl.zst"
    lists = b"[]," * 30_000
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        for number in range(2500):
            stream.write(b'{"id": "%d", "generated_answer": "", "a": [' % number + lists + b"[]]}\n")
    return [path]


@bomb
def gz_of_zeros(folder: Path) -> list[Path]:
    return _gz(folder / "a.jsonl.gz", (ZEROS, 7000))


@bomb
def gz_of_blank_lines(folder: Path) -> list[Path]:
    return _gz(folder / "a.jsonl.gz", (b"\n" * (1 << 20), 7000))


@bomb
def gz_of_short_lines(folder: Path) -> list[Path]:
    return _gz(folder / "a.jsonl.gz", (b"1\n" * (1 << 19), 4500))


@bomb
def gz_of_equal_records(folder: Path) -> list[Path]:
    return _gz(folder / "a.jsonl.gz", (SHORT * 20_000, 2500))


@bomb
def gz_of_csv_zeros(folder: Path) -> list[Path]:
    return _gz(folder / "a.csv.gz", (b"id,generated_answer\n", 1), (ZEROS, 4500))


@bomb
def gz_of_csv_quoted(folder: Path) -> list[Path]:
    return _gz(folder / "a.csv.gz", (b'id,generated_answer\na,"', 1), (ZEROS, 4500))


@bomb
def gz_of_csv_commas(folder: Path) -> list[Path]:
    return _gz(folder / "a.csv.gz", (b"id,generated_answer\n", 1), (b"," * (1 << 20), 4500))


@bomb
def gz_of_csv_header(folder: Path) -> list[Path]:
    return _gz(folder / "a.csv.gz", (ZEROS, 4500))


@bomb
def gz_of_many_members(folder: Path) -> list[Path]:
    member = gzip.compress(ZEROS * 64, 9)
    return _written(folder / "a.jsonl.gz", member * (SIZE // len(member)))


@bomb
def gz_of_empty_members(folder: Path) -> list[Path]:
    member = gzip.compress(b"", 9)
    return _written(folder / "a.jsonl.gz", member * (SIZE // len(member)))


@bomb
def gz_in_gz(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl.gz.gz", gzip.compress(gzip.compress(ZEROS * 1024, 9), 9))


@bomb
def zst_of_many_frames(folder: Path) -> list[Path]:
    frame = pa.compress(b"\n" * (1 << 20), "zstd", asbytes=True)
    return _written(folder / "a.jsonl.zst", frame * 20_000)


@bomb
def gz_of_coco(folder: Path) -> list[Path]:
    item = b'{"image_id":1,"caption":""},' * 40_000
    return _gz(folder / "a.json.gz", (b'{"annotations":[', 1), (item, 600), (b"{}]}", 1))


@bomb
def gz_of_vqa(folder: Path) -> list[Path]:
    item = b'{"question_id":1,"answers":[]},' * 40_000
    return _gz(folder / "a.json.gz", (b'{"annotations":[', 1), (item, 600), (b"{}]}", 1))


@bomb
def zip_renamed(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl.gz", b"PK\3\4" + zlib.compress(ZEROS * 64))


@bomb
def bz2_unsupported(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl.bz2", bz2.compress(ZEROS * 64))


@bomb
def xz_unsupported(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl.xz", lzma.compress(ZEROS * 64))


# Plain text


@bomb
def repeated_keys(folder: Path) -> list[Path]:
    pairs = ",".join(f'"k{number % 400_000}":1' for number in range(800_000))
    return _written(folder / "a.jsonl", f'{{"id":"a",{pairs}}}\n'.encode())


@bomb
def one_repeated_key(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"id":"a",' + b'"k":1,' * 1_600_000 + b'"k":1}\n')


@bomb
def repeated_keys_in_lines(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"a":1,"a":1}\n' * 700_000)


@bomb
def repeated_keys_in_an_array(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b"[" + b'{"a":1,\n"a":1},\n' * 600_000 + b"{}]")


@bomb
def repeated_keys_in_a_document(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b'{"annotations":[' + b'{"a":1,\n"a":1},\n' * 600_000 + b"{}]}")


@bomb
def colliding_keys(folder: Path) -> list[Path]:
    keys = ",".join(f'"{number}":1' for number in range(1_000_000))
    return _written(folder / "a.jsonl", f'{{"id":"a",{keys}'[: SIZE - 3].rsplit(",", 1)[0].encode() + b"}\n")


@bomb
def nested_objects_with_many_keys(folder: Path) -> list[Path]:
    keys = ",".join(f'"{number}":0' for number in range(40))
    return _written(folder / "a.jsonl", (b'{"id":"a","m":' + (f"{{{keys},".encode() + b'"x":') * 20_000))


@bomb
def new_columns_in_every_line(folder: Path) -> list[Path]:
    lines = (b'{"id":"%d","generated_answer":"","c%d":1}\n' % (n, n) for n in range(250_000))
    return _written(folder / "a.jsonl", b"".join(lines))


@bomb
def misspelt_columns(folder: Path) -> list[Path]:
    lines = (b'{"id":"%d","generated_answe%d":1}\n' % (n, n) for n in range(250_000))
    return _written(folder / "a.jsonl", b"".join(lines))


@bomb
def new_shape_in_every_line(folder: Path) -> list[Path]:
    names = [f'"c{n}":1' for n in range(20)]
    lines = (
        f'{{"id":"{n}","generated_answer":"",{",".join(name for k, name in enumerate(names) if n >> k & 1)}}}\n'
        for n in range(1, 100_000)
    )
    return _written(folder / "a.jsonl", "".join(lines).encode())


@bomb
def many_columns_in_a_line(folder: Path) -> list[Path]:
    columns = ",".join(f'"c{n}":{n}' for n in range(600_000))
    return _written(folder / "a.jsonl", f'{{"id":"a","generated_answer":"b",{columns}}}\n'.encode())


@bomb
def deep_lists(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"[" * SIZE)


@bomb
def deep_objects(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"a":' * (SIZE // 5))


@bomb
def deep_json(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b"[" * SIZE)


@bomb
def deep_document(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b'{"a":' * (SIZE // 5))


@bomb
def digits(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"1" * SIZE)


@bomb
def digits_in_a_record(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"id":' + b"1" * (SIZE - 20) + b"}\n")


@bomb
def digits_in_an_array(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b'[{"id":' + b"1" * (SIZE - 20) + b"}]")


@bomb
def digits_in_a_cell(folder: Path) -> list[Path]:
    return _written(
        folder / "a.csv",
        b"id,generated_answer,perplexity,epoch\na,b," + b"1" * (SIZE // 2) + b"," + b"1" * 4_000_000 + b"\n",
    )


@bomb
def escaped_nuls(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"id":"' + b"\\u0000" * (SIZE // 6 - 10) + b'"}\n')


@bomb
def lone_surrogates(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"id":"' + b"\\ud800" * (SIZE // 6 - 10) + b'"}\n')


@bomb
def nul_bytes(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"{}\n\n\n" + b"\0" * (SIZE - 10))


@bomb
def short_lines(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"1\n" * (SIZE // 2))


@bomb
def empty_objects(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"{}\n" * (SIZE // 3))


@bomb
def broken_lines(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"{\n" * (SIZE // 2))


@bomb
def blank_lines(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b"\n" * SIZE)


@bomb
def equal_ids(folder: Path) -> list[Path]:
    return _written(folder / "a.jsonl", b'{"id":1,"answer":""}\n' * (SIZE // 21))


@bomb
def equal_ids_in_an_array(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b"[" + b'{"id":1,"answer":""},' * (SIZE // 22) + b'{"id":1}]')


@bomb
def array_of_empty_objects(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b"[" + b"{}," * (SIZE // 3 - 5) + b"{}]")


@bomb
def array_of_commas(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b"[" + b"," * (SIZE - 5) + b"]")


@bomb
def array_of_numbers(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b"[" + b"1," * (SIZE // 2 - 5) + b"1]")


@bomb
def records_off_the_fast_path(folder: Path) -> list[Path]:
    lines = (b'{"id":%d,"answer":"","boxes":[]}\n' % number for number in range(290_000))
    return _written(folder / "a.jsonl", b"".join(lines))


@bomb
def one_giant_quoted_field(folder: Path) -> list[Path]:
    return _written(folder / "a.csv", b'id,answer\na,"' + b'""\n' * (SIZE // 3 - 10) + b'"\n')


@bomb
def open_quote(folder: Path) -> list[Path]:
    return _written(folder / "a.csv", b'id,answer\na,"' + b"x\n" * (SIZE // 2 - 10))


@bomb
def many_cells(folder: Path) -> list[Path]:
    return _written(folder / "a.csv", b"id,answer\n" + b"," * (SIZE - 20) + b"\n")


@bomb
def many_columns_csv(folder: Path) -> list[Path]:
    header = ",".join(["id", "answer", *(f"c{n}" for n in range(500_000))])
    return _written(folder / "a.csv", f"{header}\na,b{',' * 500_000}\n".encode() * 1)


@bomb
def equal_columns_csv(folder: Path) -> list[Path]:
    return _written(folder / "a.csv", b"a," * (SIZE // 2 - 10) + b"\n")


@bomb
def pairs_of_equal_columns_csv(folder: Path) -> list[Path]:
    header = ",".join(f"c{n // 2}" for n in range(1_000_000))
    return _written(folder / "a.csv", header.encode() + b"\n")


@bomb
def short_rows_tsv(folder: Path) -> list[Path]:
    return _written(folder / "a.tsv", b"id\tanswer\n" + b"a\n" * (SIZE // 2 - 10))


@bomb
def carriage_returns(folder: Path) -> list[Path]:
    return _written(folder / "a.csv", b"id,answer\n" + b"\r" * (SIZE - 10))


@bomb
def json_cells(folder: Path) -> list[Path]:
    return _written(folder / "a.csv", b'id,answer,metadata\na,b,"' + b"[" * (SIZE - 100) + b'"\n')


@bomb
def coco_pair(folder: Path) -> list[Path]:
    annotations, results = folder / "annotations.json", folder / "results.json"
    annotations.write_bytes(
        b'{"annotations":[' + b'{"image_id":1,"caption":"a"},' * 300_000 + b'{"image_id":1,"caption":"a"}]}'
    )
    results.write_bytes(b"[" + b'{"image_id":1,"caption":"a"},' * 300_000 + b'{"image_id":1,"caption":"a"}]')
    return [annotations, results]


@bomb
def coco_of_lists(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b'{"annotations":[' + b"[]," * (SIZE // 3 - 10) + b"[]]}")


@bomb
def coco_of_objects(folder: Path) -> list[Path]:
    return _written(folder / "a.json", b'{"annotations":[' + b'{"":{}},' * (SIZE // 8 - 10) + b"{}]}")


@bomb
def coco_of_many_images(folder: Path) -> list[Path]:
    items = b",".join(b'{"image_id":%d,"caption":"a"}' % n for n in range(250_000))
    return _written(folder / "a.json", b'{"annotations":[' + items + b"]}")


@bomb
def vqa_of_empty_questions(folder: Path) -> list[Path]:
    item = b'{"question_id":[],"answers":[{}]},'
    return _written(folder / "a.json", b'{"annotations":[' + item * (SIZE // len(item) - 2) + b"{}]}")


@bomb
def vqa_pair(folder: Path) -> list[Path]:
    items = b",".join(b'{"question_id":%d,"answers":["a"]}' % n for n in range(220_000))
    annotations, results = folder / "annotations.json", folder / "results.json"
    annotations.write_bytes(b'{"annotations":[' + items + b"]}")
    results.write_bytes(b"[" + b",".join(b'{"question_id":%d,"answer":"a"}' % n for n in range(220_000)) + b"]")
    return [annotations, results]


# Parquet


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
