"""The program still does what was recorded: `python -m tools.recorded`."""

from __future__ import annotations

import platform
import re
import sys

import pyarrow
import pytest

from tools.recorded.__main__ import FOLDER, NAMES, difference
from tools.recorded.record import ROOT
from tools.recorded.scores import Line, moved, undeclared

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


OLD = {
    "anls rule=a@1": Line("0.500000000000", "4 of 4", "aaaaaaaa", "answers 1", "anls|v:1|rule:a@1"),
    "wer": Line("0.250000000000", "4 of 4", "bbbbbbbb", "answers 1", "wer|v:1"),
}


def with_line(name, **changes):
    return {**OLD, name: OLD[name]._replace(**changes)}


def test_a_score_that_moves_is_shown_and_must_be_declared():
    new = with_line("wer", value="0.300000000000", digest="cccccccc", scored="3 of 4")
    assert moved(OLD, new) == {"wer": "0.250000000000 -> 0.300000000000; scored 4 of 4 -> 3 of 4"}
    assert undeclared(OLD, new, "`cer` counts blanks.") == [
        "wer: no file in changes/ names `wer`. Say there what moves, and by how much",
        "wer: the signature is still wer|v:1. Raise the version, or rename the rule",
    ]
    signed = with_line("wer", value="0.300000000000", digest="cccccccc", signature="wer|v:2")
    assert moved(OLD, signed) == {"wer": "0.250000000000 -> 0.300000000000; wer|v:1 -> wer|v:2"}
    assert undeclared(OLD, signed, "`wer` counts blanks: +0.05.") == []


def test_samples_that_move_against_each_other_are_noticed():
    new = with_line("anls rule=a@1", digest="dddddddd")
    assert moved(OLD, new) == {"anls rule=a@1": "0.500000000000 -> 0.500000000000; single samples differ"}
    assert len(undeclared(OLD, new, "")) == 2


def test_a_new_rule_and_other_answers_need_no_declaration():
    new = {**with_line("wer", value="0.9", digest="eeeeeeee", answers="answers 2"), "cer": OLD["wer"]}
    assert moved(OLD, new)["cer"] == "nothing -> 0.250000000000"
    assert undeclared(OLD, new, "") == []
    assert undeclared(OLD, {"wer": OLD["wer"]}, "") == [
        "anls rule=a@1: no file in changes/ names `anls`. Say there what moves, and by how much"
    ]
