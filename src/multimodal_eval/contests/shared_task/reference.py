"""The reference file of a shared task: its rules in the first line, and one sample per further line.

It is one file because EvalAI passes one file to its evaluation script. Only the scoring program sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample

FILE = "reference.jsonl"
Details = Literal["scores", "samples"]


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of the leaderboard: a result of the run, or an end of its interval."""

    key: str  # letters, digits and underscores
    title: str
    result: str  # as in `Run.keys()`
    figure: Literal["value", "low", "high"] = "value"
    is_lower_better: bool = False
    is_hidden: bool = False


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How submissions are read and scored. The first column is the one that ranks them."""

    format: Literal[1] = 1
    version: str  # of multimodal-eval
    title: str
    config: RunConfig
    columns: list[Column]
    details: Details  # what participants see of their submission
    max_mb: int  # of a submission, unpacked
    max_answer: int  # characters


class _FirstLine(msgspec.Struct):
    shared_task: Rules


def reference_lines(rules: Rules, samples: Sequence[Sample]) -> bytes:
    """The content of the file."""
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(line) + b"\n" for line in (_FirstLine(rules), *samples))


def read_reference(path: Path) -> tuple[Rules, list[Sample]]:
    """The rules and the samples."""
    try:
        with path.open("rb") as lines:
            rules = msgspec.json.decode(lines.readline(), type=_FirstLine).shared_task
            decoder = msgspec.json.Decoder(Sample)
            return rules, [decoder.decode(line) for line in lines]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConfigError(f"{path} is not a reference file of `mmeval export`") from None
