"""Runs with many images: decoded by other processes, with the results of one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from PIL import Image

from multimodal_eval import evaluate
from multimodal_eval.evaluation import image_reader
from multimodal_eval.evaluation.decoding.pool import DecodingPool
from multimodal_eval.models.clip.encoder import OnnxClip
from tests.parts import set_part_size, started_with_part_size, threads_of
from tests.run.kill_and_resume import content

TINY_CLIP = Path(__file__).parents[1] / "golden" / "clip" / "tiny-clip"
SAMPLES, PART = 60, 16
BAD = {7: "cannot be decoded", 20: "there is no file", 33: "is outside"}
START = (
    f"{started_with_part_size(PART, with_model=True)}; "
    "from multimodal_eval.evaluation import image_reader; image_reader.MIN_IMAGES = 4; "
    "from multimodal_eval.cli.main import main; main()"
)


@pytest.fixture
def data(tmp_path):
    """Images of several formats and sizes; some are damaged, missing or not allowed."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines = []
    for number in range(SAMPLES):
        path = folder / f"{number}.{('jpg', 'png', 'webp')[number % 3]}"
        Image.effect_noise((50 + number % 4, 40), 60).save(path)
        lines.append({"id": f"s{number}", "image": path.name, "generated_answer": f"a dog, {number}"})
    (folder / "7.png").write_bytes((folder / "7.png").read_bytes()[:70])
    (folder / "20.webp").unlink()
    lines[33]["image"] = "/etc/hostname"
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "data.jsonl"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path):
    set_part_size(monkeypatch, with_model=PART)
    monkeypatch.setattr(image_reader, "MIN_IMAGES", 4)
    monkeypatch.setenv("CLIP_MODEL_ID", str(TINY_CLIP))
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))


def test_the_results_are_those_without_processes(data, tmp_path, monkeypatch):
    submitted = []
    submit = DecodingPool.submit
    monkeypatch.setattr(DecodingPool, "submit", lambda *a: submitted.append(len(list(a[2]))) or submit(*a))
    with_processes = evaluate(data, metrics=["clip_score"], output=tmp_path / "with", workers=2)
    assert sum(submitted) == SAMPLES  # every image once
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("MMEVAL_DECODERS", "0")
    submitted.clear()
    evaluate(data, metrics=["clip_score"], output=tmp_path / "without", workers=2)
    assert not submitted
    assert content(tmp_path / "with") == content(tmp_path / "without")
    rows = with_processes.scores().to_pylist()
    faults = {number: row["clip_score:reason"] for number, row in enumerate(rows) if row["clip_score:status"] != "ok"}
    assert faults.keys() == BAD.keys()
    assert all(BAD[number] in reason for number, reason in faults.items())


def test_two_threads_score_two_parts_with_the_same_results(data, tmp_path, monkeypatch):
    evaluate(data, metrics=["clip_score"], output=tmp_path / "one")
    monkeypatch.setattr(OnnxClip, "is_concurrent", True, raising=False)  # as a model on a GPU is
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "other"))  # the model is opened again
    threads = threads_of(monkeypatch, "Score")
    evaluate(data, metrics=["clip_score"], output=tmp_path / "two", workers=2)
    assert threading.main_thread() not in threads
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_images_that_change_between_two_runs_are_read_again(data, tmp_path):
    few = 2 * PART  # what was read of the last parts is remembered
    data.write_text("".join(data.read_text().splitlines(keepends=True)[:few]))
    before = evaluate(data, metrics=["clip_score"], output=tmp_path / "before")
    for number in range(0, few, 3):
        Image.effect_noise((70, 40), 90).save(data.parent / f"{number}.jpg")
    after = evaluate(data, metrics=["clip_score"], output=tmp_path / "after")
    pairs = zip(*(run.scores().column("clip_score").to_pylist() for run in (before, after)), strict=True)
    changed = [number for number, (old, new) in enumerate(pairs) if old != new]
    assert changed == [number for number in range(0, few, 3) if number not in BAD]


def test_parts_that_are_left_of_a_run_are_decoded_too(data, tmp_path):
    from multimodal_eval import resume

    evaluate(data, metrics=["clip_score"], output=tmp_path / "run")
    whole = content(tmp_path / "run")
    for name in ("scores/part-00001.parquet", "scores/part-00003.parquet", "results.json"):
        (tmp_path / "run" / name).unlink()
    resume(tmp_path / "run")
    assert content(tmp_path / "run") == whole


def children(process):
    """The decoding processes of a process."""
    ids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == process and "spawn_main" in (entry / "cmdline").read_text():
                    ids.append(int(entry.name))
            except OSError:  # it has ended
                pass
    return ids


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_an_interrupted_run_leaves_no_process_behind(data, tmp_path, number):
    # The input names the images many times, so that the run takes long enough.
    lines = [json.loads(line) for line in data.read_text().splitlines()] * 40
    data.write_text("".join(json.dumps({**line, "id": str(row)}) + "\n" for row, line in enumerate(lines)))
    command = [sys.executable, "-c", START, "score", data, "--metrics", "clip_score", "-o", tmp_path / "run"]
    environment = {**os.environ, "MMEVAL_CACHE": "off", "MMEVAL_DECODERS": "2"}
    process = subprocess.Popen(
        [*map(str, command), "--no-report"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    decoders = []
    while len(decoders) < 2 or not list((tmp_path / "run" / "scores").glob("part-*.parquet")):
        assert process.poll() is None, process.communicate()[1].decode()
        decoders = children(process.pid)
        time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=600)
    while any(Path(f"/proc/{decoder}").exists() for decoder in decoders):  # a hang fails by the limit of the test
        time.sleep(0.05)
    assert "Traceback" not in stderr.decode()
    assert "resource_tracker" not in stderr.decode()
