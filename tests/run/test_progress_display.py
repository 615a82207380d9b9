"""The progress of `evaluate`: shown in terminals and notebooks, off on request, passed to a callback."""

from __future__ import annotations

import io
import re
import sys

import pytest

from multimodal_eval import evaluate, rescore
from multimodal_eval.core.errors import InputError
from multimodal_eval.run import progress_display
from multimodal_eval.run.progress_display import shown

RECORDS = [{"generated_answer": "x", "expected_answer": "x"}] * 3


class Terminal(io.StringIO):
    def isatty(self):
        return True


Notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves; it starts late enough to be shown."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress_display, "time", clock)
    return clock


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress_display, "QUIET", 0.0)
    monkeypatch.setattr(progress_display, "EVERY", 0.0)


@pytest.mark.parametrize("stream", [Terminal, Notebook])
def test_by_default_a_line_in_terminals_and_notebooks(stream, monkeypatch, at_once):
    monkeypatch.setattr(sys, "stderr", stream())
    run = evaluate(RECORDS, metrics="exact_match")
    written = sys.stderr.getvalue()
    assert "\rscoring  3 / 3  100 %" in written
    assert re.search(r"\r +\r$", written)  # removed at the end
    assert "\n" not in written
    rescore(run, {"metrics": ["vqa_accuracy"]})
    assert sys.stderr.getvalue().count("scoring  3 / 3") == 2 * written.count("scoring  3 / 3")


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


def test_true_writes_whole_lines_to_a_file(capsys, at_once, monkeypatch):
    monkeypatch.setattr(progress_display, "EVERY_LINE", 0.0)
    evaluate(RECORDS, metrics="exact_match", progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert "scoring  3 / 3  100 %" in {re.sub(r"  [\d,.]+/s", "", line) for line in lines}


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
    assert re.search(r"\r +\r$", sys.stderr.getvalue())


def test_the_rate_and_the_time_that_is_left(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with shown(None) as report:
        report("reading", 10, None)
        assert sys.stderr.getvalue() == ""  # a short run shows nothing
        clock.now = 1.0
        report("scoring", 1_000, 5_000)  # the stage starts here, with samples that were scored before
        clock.now = 1.05
        report("scoring", 1_100, 5_000)  # too early for another version
        clock.now = 3.0
        report("scoring", 2_000, 5_000)
        clock.now = 4_000.0
        report("scoring", 2_000, 5_000)
    # 1,000 samples in 2 s: 500 per second, 6 s for the other 3,000. Later 1,000 in 3,999 s: 0.25 per second, and 3,000
    # of them take 11,997 s = 3 h 19 min 57 s.
    shown_lines = [line.rstrip() for line in sys.stderr.getvalue().split("\r") if line.strip()]
    assert shown_lines == [
        "scoring  1,000 / 5,000  20 %",
        "scoring  2,000 / 5,000  40 %  500/s  0:06 left",
        "scoring  2,000 / 5,000  40 %  0.3/s  3:19:57 left",
    ]
