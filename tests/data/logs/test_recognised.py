"""Formats are recognised by their beginning, and only the modules that may read a file are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.recognised import _FORMATS, log_formats
from multimodal_eval.run.import_log import read_logs
from tests.data.logs.test_xlsx_rows import inline, write_xlsx
from tests.data.readers.reading import read


def test_the_table_has_the_suffixes_of_the_formats():
    for name, format_ in log_formats().items():
        assert _FORMATS[name].suffixes == format_.suffixes
        assert format_.name == name


def test_an_ordinary_file_imports_no_reader_of_logs(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"id": 1, "generated_answer": "a", "references": ["a"]}\n', encoding="utf-8")
    script = (
        "import sys; from pathlib import Path; from multimodal_eval.data.readers.formats import reader_of\n"
        f"reader_of(Path({str(path)!r}))\n"
        "print(sorted(name for name in sys.modules if name.startswith('multimodal_eval.data.logs.')))"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed == "['multimodal_eval.data.logs.log_format', 'multimodal_eval.data.logs.recognised']\n"


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("a.eval", b"", "FORMAT", "not a log of inspect_ai: it must be a zip file or a JSON object, and it is empty"),
        ("a.eval", b"text", "FORMAT", "a zip file or a JSON object, and it is something else"),
        ("a.eval", b"PK\3\4", "TRUNCATED", "the directory at the end of the zip file is missing"),
        ("a.xlsx", b"", "FORMAT", "not a readable .xlsx file: the directory at its end is missing"),
        ("a.xlsx", b"PK\3\4", "FORMAT", "not a readable .xlsx file: the directory at its end is missing"),
        ("a.jsonld", b"", "EMPTY", "the file is empty"),
    ],
)
def test_a_damaged_file_is_read_by_the_only_format_with_its_suffix(tmp_path, name, content, code, message):
    path = tmp_path / name
    path.write_bytes(content)
    _, problems, _ = read(path)
    assert [problem.code for problem in problems.kept] == [code]
    assert message in problems.kept[0].message
    with pytest.raises(InputError) as refused:
        read_logs(path)
    assert message in str(refused.value)


def test_a_workbook_of_somebody_else_is_not_a_log(tmp_path):
    path = tmp_path / "budget.xlsx"
    write_xlsx(path, inline(["month", "sum"]))
    with pytest.raises(InputError, match="a workbook is read only as a file of VLMEvalKit"):
        read_logs(path)
