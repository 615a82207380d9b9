"""The committed tables match the output of their generators."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"


def test_the_ptb_tables_are_up_to_date(tmp_path):
    subprocess.run([sys.executable, str(NATIVE / "ptb_rules"), str(tmp_path / "tables.h")], check=True)
    assert (tmp_path / "tables.h").read_bytes() == (NATIVE / "ptb_tables.h").read_bytes()


def test_the_unicode_tables_are_up_to_date():
    written = (NATIVE / "unicode_tables.h").read_text()
    if f"from Unicode {unicodedata.unidata_version}." not in written:
        return  # this Python has another Unicode version than the one that the tables name
    generated = subprocess.run(
        [sys.executable, str(NATIVE / "unicode_tables.py")], capture_output=True, text=True, check=True
    )
    assert generated.stdout == written
