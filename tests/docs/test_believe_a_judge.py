"""What docs/believe-a-judge.md says can be computed again; bench/judge_calibration.py does it for the simulations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.stats.label_budget import LabelBudget

PAGE = (Path(__file__).parents[2] / "docs" / "believe-a-judge.md").read_text()


def test_the_table_of_labels():
    rows = re.findall(r"^\| (no judge|\.\d+) \| (\d+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 7
    for correlation, worth, narrow, wide in rows:
        budget = LabelBudget(10_000, 0.25, 0.0 if correlation == "no judge" else float(correlation))
        assert float(worth) == pytest.approx(budget.worth(100), abs=0.5)
        labels = budget.labels_for(0.03), budget.labels_for(0.05)
        assert labels == (int(narrow.replace(",", "")), int(wide.replace(",", "")))


def test_corrected_intervals_cover_and_those_of_the_judge_do_not():
    rows = re.findall(r"^\| [^|]+ \| [\d,]+ \|(.*)\|$", PAGE.split("With groups")[0], re.MULTILINE)
    assert len(rows) == 12
    for row in rows:
        naive, *corrected = (float(share) for share in re.findall(r"([\d.]+)% \(", row))
        assert naive < 20
        assert all(94 <= share <= 96 for share in corrected)
