"""progress.json: what a run records about its progress, and when the record goes away."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, metric, resume
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.core.progress import named, noted
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run import progress as progress_file
from multimodal_eval.run import progress as recorded_progress
from multimodal_eval.run.progress import FILE, ProgressRecord, read_progress, recorded, works_on
from tests.run_info import run_info

SAMPLES = [{"id": str(number), "references": [f"a cat {number}"], "generated_answer": "a dog"} for number in range(20)]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", run_info())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr(recorded_progress, "time", lambda: now[0])
    return now


def silent(stage: str, done: int, total: int | None) -> None:
    pass


def record_of(folder: RunFolder) -> ProgressRecord:
    record = read_progress(folder)
    assert record is not None
    return record


def test_a_stage_is_recorded_at_once_and_then_at_most_once_per_second(folder: RunFolder, clock: list[float]):
    with recorded(folder, silent) as progress:
        progress("scoring", 10, 100)
        assert (record_of(folder).stage, record_of(folder).done, record_of(folder).total) == ("scoring", 10, 100)
        progress("scoring", 20, 100)  # too early
        assert record_of(folder).done == 10
        clock[0] += 1.5
        progress("scoring", 40, 100)
        record = record_of(folder)
        assert (record.done, record.first, record.started, record.advanced) == (40, 10, 1_000.0, 1_001.5)
        clock[0] += 5
        progress("scoring", 40, 100)  # a call without progress
        assert (record_of(folder).advanced, record_of(folder).updated) == (1_001.5, 1_006.5)
        progress("linting", 0, 100)
        assert (record_of(folder).stage, record_of(folder).started) == ("linting", 1_006.5)
    assert read_progress(folder) is None


def test_what_is_told_reaches_the_callback_and_the_record(folder: RunFolder, clock: list[float]):
    class Line:
        def __init__(self) -> None:
            self.heard: list[object] = []

        def __call__(self, *step: object) -> None:
            self.heard.append(step)

        def working_on(self, text: str) -> None:
            self.heard.append(text)

        def noting(self, notes: object) -> None:
            self.heard.append(notes)

    line = Line()
    with recorded(folder, line) as progress:
        progress("generating", 1, 2)
        named(progress, "3 errors, last: HTTP 429")
        assert record_of(folder).notes == ["3 errors, last: HTTP 429"]
        clock[0] += 2
        noted(progress, ["4 failed", "0.10 USD", "x" * 5_000])
        assert record_of(folder).notes == ["4 failed", "0.10 USD", "x" * 1_000]
        progress("scoring", 0, 2)
        assert record_of(folder).notes == []  # of the stage before
    assert line.heard == [
        ("generating", 1, 2),
        "3 errors, last: HTTP 429",
        ["4 failed", "0.10 USD", "x" * 5_000],
        ("scoring", 0, 2),
    ]


def test_a_callback_without_notes_is_enough(folder: RunFolder):
    with recorded(folder, silent) as progress:
        progress("scoring", 0, 1)
        named(progress, "bleu")
        assert record_of(folder).notes == ["bleu"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyboardInterrupt(), "it was interrupted"),
        (ConfigError("no answers"), "no answers"),
        (ValueError("a bug"), "ValueError: a bug"),
    ],
)
def test_an_error_leaves_its_reason(folder: RunFolder, error: BaseException, reason: str):
    def fail() -> None:
        with recorded(folder, silent) as progress:
            progress("scoring", 3, 9)
            raise error

    with pytest.raises(type(error)):
        fail()
    record = record_of(folder)
    assert (record.stage, record.done, record.ended) == ("scoring", 3, reason)
    assert works_on(record) is False


def test_a_disk_that_refuses_the_record_does_not_stop_the_run(folder: RunFolder, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder.storage, "write_bytes", full)
    with recorded(folder, silent) as progress:
        progress("scoring", 3, 9)


def test_a_finished_run_has_no_record_and_a_temporary_one_never(tmp_path: Path):
    seen: list[str] = []

    def look(stage: str, done: int, total: int | None) -> None:
        record = read_progress(RunFolder(tmp_path / "kept"))
        if record is not None:
            seen.append(record.stage)

    run = evaluate(SAMPLES, metrics=["rouge_l", "cider"], output=tmp_path / "kept", progress=look)
    assert not (run.path / FILE).exists()
    assert seen  # it was there in between
    temporary = evaluate(SAMPLES, metrics=["rouge_l"], progress=False)
    assert not (temporary.path / FILE).exists()


def test_a_failed_run_keeps_the_reason_until_it_is_resumed(tmp_path: Path):
    gate = tmp_path / "gate"

    @metric("breaks_once", version="1")
    def breaks_once(sample: object) -> float:
        if not gate.exists():
            raise KeyboardInterrupt
        return 1.0

    with pytest.raises((KeyboardInterrupt, MultimodalEvalError)):
        evaluate(SAMPLES, metrics=["breaks_once"], output=tmp_path / "run", progress=False, workers=1)
    assert record_of(RunFolder(tmp_path / "run")).ended is not None
    gate.touch()
    resume(tmp_path / "run", progress=False)
    assert read_progress(RunFolder(tmp_path / "run")) is None


def a_record(**fields: object) -> ProgressRecord:
    settings = {"stage": "scoring", "done": 1, "started": 0.0, "host": socket.gethostname(), "pid": os.getpid()}
    return ProgressRecord(**settings | fields)  # type: ignore[arg-type]


def test_whether_the_process_works_on():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert works_on(a_record()) is True
    assert works_on(a_record(pid=ended.pid)) is False
    assert works_on(a_record(pid=1)) is True  # also if it belongs to somebody else
    assert works_on(a_record(host="another-machine")) is None
    assert works_on(a_record(ended="it was interrupted")) is False
    for pid in (0, -1, 1 << 31, 1 << 60):
        assert works_on(a_record(pid=pid)) is False


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"stage": "scoring"}',
        b"\xff\xfe",
        b'{"stage": 1, "done": 1, "started": 0, "host": "h", "pid": 1}',
        msgspec.json.encode(a_record(done=-5, pid=1)),
        msgspec.json.encode(a_record(total=1 << 60, pid=1)),
        msgspec.json.encode(a_record(started=1e300, pid=1)),
        msgspec.json.encode(a_record(advanced=-1.0, pid=1)),
        msgspec.json.encode(a_record(notes=["x" * (progress_file._LARGEST + 1)])),
        b"[" * 100_000,
    ],
    ids=lambda content: content[:40].decode("latin-1"),  # the same in all processes of pytest
)
def test_a_record_that_is_not_ours_is_ignored(folder: RunFolder, content: bytes):
    (folder.path / FILE).write_bytes(content)
    assert read_progress(folder) is None


def test_a_finished_run_that_is_resumed_keeps_no_progress_of_a_killed_process(tmp_path):
    evaluate(
        [Sample("a", references=["a cat"], generated_answer="a cat")], metrics=["rouge_l"], output=tmp_path / "run"
    )
    (tmp_path / "run" / "progress.json").write_bytes(msgspec.json.encode(a_record()))
    resume(tmp_path / "run")
    assert not (tmp_path / "run" / "progress.json").exists()
