"""Formats are recognised by their beginning, and only the modules that may read a file are imported."""

from __future__ import annotations

import subprocess
import sys

from multimodal_eval.data.logs.recognised import _FORMATS, log_formats


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
