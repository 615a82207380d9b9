"""Load golden files, each once."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def golden(name: str) -> Any:
    return json.loads(gzip.decompress(Path(__file__).with_name(name).read_bytes()))
