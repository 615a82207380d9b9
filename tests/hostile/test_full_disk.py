"""Full disks, read-only folders, files instead of folders, and names that are too long: errors in words."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from multimodal_eval import load_run
from tests.cli.command_line import called

ROWS = 400


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data.jsonl"
    row = '{{"id": {0}, "generated_answer": "a cat {0}", "references": ["a cat {1}"]}}\n'
    file.write_text("".join(row.format(number, number * 7919 % 1_000_003) for number in range(ROWS)))
    return file


def _limited(most: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that cannot write files of more than `most` bytes."""
    return subprocess.run(
        [sys.executable, "-m", "multimodal_eval.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )


@pytest.mark.parametrize("most", [100, 4_000, 12_000])
def test_a_full_disk_is_an_error_and_the_run_can_be_continued(data: Path, tmp_path: Path, most: int) -> None:
    run = tmp_path / "run"
    done = _limited(most, "score", str(data), "--metrics", "rouge_l", "-o", str(run))
    assert done.returncode == 1
    assert done.stderr.startswith("error: DISK_FULL: ")
    assert "Traceback" not in done.stderr
    assert not list(run.rglob("*.partial"))
    if (run / "run.json").exists():
        assert f"mmeval score --resume {run}" in done.stderr
        assert called("score", "--resume", str(run)).returncode == 0
        assert load_run(run)["rouge_l"]["n_total"] == ROWS


def test_a_report_that_does_not_fit_keeps_the_results(data: Path, tmp_path: Path) -> None:
    done = _limited(40_000, "score", str(data), "--metrics", "rouge_l", "-o", str(tmp_path / "run"))
    assert done.returncode == 0  # the report is an extra
    assert done.stderr.startswith("no report")
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert load_run(tmp_path / "run")["rouge_l"]["n_scored"] == ROWS


def test_full_output_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "multimodal_eval.cli.main", "ls", "metrics"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: DISK_FULL: No space left on device.")
    assert len(done.stderr.splitlines()) == 1


PLACES = {
    "file/run": "NOT_A_FOLDER",
    "x" * 300: "NAME_TOO_LONG",
    "x/" * 3_000: "NAME_TOO_LONG",
    "loop/run": "LINK_LOOP",
}


@pytest.mark.parametrize(("output", "code"), PLACES.items())
def test_impossible_places_are_errors(data: Path, tmp_path: Path, output: str, code: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    done = called("score", str(data), "--metrics", "rouge_l", "-o", str(tmp_path / output))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {code}: ")
    assert called("report", str(tmp_path / output), "-o", str(tmp_path / "page.html")).returncode == 1


def test_a_failing_disk_of_any_kind_is_named(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(30, "Read-only file system", str(tmp_path / "run"))

    monkeypatch.setattr("multimodal_eval.data.runs.storage.write_atomically", refuse)
    done = called("score", str(data), "--metrics", "rouge_l", "-o", str(tmp_path / "run"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: READ_ONLY: {tmp_path / 'run'}: Read-only file system. Name another folder")
