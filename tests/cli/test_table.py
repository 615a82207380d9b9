"""`mmeval table` in every format."""

from __future__ import annotations

import csv
import json

import pytest

from tests.analysis.suites import small_suite
from tests.cli.command_line import mmeval


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_suite(tmp_path_factory.mktemp("suite"))


def test_the_table_of_a_terminal(folder):
    out = mmeval("table", str(folder), "--percent").stdout
    assert "finch is better than wren over 3 tasks: +25 [+13, +37] points" in out  # 18 of 72
    assert "+25.00   +13.38 … +36.62" in out
    assert "83.3 ★" in out  # 20 of 24
    assert "n = 24" in out
    assert "exact_match|" not in out  # signatures are in other formats


def test_a_narrow_terminal_shows_every_column(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = mmeval("table", str(folder)).stdout
    assert max(len(line) for line in out.splitlines() if line[:1] in " ┃│") <= 60
    for text in ("chart", "count", "vqa", "average", "mean", "rank"):  # "mean rank" is on two lines
        assert text in out


def test_why_no_cell_is_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(number), "references": ["a dog"], "generated_answer": "a dog"} for number in range(4)]
    for name, answers in [("wren", rows), ("finch", [{**rows[0], "generated_answer": None}, *rows[1:]])]:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
        mmeval("score", f"{name}.jsonl", "--metrics", "exact_match", "-o", f"runs/{name}/task")
    assert "No cell is compared: no task has two comparable models" in mmeval("table", "runs").stdout
    alone = mmeval("table", "runs", "--models", "wren").stdout
    assert "No cell is compared: each task has a single model" in alone


def test_formats_and_files(folder, tmp_path):
    latex = mmeval("table", str(folder), "--format", "latex").stdout
    assert r"\textbf{0.833 $\star$}" in latex
    assert r"\begin{tabular}{lrrrrrr}" in latex
    markdown = mmeval("table", str(folder), "--format", "markdown", "--transpose").stdout
    assert "| task | finch | parrot | wren |" in markdown
    content = json.loads(mmeval("table", str(folder), "--format", "json").stdout)
    assert [row["name"] for row in content["rows"]] == ["finch", "parrot", "wren"]
    for suffix in ("tex", "md", "html", "json", "csv"):
        mmeval("table", str(folder), "-o", str(tmp_path / f"table.{suffix}"))
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert len(rows) == 9
    assert float(next(row for row in rows if row["model"] == "finch" and row["task"] == "vqa")["value"]) == 20 / 24
    assert "color-mix" in (tmp_path / "table.html").read_text()


def test_a_baseline_has_differences(folder):
    out = mmeval("table", str(folder), "--baseline", "parrot", "--errors", "none").stdout
    assert "parrot (baseline)" in out
    assert "minus parrot" in out
    assert "+0.333" in out  # finch on vqa


def test_wrong_use(folder, tmp_path):
    assert "name runs" in mmeval("table", code=2).stderr
    assert "must end in .tex" in mmeval("table", str(folder), "-o", str(tmp_path / "x.pdf"), code=2).stderr
    assert "Did you mean 'finch'" in mmeval("table", str(folder), "--baseline", "finhc", code=1).stderr
    assert "is not a folder" in mmeval("table", str(folder / "x"), code=1).stderr
