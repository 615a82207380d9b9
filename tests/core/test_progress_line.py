"""Progress as lines of text. The clock is set by the tests."""

from __future__ import annotations

import io
from unittest.mock import patch

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.core import progress as lines
from multimodal_eval.core.progress import ProgressLine, duration


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    with patch.object(lines, "monotonic", Clock()) as clock:
        yield clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_a_line_every_few_seconds(clock):
    out = io.StringIO()
    progress = ProgressLine(out)
    progress("scoring", 0, 1000)
    progress.working_on("clip_score")
    for second in range(1, 12):
        clock.now = second
        progress("scoring", 10 * second, 1000)
    # 5 s: 50 done, 10 per second, 950 / 10 = 95 s left; 10 s: 900 / 10 = 90 s left
    assert out.getvalue().splitlines() == [
        "scoring clip_score: 50 of 1,000 (5%), 10.0 per second, 1 min 35 s left",
        "scoring clip_score: 100 of 1,000 (10%), 10.0 per second, 1 min 30 s left",
    ]


def test_a_short_command_prints_nothing(clock):
    out = io.StringIO()
    with ProgressLine(out) as progress:
        progress("reading", 5, None)
        progress("scoring", 5, 5)
    assert out.getvalue() == ""


def test_the_rate_does_not_count_what_was_done_before(clock):
    progress = ProgressLine(io.StringIO())
    progress("scoring", 600, 1000)  # a resumed run
    clock.now = 10
    progress("scoring", 700, 1000)
    assert progress.text == "scoring: 700 of 1,000 (70%), 10.0 per second, 30 s left"


def test_the_remaining_time_counts_down_in_a_long_step(clock):
    progress = ProgressLine(io.StringIO())
    progress("scoring", 0, 1000)
    clock.now = 10
    progress("scoring", 100, 1000)
    clock.now = 30  # 900 samples take 90 s, of which 20 s are over
    assert progress.text == "scoring: 100 of 1,000 (10%), 10.0 per second, 1 min 10 s left"


def test_a_rate_that_is_over_is_not_repeated(clock):
    progress = ProgressLine(io.StringIO())
    progress("generating", 0, 50)
    for second in range(1, 8):
        clock.now = second
        progress("generating", second, 50)
    clock.now = 16  # 9 s later
    assert progress.text == "generating: 7 of 50 (14%), 1.0 per second, 34 s left"
    clock.now = 30
    progress.noting(["12 errors, last: HTTP 503"])
    assert progress.text == "generating: 7 of 50 (14%), no progress for 23 s, 12 errors, last: HTTP 503"
    progress("generating", 15, 50)  # 15 in 30 s, and 35 left
    assert progress.text == "generating: 15 of 50 (30%), 0.5/s, 12 errors, last: HTTP 503, 1 min 10 s left"


def test_nothing_done_yet_and_no_total(clock):
    progress = ProgressLine(io.StringIO())
    progress("scoring", 0, 50)
    clock.now = 7
    assert progress.text == "scoring: 0 of 50 (0%), 7 s so far"
    progress("reading", 0, None)
    clock.now = 9
    progress("reading", 4000, None)
    assert progress.text == "reading: 4,000, 2,000 per second"


def test_bytes(clock):
    progress = ProgressLine(io.StringIO(), unit="bytes")
    progress("model.onnx", 0, 90_000_000)
    clock.now = 3
    progress("model.onnx", 30_000_000, 90_000_000)
    assert progress.text == "model.onnx: 30.0 of 90.0 MB (33%), 10.0 MB per second, 6 s left"


def test_a_terminal_redraws_one_line_and_removes_it(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = Terminal()
    with ProgressLine(out) as progress:
        progress("scoring", 0, 24)
        clock.now = 1
        progress("scoring", 12, 24)
        clock.now = 1.01  # too soon
        progress("scoring", 13, 24)
    drawn = "\r\x1b[K━━━━━━━━──────── scoring: 12 of 24 (50%), 12.0 per second, 1 s left"
    assert out.getvalue() == f"{drawn}\r\x1b[K"


def test_a_line_never_wraps(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    out = Terminal()
    progress = ProgressLine(out)
    progress("scoring", 0, 24)
    progress.working_on(", ".join(["a_long_name_of_a_metric"] * 5))
    clock.now = 1
    progress("scoring", 1, 24)
    line = out.getvalue().removeprefix("\r\x1b[K")
    assert len(line) == 29
    assert line.endswith("…")


def test_a_closed_stream_is_no_error(clock):
    out = io.StringIO()
    progress = ProgressLine(out)
    progress("scoring", 0, 24)
    out.close()
    clock.now = 10
    progress("scoring", 1, 24)


def test_long_steps_are_reported_too():
    """The thread of the context manager writes without any call."""
    written = lines.Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.set()
            return super().write(text)

    with ProgressLine(Stream(), interval=0.01) as progress:
        progress("scoring", 0, 24)
        assert written.wait(600)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (198, "3 min 18 s"), (7500, "2 h 5 min"), (-1, "0 s")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_a_run_names_its_metrics():
    named: list[str] = []

    class Named(ProgressLine):
        def working_on(self, metric: str) -> None:
            named.append(metric)

    samples = [Sample("1", generated_answer="a dog", references=["a dog runs"])]
    evaluate(samples, metrics=["rouge_l", "exact_match"], progress=Named(io.StringIO()))
    assert named == ["rouge_l, exact_match", "rouge_l", "exact_match"]


def generating(clock, out):
    progress = ProgressLine(out)
    progress("generating", 0, 5000)
    clock.now = 100
    progress("generating", 2500, 5000)
    progress.noting(["3 failed", "1.20 USD", "1,812 tokens/s"])
    return progress


def test_notes_are_shown_before_the_remaining_time(clock):
    progress = generating(clock, io.StringIO())
    shown = "25.0/s, 3 failed, 1.20 USD, 1,812 tokens/s, 1 min 40 s left"
    assert progress.text == f"generating: 2,500 of 5,000 (50%), {shown}"
    progress("scoring", 0, 5000)
    clock.now = 110
    progress("scoring", 100, 5000)
    assert progress.text == "scoring: 100 of 5,000 (2%), 10.0 per second, 8 min 10 s left"


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (120, "generating: 2,500 of 5,000 (50%), 25.0/s, 3 failed, 1.20 USD, 1,812 tokens/s, 1 min 40 s left"),
        (90, "generating: 2,500 of 5,000, 25.0/s, 3 failed, 1.20 USD, 1,812 tokens/s, 1 min 40 s left"),
        (80, "generating: 2,500 of 5,000, 25.0/s, 3 failed, 1.20 USD, 1 min 40 s left"),
        (70, "generating: 2,500 of 5,000, 25.0/s, 3 failed, 1 min 40 s left"),
    ],
)
def test_a_narrow_terminal_omits_the_share_and_then_the_last_notes(clock, monkeypatch, columns, line):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()
    progress = generating(clock, out)
    clock.now = 100.2
    progress("generating", 2500, 5000)
    drawn = out.getvalue().rpartition("\r\x1b[K")[2].lstrip("━─ ")
    assert drawn == line
