"""The captions that the benchmarks read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path


def read_captions(path: str, scale: int) -> tuple[list[str], list[list[str]]]:
    """Candidates and references, repeated `scale` times without sharing strings."""
    packed = gzip.decompress(Path(path).read_bytes())
    candidates: list[str] = []
    references: list[list[str]] = []
    for _ in range(scale):
        data = json.loads(packed)
        candidates += data["candidates"].values()
        references += (data["references"][image] for image in data["candidates"])
    return candidates, references
