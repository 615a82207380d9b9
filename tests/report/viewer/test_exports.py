"""Table exports: CSV, JSON, LaTeX, Markdown."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.viewer.exports import FORMATS, Table, as_csv, as_json, as_latex, as_markdown

cells = st.one_of(
    st.none(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)


def written(form: str, table: Table) -> str:
    return "".join(FORMATS[form].write(table))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum(a)", "\tx", "\rx", "=cmd|' /C calc'!A0", " =1"])
def test_a_formula_is_escaped(text: str):
    (row,) = csv.reader(io.StringIO("".join(as_csv(Table([text], []))), newline=""))
    assert row == ["'" + text]


def test_negative_numbers_stay_numbers():
    assert "".join(as_csv(Table(["x"], [[-0.5], [-3]]))) == "x\r\n-0.5\r\n-3\r\n"


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_csv_round_trip(rows):
    lines = list(csv.reader(io.StringIO("".join(as_csv(Table(["a", "b"], rows))), newline="")))
    assert lines[0] == ["a", "b"]
    for row, line in zip(rows, lines[1:], strict=True):
        for cell, text in zip(row, line, strict=True):
            expected = "" if cell is None else str(cell)
            assert text in (expected, "'" + expected)
            if isinstance(cell, float):
                assert float(text) == cell
            if isinstance(cell, str):
                assert not text.startswith(("=", "+", "-", "@", "\t", "\r"))


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_json_round_trip(rows):
    assert json.loads("".join(as_json(Table(["a", "b"], rows)))) == [{"a": a, "b": b} for a, b in rows]


def test_latex_is_escaped():
    table = Table(["a_b", "100%"], [["x & y \\ {z} #1 $2 ^3 ~4\n5", 0.12345]], note="the first\nrow")
    assert "".join(as_latex(table)) == (
        "% the first row.\n"
        "\\begin{tabular}{lr}\n\\toprule\n"
        "a\\_b & 100\\% \\\\\n\\midrule\n"
        "x \\& y \\textbackslash{} \\{z\\} \\#1 \\$2 \\textasciicircum{}3 \\textasciitilde{}4 5 & 0.1235 \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
    )


def test_markdown_is_escaped():
    table = Table(["a|b", "n"], [["<b>x</b> *y* `z`\n[l](u) | &amp;", 1.0], [None, None]])
    assert "".join(as_markdown(table)) == (
        "| a\\|b | n |\n|---|--:|\n"
        "| &lt;b&gt;x&lt;/b&gt; \\*y\\* \\`z\\` \\[l\\]\\(u\\) \\| &amp;amp; | 1.0000 |\n|  |  |\n"
    )


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_table_can_be_written(form: str):
    text = written(form, Table(["a"], []))
    assert json.loads(text) == [] if form == "json" else "a" in text


def test_p_values_are_shown_as_everywhere_and_stored_exactly():
    table = Table(["metric", "p"], [["bleu", 0.00001], ["rouge_l", 0.25], ["cider", None]], p_values=("p",))
    assert "".join(as_markdown(table)) == (
        "| metric | p |\n|---|--:|\n| bleu | &lt; 0.0001 |\n| rouge\\_l | 0.2500 |\n| cider |  |\n"
    )
    assert r"bleu & \textless{} 0.0001 \\" in "".join(as_latex(table))
    assert "".join(as_csv(table)) == "metric,p\r\nbleu,1e-05\r\nrouge_l,0.25\r\ncider,\r\n"
    assert json.loads("".join(as_json(table)))[0] == {"metric": "bleu", "p": 1e-05}
