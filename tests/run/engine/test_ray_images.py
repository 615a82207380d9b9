"""Images on Ray: every actor reads those of its parts ahead, and a killed actor loses nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from PIL import Image

from multimodal_eval import Engine, evaluate
from tests.run.kill_and_resume import content

pytest.importorskip("ray")
pytestmark = pytest.mark.ray

TINY_CLIP = Path(__file__).parents[2] / "golden" / "clip" / "tiny-clip"
SAMPLES = 1100  # five parts, of which two are enough to start decoding processes


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIP_MODEL_ID", str(TINY_CLIP))
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "data.jsonl").open("w") as file:
        for number in range(SAMPLES):
            Image.effect_noise((50, 40), 60).save(folder / f"{number}.jpg")
            row = {"id": f"s{number}", "image": f"{number}.jpg", "generated_answer": f"a dog, {number}"}
            file.write(json.dumps(row) + "\n")
    return folder / "data.jsonl"


def processes(words):
    """The ids of processes whose command line has these words."""
    ids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and words in (entry / "cmdline").read_text():
                ids.append(int(entry.name))
        except OSError:  # it has ended
            pass
    return ids


def test_a_killed_actor_loses_nothing(data, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "local home"))
    evaluate(data, metrics=["clip_score"], output=tmp_path / "local")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "ray home"))
    scores, killed = tmp_path / "ray" / "scores", []

    def kill():
        while not list(scores.glob("part-*.parquet")):
            time.sleep(0.01)
        for process in processes("ray::_ModelActor")[:1]:
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    evaluate(data, metrics=["clip_score"], output=tmp_path / "ray", engine=Engine("ray", workers=2))
    thread.join()
    assert killed
    assert content(tmp_path / "ray") == content(tmp_path / "local")
