"""The list of slow tests, which the default suite leaves out: `tools/slow_tests.py` makes it of recorded times."""

from __future__ import annotations

from pathlib import Path

LIST = Path(__file__).with_name("slow_tests.txt")
KEPT = "+ "


def entries(text: str) -> tuple[set[str], set[str]]:
    """The slow tests of a list, and those that stay in the default suite."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    kept = {line.removeprefix(KEPT) for line in lines if line.startswith(KEPT)}
    return {line for line in lines if not line.startswith(KEPT)}, kept
