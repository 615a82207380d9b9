"""Bombs of compressed text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path

import pyarrow as pa

from tests.hostile.bomb_registry import SHORT, SIZE, ZEROS, bomb, gz, written, zst


@bomb
def zst_of_one_line(folder: Path) -> list[Path]:
    return zst(folder / "a.jsonl.zst", ZEROS, 3072)


@bomb
def zst_of_a_document(folder: Path) -> list[Path]:
    return zst(folder / "a.json.zst", ZEROS, 3072)


@bomb
def zst_of_brackets(folder: Path) -> list[Path]:
    return zst(folder / "a.json.zst", b"[],{}," * (1 << 18), 1024)


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
    return gz(folder / "a.jsonl.gz", (ZEROS, 7000))


@bomb
def gz_of_blank_lines(folder: Path) -> list[Path]:
    return gz(folder / "a.jsonl.gz", (b"\n" * (1 << 20), 7000))


@bomb
def gz_of_short_lines(folder: Path) -> list[Path]:
    return gz(folder / "a.jsonl.gz", (b"1\n" * (1 << 19), 4500))


@bomb
def gz_of_equal_records(folder: Path) -> list[Path]:
    return gz(folder / "a.jsonl.gz", (SHORT * 20_000, 2500))


@bomb
def gz_of_csv_zeros(folder: Path) -> list[Path]:
    return gz(folder / "a.csv.gz", (b"id,generated_answer\n", 1), (ZEROS, 4500))


@bomb
def gz_of_csv_quoted(folder: Path) -> list[Path]:
    return gz(folder / "a.csv.gz", (b'id,generated_answer\na,"', 1), (ZEROS, 4500))


@bomb
def gz_of_csv_commas(folder: Path) -> list[Path]:
    return gz(folder / "a.csv.gz", (b"id,generated_answer\n", 1), (b"," * (1 << 20), 4500))


@bomb
def gz_of_csv_header(folder: Path) -> list[Path]:
    return gz(folder / "a.csv.gz", (ZEROS, 4500))


@bomb
def gz_of_many_members(folder: Path) -> list[Path]:
    member = gzip.compress(ZEROS * 64, 9)
    return written(folder / "a.jsonl.gz", member * (SIZE // len(member)))


@bomb
def gz_of_empty_members(folder: Path) -> list[Path]:
    member = gzip.compress(b"", 9)
    return written(folder / "a.jsonl.gz", member * (SIZE // len(member)))


@bomb
def gz_in_gz(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl.gz.gz", gzip.compress(gzip.compress(ZEROS * 1024, 9), 9))


@bomb
def zst_of_many_frames(folder: Path) -> list[Path]:
    frame = pa.compress(b"\n" * (1 << 20), "zstd", asbytes=True)
    return written(folder / "a.jsonl.zst", frame * 20_000)


@bomb
def gz_of_coco(folder: Path) -> list[Path]:
    item = b'{"image_id":1,"caption":""},' * 40_000
    return gz(folder / "a.json.gz", (b'{"annotations":[', 1), (item, 600), (b"{}]}", 1))


@bomb
def gz_of_vqa(folder: Path) -> list[Path]:
    item = b'{"question_id":1,"answers":[]},' * 40_000
    return gz(folder / "a.json.gz", (b'{"annotations":[', 1), (item, 600), (b"{}]}", 1))


@bomb
def zip_renamed(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl.gz", b"PK\3\4" + zlib.compress(ZEROS * 64))


@bomb
def bz2_unsupported(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl.bz2", bz2.compress(ZEROS * 64))


@bomb
def xz_unsupported(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl.xz", lzma.compress(ZEROS * 64))
