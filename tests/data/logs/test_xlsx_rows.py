"""Workbooks: shared and inline texts, gaps, and archives that are damaged or hostile."""

from __future__ import annotations

import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.xlsx_rows import read_xlsx
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.problems import Problems
from tests.data.logs.fixture_logs import VLMEVALKIT

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def write_xlsx(path, rows, shared=None, head="", name="xl/worksheets/sheet1.xml"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, f'{head}<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>')
        if shared is not None:
            archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{shared}</sst>')
    return path


def inline(texts, number=1):
    from xml.sax.saxutils import escape

    cells = "".join(f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>' for text in texts)
    return f'<row r="{number}">{cells}</row>'


def rows_of(path):
    problems = Problems()
    rows = list(read_xlsx(path, problems))
    return rows, problems


def test_a_workbook_of_xlsxwriter_keeps_what_looks_like_a_missing_value():
    rows, problems = rows_of(VLMEVALKIT / "predictions" / "toy_CHOICES.xlsx")
    assert not problems.total
    assert rows[0] == (1, "index question A B C D answer prediction category".split())
    assert rows[2] == (3, ["2", "How many dogs are there?", "1", "2", "3", "None", "D", "D. None", "numbers"])
    assert rows[3][1][2:6] == ["N/A", "NA", "NaN", "null"]
    assert rows[1][1][5] == ""  # an empty cell


def test_every_kind_of_cell(tmp_path):
    shared = "<si><t>red</t></si><si><r><t>007 </t></r><r><t>spies</t></r><rPh><t>guide</t></rPh></si>"
    cells = (
        '<c r="A1" t="s"><v>1</v></c><c r="C1" t="s"><v>0</v></c><c r="D1"><v>1.50</v></c><c r="E1" t="b"><v>1</v></c>'
        '<c r="F1" t="str"><f>A1&amp;"x"</f><v>formula</v></c>'
        '<c r="AA1" t="inlineStr"><is><t>in_x000D_line</t></is></c>'
    )
    rows, problems = rows_of(write_xlsx(tmp_path / "a.xlsx", f'<row r="1">{cells}</row>', shared))
    assert not problems.total
    ((number, texts),) = rows
    assert (number, len(texts)) == (1, 27)
    assert texts[:6] == ["007 spies", "", "red", "1.50", "True", "formula"]
    assert texts[26] == "in\rline"


def test_the_first_sheet_of_the_workbook_counts(tmp_path):
    path = tmp_path / "a.xlsx"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w") as archive:
        for sheet, text in (("sheet1", "second"), ("sheet2", "first")):
            content = f"<worksheet><sheetData>{inline([text])}</sheetData></worksheet>"
            archive.writestr(f"xl/worksheets/{sheet}.xml", content)
        sheets = '<sheet name="x" r:id="b"/><sheet name="y" r:id="a"/>'
        archive.writestr("xl/workbook.xml", f'<workbook xmlns:r="{relation}"><sheets>{sheets}</sheets></workbook>')
        targets = '<Relationship Id="a" Target="worksheets/sheet1.xml"/>'
        targets += '<Relationship Id="b" Target="/xl/worksheets/sheet2.xml"/>'
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{targets}</Relationships>")
    assert rows_of(path)[0] == [(1, ["first"])]


printable = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff"), max_size=20)


@settings(deadline=None, max_examples=50)
@given(table=st.lists(st.lists(printable.filter(lambda text: "_x" not in text), min_size=1, max_size=4), max_size=5))
def test_texts_come_back(tmp_path_factory, table):
    rows = "".join(inline(texts, number) for number, texts in enumerate(table, 1))
    path = write_xlsx(tmp_path_factory.mktemp("x") / "a.xlsx", rows)
    assert rows_of(path)[0] == list(enumerate(table, 1))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('<row><c t="s"><v>5</v></c></row>', "refers to a text that is not in the file"),
        ('<row r="1"><c r="B1"><v>1</v></c><c r="A1"><v>1</v></c></row>', "not in order"),
        ('<row r="1"><c r="ZZZ1"><v>1</v></c></row>', "beyond the last column"),
        ("<row><c>", "mismatched tag"),
    ],
)
def test_damage_is_named(tmp_path, rows, message):
    _, problems = rows_of(write_xlsx(tmp_path / "a.xlsx", rows))
    (problem,) = problems.kept
    assert message in problem.message


def test_an_unknown_encoding_is_named(tmp_path):
    head = '<?xml version="1.0" encoding="UTFF-8"?>'
    _, problems = rows_of(write_xlsx(tmp_path / "a.xlsx", inline(["a"]), head=head))
    assert "unknown encoding: UTFF-8" in problems.kept[0].message


def times(number):
    return f"&a{number};" * 10


def test_a_document_type_is_refused(tmp_path):
    # Ten entities, each ten times the one before: a billion laughs.
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{times(n - 1)}">' for n in range(1, 10))
    path = write_xlsx(tmp_path / "a.xlsx", "<row><c><v>&a9;</v></c></row>", head=f"<!DOCTYPE x [{entities}]>")
    rows, problems = rows_of(path)
    assert rows == []
    assert "declares a document type" in problems.kept[0].message


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "STREAM", 1 << 20)
    path = write_xlsx(tmp_path / "a.xlsx", inline(["a" * 1000]) * 5_000)  # 5 MB of XML in 20 KB
    assert path.stat().st_size * 200 < 5_000_000
    with pytest.raises(InputError, match="decompression bomb"):
        rows_of(path)


def test_many_cells_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_WORK", 1 << 20)
    path = write_xlsx(tmp_path / "a.xlsx", f"<row>{'<c/>' * 10_000}</row>" * 100)
    with pytest.raises(InputError, match="decompression bomb"):
        rows_of(path)


def test_a_long_row_is_refused(tmp_path):
    shared = f"<si><t>{'a' * 1_000_000}</t></si>"
    cells = '<c t="s"><v>0</v></c>' * 100
    path = write_xlsx(tmp_path / "a.xlsx", f"<row>{cells}</row>", shared)
    with pytest.raises(InputError, match="a record is longer"):
        rows_of(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\5\6" + b"\0" * 18, b"PK\5\6" + b"\xff" * 18])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    rows, problems = rows_of(path)
    assert rows == []
    assert "not a readable .xlsx file" in problems.kept[0].message


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "xl/../../x"])
def test_a_name_that_leads_out_of_the_archive_is_refused(tmp_path, name):
    path = tmp_path / "book.xlsx"
    write_xlsx(path, inline(["a"]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "x")
    problems = Problems()
    assert list(read_xlsx(path, problems)) == []
    assert "leads out of the archive" in problems.kept[0].message
