"""Plug-in files with one metric `m` that misbehaves on the sample with the answer "bad"."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent

HEAD = """import ctypes, os, signal, sys
import numpy as np
from multimodal_eval import Metric, Score, metric, register
from multimodal_eval.core.score import Estimate
from multimodal_eval.core.score import Scores
"""
COUNT = 12
BAD = "5"  # the id of the bad sample


def data_file(folder: Path) -> Path:
    """Twelve samples, one of them bad."""
    file = folder / "data.jsonl"
    rows = [{"id": str(number), "generated_answer": "bad" if str(number) == BAD else "a"} for number in range(COUNT)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def plugin(folder: Path, text: str) -> Path:
    """A plug-in file."""
    file = folder / "plugin.py"
    file.write_text(HEAD + text)
    return file


def for_the_bad_sample(statement: str, declared: str = "") -> str:
    """A metric that executes a statement for the bad sample and returns 1.0 for all others."""
    body = f"if sample.generated_answer == 'bad':\n    {statement}\nreturn 1.0\n"
    return f"@metric('m', version='1'{declared})\ndef m(sample):\n{indent(body, '    ')}"


def aggregating(statement: str) -> str:
    """A metric from 0 to 1 whose aggregate executes a statement."""
    return (
        f"def aggregate(rows):\n    {statement}\n"
        "@metric('m', version='1', bounds=(0, 1), aggregate=aggregate)\ndef m(sample):\n    return 0.5\n"
    )
