"""The progress of `evaluate`: shown in terminals and notebooks, off on request, passed to a callback."""

from __future__ import annotations

import io
import sys

import pytest

from multimodal_eval import evaluate, rescore
from multimodal_eval.core import progress as lines
from multimodal_eval.core.errors import InputError

RECORDS = [{"generated_answer": "x", "expected_answer": "x"}] * 3


class Terminal(io.StringIO):
    def isatty(self):
        return True


Notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(lines, "REDRAW", 0.0)
    monkeypatch.setattr(lines, "INTERVAL", 0.0)


@pytest.mark.parametrize("stream", [Terminal, Notebook])
def test_by_default_a_line_in_terminals_and_notebooks(stream, monkeypatch, at_once):
    monkeypatch.setattr(sys, "stderr", stream())
    run = evaluate(RECORDS, metrics="exact_match")
    written = sys.stderr.getvalue()
    assert "scoring exact_match: 3 of 3 (100%)" in written
    assert written.endswith("\r\x1b[K")  # removed at the end
    assert "\n" not in written
    rescore(run, {"metrics": ["vqa_accuracy"]})
    assert "scoring vqa_accuracy: 3 of 3 (100%)" in sys.stderr.getvalue()


def test_nothing_by_default_in_a_file(capsys, at_once):
    evaluate(RECORDS, metrics="exact_match")
    assert capsys.readouterr().err == ""


def test_nothing_if_it_is_turned_off(monkeypatch, at_once):
    monkeypatch.setattr(sys, "stderr", Terminal())
    evaluate(RECORDS, metrics="exact_match", progress=False)
    assert sys.stderr.getvalue() == ""


def test_a_program_without_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert evaluate(RECORDS, metrics="exact_match")["exact_match"]["value"] == 1.0


def test_true_writes_whole_lines_to_a_file(capsys, at_once):
    evaluate(RECORDS, metrics="exact_match", progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("scoring exact_match: 3 of 3 (100%)") for line in lines)


def test_a_callback_gets_every_step():
    calls = []
    evaluate(RECORDS, metrics="exact_match", progress=lambda *step: calls.append(step))
    assert ("reading", 3, None) in calls
    assert ("scoring", 3, 3) in calls


def test_a_failed_run_removes_its_line(monkeypatch, at_once):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(InputError):
        evaluate([{"id": 1}, {"prediction": "x"}], metrics="exact_match")
    assert "reading" in sys.stderr.getvalue()
    assert sys.stderr.getvalue().endswith("\r\x1b[K")
