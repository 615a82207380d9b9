"""A run, its resumption, report, labels and viewer in processes that lack what Windows lacks (`like_windows`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows itself runs the other tests")

LIKE_WINDOWS = Path(__file__).with_name("like_windows")
ROWS = [
    {"id": 1, "generated_answer": "a dog on a couch", "references": ["a brown dog on the couch"]},
    {"id": 2, "generated_answer": "a man rides a horse", "references": ["a man riding a horse"]},
    {"id": 3, "generated_answer": "a cat and a bird on a roof", "references": ["a cat on a roof"]},
]
# Two parts of one metric in Python, so that two worker processes are started.
PLUGIN = """
import os
from multimodal_eval import metric

@metric("words", needs=("generated_answer",), bounds=(0, None), version="1")
def compute_words(sample):
    assert not hasattr(os, "pread"), "the worker is not like Windows"
    return float(len(sample.generated_answer.split()))
"""


@pytest.fixture
def like_windows(tmp_path):
    """Runs Python in a process like on Windows. Its temporary files, and so its locks, are in a folder of the test."""
    scratch = tmp_path / "temporary"
    scratch.mkdir()

    def run(*arguments, code=0):
        variables = {**os.environ, "PYTHONPATH": str(LIKE_WINDOWS), "TMPDIR": str(scratch), "MMEVAL_DEBUG": "1"}
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=600,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def mmeval(*arguments):
    return ("-m", "multimodal_eval.cli.main", *arguments)


def test_the_process_lacks_what_it_should(like_windows):
    code = (
        "import os, sys; from multimodal_eval.core import system_files\n"
        "assert not hasattr(os, 'fork') and not hasattr(os, 'pread')\n"
        "try:\n    exec('import fcntl', vars(system_files))\n"
        "except ImportError:\n    print('no fcntl')\n"
    )
    assert like_windows("-c", code) == "no fcntl\n"


def test_every_module_of_the_package_can_be_imported(like_windows):
    code = """
import pkgutil, importlib, multimodal_eval
for module in pkgutil.walk_packages(multimodal_eval.__path__, "multimodal_eval."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # an extra that is not installed
            if not (error.name or "").startswith(("torch", "transformers", "lightning", "accelerate")):
                raise
print("all")
"""
    assert like_windows("-c", code).endswith("all\n")


def test_a_run_is_scored_by_workers_resumed_verified_and_reported(like_windows, tmp_path):
    lines = "".join(json.dumps(row) + "\r\n" for row in ROWS)  # as editors of Windows end lines
    (tmp_path / "captions.jsonl").write_bytes(lines.encode())
    (tmp_path / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    options = ("--plugin", "plugin.py", "--metrics", "rouge_l,cider_d,words", "--workers", 2)
    like_windows(*mmeval("score", "captions.jsonl", *options, "-o", "run"))
    results = (tmp_path / "run" / "results.json").read_bytes()
    assert len(list((tmp_path / "temporary" / "mmeval-locks").iterdir())) == 1

    (tmp_path / "run" / "results.json").unlink()
    shutil.rmtree(tmp_path / "run" / "scores")
    like_windows(*mmeval("score", "--resume", "run", "--plugin", "plugin.py"))
    assert (tmp_path / "run" / "results.json").read_bytes() == results

    like_windows(*mmeval("verify", "run"))
    like_windows(*mmeval("report", "run", "-o", "report.html"))
    assert "cider_d" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_labels_and_notes_are_appended(like_windows, tmp_path):
    code = """
from pathlib import Path
from multimodal_eval.data.labels.append_file import AppendFile, refuse_unsuitable
file = AppendFile(refuse_unsuitable(Path("labels.jsonl")))
file.append(b'{"id": 1}')
file.append(b'{"id": 2}')
print(file.read())
"""
    assert like_windows("-c", code) == "([b'{\"id\": 1}', b'{\"id\": 2}'], 20)\n"
    assert (tmp_path / "labels.jsonl").read_bytes() == b'{"id": 1}\n{"id": 2}\n'


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_output_that_the_console_cannot_show_is_written_as_escapes(like_windows, tmp_path, monkeypatch, encoding):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    row = {"id": "кот", "generated_answer": "a cat ★", "references": ["a cat"]}
    (tmp_path / "captions.jsonl").write_text(json.dumps(row), encoding="utf-8")
    shown = like_windows(*mmeval("score", "captions.jsonl", "--metrics", "rouge_l", "-o", "run"))
    assert "ROUGE-L" in shown
