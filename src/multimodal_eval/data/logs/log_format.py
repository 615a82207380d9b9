"""What a reader of a harness' log is: how the log is recognised, its records, and what it says about itself.

A record has the columns of a sample (`id`, `question`, `choices`, `references`, `generated_answer`, `error`, …). Scores
of the harness are columns `HARNESS.NAME`, which become metadata and which the metric `recorded` returns. All other
columns are metadata too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from multimodal_eval.core.metric import RESERVED_NAMES
from multimodal_eval.data.readers.problems import Problems, Record

__all__ = ["HasCompanions", "Head", "LogFormat", "LogInfo", "RecordedScore", "as_score", "not_a_score", "score_column"]

_LONGEST = 80  # characters of a name, which becomes part of the name of a file
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partly correct, incorrect, no answer


class Head(msgspec.Struct, frozen=True, dict=True):
    """The beginning of a file, by which its format is recognised."""

    path: Path
    suffix: str  # without compression
    data: bytes

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first record of a file of JSON lines; empty if it is something else, or longer than the head."""
        try:
            record = msgspec.json.decode(self.data.lstrip().partition(b"\n")[0])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}

    def has_keys(self, *names: str) -> bool:
        """Whether all names are keys of the first record, or are written as keys in a head that cannot be decoded."""
        if self.first:
            return all(name in self.first for name in names)
        return all(f'"{name}"'.encode() in self.data for name in names)


class RecordedScore(msgspec.Struct, frozen=True):
    """A score of the harness: the column, its direction and range, and the mean that the harness itself reports."""

    column: str
    direction: str = "higher"
    low: float | None = None
    high: float | None = None
    own_mean: float | None = None
    own_count: int | None = None
    aggregation: str | None = None  # as the harness names it, if it is not a mean
    decimals: int | None = None  # to which the harness rounds its mean


class LogInfo(msgspec.Struct, frozen=True):
    """What a log says about itself."""

    harness: str
    version: str | None = None
    model: str | None = None
    task: str | None = None
    scores: tuple[RecordedScore, ...] = ()
    notes: tuple[str, ...] = ()  # what was left out, and why
    settings: dict[str, Any] = msgspec.field(default_factory=dict)  # of the generation: temperature, shots, …


class LogFormat(Protocol):
    """The reader of one format. Modules of `data.logs` have one as `FORMAT`."""

    name: str  # for --as
    harness: str  # the first part of the columns of its scores
    suffixes: tuple[str, ...]
    files: str  # for `mmeval ls formats`: how its files are named
    takes: str  # and what is taken from them

    def recognises(self, head: Head) -> bool:
        """Whether a file with this beginning is such a log."""
        ...

    def part_name(self, path: Path) -> str:
        """A name for a file among several logs, such as its task. It precedes the ids of its samples."""
        ...

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """(line or number, columns) of every sample."""
        ...

    def info(self, path: Path) -> LogInfo:
        """What the log, and the results beside it, say."""
        ...


@runtime_checkable
class HasCompanions(Protocol):
    """A format whose logs consist of several files, of which one is read and the others belong to it."""

    def main_files(self, paths: Sequence[Path]) -> list[Path]:
        """Of the files of this format in a folder, those that are read."""
        ...


def as_score(value: object) -> float | None:
    """A recorded value as a number: numbers, booleans, and the letters C, P, I and N; None for anything else."""
    if isinstance(value, bool | int | float):
        try:
            return float(value) if isfinite(value) else None
        except OverflowError:  # an integer with hundreds of digits
            return None
    return LETTERS.get(value) if isinstance(value, str) else None


def not_a_score(value: object) -> str:
    """A recorded value that is not a number, as JSON, shortened.

    In the column of a score it says what the harness recorded: the sample is unscored, and the text is in the reason.
    """
    if isinstance(value, float):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    try:
        text = msgspec.json.encode(value, enc_hook=str).decode(errors="replace")
    except (TypeError, ValueError, RecursionError):
        text = str(type(value).__name__)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def score_column(harness: str, name: str) -> str:
    """The column of a score. Characters that the name of a metric cannot have become `_`; a long name is cut."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")
    if len(plain) > _LONGEST:
        digest = sha256(name.encode(errors="surrogatepass")).hexdigest()
        plain = f"{plain[:_LONGEST]}_{digest[:8]}"
    if plain in RESERVED_NAMES:
        plain = f"{plain}_score"
    return f"{harness}.{plain if plain[:1].isalpha() else f's{plain}'}"
