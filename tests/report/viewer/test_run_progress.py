"""The progress of a run: its files, its record, and what a page makes of them."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from time import time
from typing import Any

import pytest

from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.viewer.runs import Progress, RunsFolder
from multimodal_eval.run.progress import FILE, ProgressRecord, write_progress
from tests.report.viewer.viewed import client
from tests.run_info import run_info


def recorded(folder: RunFolder, **fields: Any) -> None:
    now = time()
    settings: dict[str, Any] = {
        "stage": "scoring",
        "done": 10,
        "total": 40,
        "started": now - 10,
        "advanced": now,
        "updated": now,
    }
    settings |= {"host": socket.gethostname(), "pid": os.getpid()}
    write_progress(folder, ProgressRecord(**settings | fields))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def running(runs: Path, **fields: Any) -> RunFolder:
    return RunFolder.create(runs / "live", run_info(**{"state": "scoring", "parts": [20, 20], **fields}))


def progress(runs: Path) -> Progress:
    return RunsFolder(runs).open("live").progress()


def test_rate_and_remaining_time_are_those_of_this_process(runs: Path):
    # 6 samples in 10 s, the first 4 were done before: 0.6 per second, and 30 are left
    recorded(running(runs), first=4)
    shown = progress(runs)
    assert shown.rate == pytest.approx(0.6)
    assert (shown.speed, shown.left) == ("36 per minute", "50 s")
    assert (shown.done, shown.total, shown.is_active, shown.is_moving) == (10, 40, True, True)


@pytest.mark.parametrize(("state", "stage"), [("reading", "fitting"), ("generated", "fitting"), ("scoring", "linting")])
def test_steps_between_two_states_are_shown(runs: Path, state: str, stage: str):
    recorded(running(runs, state=state), stage=stage, done=15, notes=["cider"])
    text = client(runs).get("/run/live").text
    assert f'<span class="stage"><bdi>{stage}</bdi></span>' in text
    assert "15 of 40" in text
    assert 'hx-trigger="every 1s"' in text
    assert 'hx-trigger="every 2s"' in client(runs).get("/").text


def test_samples_that_are_read_are_counted_before_the_total_is_known(runs: Path):
    recorded(running(runs, state="reading", parts=[]), stage="reading", done=12_345, total=None)
    assert "12,345 samples read" in client(runs).get("/progress/live").text


def test_committed_parts_count_even_if_the_record_is_older(runs: Path):
    folder = running(runs)
    (folder.path / "scores").mkdir()
    for part in range(2):
        (folder.path / "scores" / f"part-{part:05d}.parquet").write_bytes(b"")
    recorded(folder, done=20)
    assert (progress(runs).done, progress(runs).parts) == (40, 2)


def test_a_journal_is_not_read_while_the_process_works(runs: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running(runs, state="generating")
    recorded(folder, stage="generating", done=33)

    def refuse(_: Journal) -> Any:
        raise AssertionError("it may be large")

    monkeypatch.setattr(Journal, "records", refuse)
    assert progress(runs).done == 33


def test_failures_of_an_endpoint_are_shown_in_the_list_too(runs: Path):
    note = "2 failed, 7 errors, last: HTTP 503 <b>down</b>"
    recorded(running(runs, state="generating"), stage="generating", notes=[note, "0.02 USD"])
    for address in ("/", "/run/live", "/progress/live"):
        text = client(runs).get(address).text
        assert "7 errors, last: HTTP 503 &lt;b&gt;down" in text, address
        assert "0.02 USD" in text


def test_the_reason_of_a_stop_is_shown_and_nothing_is_polled(runs: Path):
    recorded(running(runs), ended="no space <b>left</b>")
    text = client(runs).get("/run/live").text
    assert "It stopped: <bdi>no space &lt;b&gt;left&lt;/b&gt;</bdi>" in text
    assert "every 1s" not in text
    assert "left</span>" not in text  # no remaining time
    assert "every 2s" not in client(runs).get("/").text


def test_a_run_on_another_machine_is_polled(runs: Path):
    recorded(running(runs), host="elsewhere")
    text = client(runs).get("/run/live").text
    assert "Another machine works on this run" in text
    assert "every 1s" in text


def test_a_long_silence_is_mentioned(runs: Path):
    recorded(running(runs), started=time() - 400, advanced=time() - 130)
    assert "No progress for 2 min" in client(runs).get("/run/live").text


def test_a_run_without_a_record_is_shown_by_its_files(runs: Path):
    running(runs)
    assert (progress(runs).done, progress(runs).stage, progress(runs).is_moving) == (0, "scoring", True)


def test_finished_answers_are_not_polled(runs: Path):
    running(runs, state="generated")
    assert not progress(runs).is_moving
    assert "none is scored yet" in client(runs).get("/run/live").text


def test_a_record_outside_the_folder_is_not_read(runs: Path, tmp_path: Path):
    folder = running(runs)
    recorded(folder, notes=["the secret"])
    (folder.path / FILE).rename(tmp_path / "outside.json")
    (folder.path / FILE).symlink_to(tmp_path / "outside.json")
    for address in ("/", "/run/live", "/progress/live"):
        text = client(runs).get(address).text
        assert "the secret" not in text
        assert "leads out of the folder" in text
