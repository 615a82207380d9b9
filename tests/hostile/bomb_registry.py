"""The registry of bombs and what their modules share: see `bombs`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

Bomb = Callable[[Path], list[Path]]
BOMBS: dict[str, Bomb] = {}
SIZE = 10_000_000


def bomb(make: Bomb) -> Bomb:
    """Register a bomb under the name of its function."""
    BOMBS[make.__name__] = make
    return make


def written(path: Path, content: bytes) -> list[Path]:
    path.write_bytes(content[:SIZE])
    return [path]


def gz(path: Path, *pieces: tuple[bytes, int]) -> list[Path]:
    """Some pieces, each repeated, in a member of its own: so the file is written at once."""
    content = b"".join(gzip.compress(piece, 9) * times for piece, times in pieces)
    return written(path, content)


def zst(path: Path, piece: bytes, times: int) -> list[Path]:
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        for _ in range(times):
            stream.write(piece)
    return [path]


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


ZEROS = b"0" * (1 << 20)
SHORT = line(id="a", generated_answer="b")
