"""Bombs in the form of logs of inspect_ai: samples that are large once unpacked, too many, or always the same."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow as pa

from tests.data.logs.zip_files import Entry, write_zip
from tests.hostile.bomb_registry import SIZE, bomb

HEADER = json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}).encode()
START = [Entry("_journal/start.json", HEADER), Entry("header.json", HEADER)]
HEAD = b'{"id": %d, "epoch": 1, "input": "", "target": "", '


def _repeated(head: bytes, piece: bytes, times: int, tail: bytes) -> Entry:
    """The entry of a sample with a piece repeated many times."""
    content = head + piece * times + tail
    return Entry("samples/1_epoch_1.json", content)


@bomb
def eval_of_zeros(folder: Path) -> list[Path]:
    return [write_zip(folder / "a.eval", [*START, _repeated(b"", b"0", 250 << 20, b"")])]


@bomb
def eval_of_events(folder: Path) -> list[Path]:
    entry = _repeated(HEAD % 1 + b'"events": [', b"[],", 80 << 20, b"0]}")
    return [write_zip(folder / "a.eval", [*START, entry])]


@bomb
def eval_of_metadata(folder: Path) -> list[Path]:
    entry = _repeated(HEAD % 1 + b'"metadata": {"a": [', b"[],", 60 << 20, b"0]}}")
    return [write_zip(folder / "a.eval", [*START, entry])]


@bomb
def eval_of_depth(folder: Path) -> list[Path]:
    return [write_zip(folder / "a.eval", [*START, _repeated(HEAD % 1 + b'"metadata": ', b'{"a":', 40 << 20, b"")])]


@bomb
def eval_of_nan(folder: Path) -> list[Path]:
    entry = _repeated(HEAD % 1 + b'"metadata": {"a": [', b"NaN,", 15 << 20, b"0]}}")
    return [write_zip(folder / "a.eval", [*START, entry])]


@bomb
def eval_of_many_samples_with_many_values(folder: Path) -> list[Path]:
    """Every sample is small enough, and all of them are not."""
    entries = list(START)
    for number in range(50):
        content = HEAD % number + b'"metadata": {"a": [' + b"[]," * 1_500_000 + b"0]}}"
        entries.append(Entry(f"samples/{number}_epoch_1.json", content))
    return [write_zip(folder / "a.eval", entries)]


@bomb
def eval_of_small_samples(folder: Path) -> list[Path]:
    """As many entries as fit into the file."""
    entries = list(START)
    for number in range(60_000):
        entries.append(Entry(f"samples/{number}_epoch_1.json", HEAD % number + b'"x": 0}'))
    return [write_zip(folder / "a.eval", entries)]


@bomb
def eval_of_one_content_again_and_again(folder: Path) -> list[Path]:
    """Entries of the directory that refer to the same data."""
    packed = bytes(pa.compress(bytes(100 << 20), codec="zstd", asbytes=True))
    same = [
        Entry(f"samples/{number}_epoch_1.json", b"", size=100 << 20, packed=b"" if number else packed, offset=0)
        for number in range(50_000)
    ]
    return [write_zip(folder / "a.eval", same)]


@bomb
def eval_of_a_directory(folder: Path) -> list[Path]:
    """A directory that says it has entries without end."""
    path = write_zip(folder / "a.eval", START)
    data = path.read_bytes()[:-22]
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFE, 0xFFFE, SIZE // 2, len(data), 0)
    path.write_bytes(data + bytes(SIZE // 2) + end)
    return [path]


@bomb
def json_log_of_metadata(folder: Path) -> list[Path]:
    path = folder / "a.json"
    samples = HEAD % 1 + b'"metadata": {"a": [' + b"[]," * 3_000_000 + b"0]}}"
    path.write_bytes(HEADER[:-1] + b', "samples": [' + samples + b"]}")
    return [path]
