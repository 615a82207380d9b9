"""Baselines that rescale BERTScore: a file in the format of the package bert-score, with one line per layer.

    LAYER,P,R,F
    0,0.2972,0.2973,0.2944
    1,0.5118,0.5119,0.5104

A score x becomes (x - b) / (1 - b): unrelated texts get about 0, and equal texts 1. The values may be separated by
commas or by tabs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from multimodal_eval.core.errors import ConfigError

MAX_BYTES = 1_000_000
_COLUMNS = ["layer", "p", "r", "f"]


class Baseline(NamedTuple):
    """The mean precision, recall and F1 of unrelated texts."""

    precision: float
    recall: float
    f1: float

    def rescaled(self, values: Iterable[float]) -> tuple[float, float, float]:
        """Precision, recall and F1, each rescaled with its baseline."""
        precision, recall, f1 = ((value - base) / (1 - base) for value, base in zip(values, self, strict=True))
        return precision, recall, f1


def baseline_of(path: str, layer: int) -> Baseline:
    """The baseline of a layer. A ConfigError says what is wrong with the file."""
    _, baselines = _opened(path)
    if layer not in baselines:
        known = ", ".join(map(str, sorted(baselines)))
        raise ConfigError(f"the baseline file {path} has no line for layer {layer}. Its layers: {known}")
    return baselines[layer]


def baselines_label(path: str) -> str:
    """The file's name with a digest of its content; the name alone if it cannot be read."""
    try:
        return f"{Path(path).name}@{_opened(path)[0]}"
    except ConfigError:
        return Path(path).name


def _opened(path: str) -> tuple[str, dict[int, Baseline]]:
    try:
        stat = Path(path).stat()
        if stat.st_size > MAX_BYTES:
            raise ConfigError(f"the baseline file {path} has more than {MAX_BYTES:,} bytes: it is another kind of file")
        return _parsed(path, stat.st_mtime_ns, stat.st_size)
    except OSError as fault:
        raise ConfigError(f"the baseline file {path} cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the baseline file {path} cannot be read: it is not text in UTF-8") from None


@lru_cache(maxsize=8)
def _parsed(path: str, changed: int, size: int) -> tuple[str, dict[int, Baseline]]:
    content = Path(path).read_bytes()
    rows = [
        (number, line.replace("\t", ",").split(","))
        for number, line in enumerate(content.decode("utf-8-sig").splitlines(), 1)
        if line.strip()
    ]
    if not rows or [name.strip().lower() for name in rows[0][1]] != _COLUMNS:
        raise ConfigError(f"the baseline file {path} must start with the line LAYER,P,R,F, as those of bert-score do")
    baselines: dict[int, Baseline] = {}
    for number, cells in rows[1:]:
        layer, baseline = _row(path, number, cells)
        if layer in baselines:
            raise ConfigError(f"{path}:{number}: layer {layer} is there twice")
        baselines[layer] = baseline
    if not baselines:
        raise ConfigError(f"the baseline file {path} has no line after its header")
    return sha256(content).hexdigest()[:8], baselines


def _row(path: str, number: int, cells: list[str]) -> tuple[int, Baseline]:
    try:
        layer, *values = map(float, cells)
        if len(values) == 3 and layer >= 0 and layer.is_integer() and all(isfinite(x) and x < 1 for x in values):
            return int(layer), Baseline(*values)
    except ValueError:
        pass
    got = ",".join(cells)[:60]
    raise ConfigError(f"{path}:{number}: a layer and three numbers below 1 are expected. Got {got!r} instead.")
