"""The program still does what was recorded: `python -m tools.recorded`."""

from __future__ import annotations

import platform
import re
import sys

import pyarrow
import pytest

from tools.recorded.__main__ import FOLDER, NAMES, difference
from tools.recorded.record import ROOT

QUICK = ("generate", "import-lm-eval")  # in the default suite

# Another pyarrow writes other bytes, and other processors compute other last digits.
PYARROW = re.search(r"^pyarrow==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
pytestmark = pytest.mark.skipif(
    PYARROW is None or pyarrow.__version__ != PYARROW[1] or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="recorded on Linux (x86-64), with the versions of constraints.txt",
)


def marked(name: str) -> object:
    marks = [pytest.mark.ray] if name == "ray" else [] if name in QUICK else [pytest.mark.slow]
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_nothing_differs_from_the_record(name):
    assert difference(name) == ""


def test_every_record_has_a_case():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)
