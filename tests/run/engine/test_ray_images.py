"""Images on Ray: every actor reads those of its parts ahead, and a killed actor loses nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
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


def processes(words, home):
    """The ids of processes whose command line has these words and whose $MMEVAL_HOME is this folder."""
    ids, variable = [], f"MMEVAL_HOME={home}\0".encode()
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or variable not in (entry / "environ").read_bytes():
                continue
            if words in (entry / "cmdline").read_text():
                ids.append(int(entry.name))
        except OSError:  # it has ended
            pass
    return ids


def test_a_killed_actor_loses_nothing(data, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "local home"))
    evaluate(data, metrics=["clip_score"], output=tmp_path / "local")
    attempts = (tmp_path / f"ray {number}" for number in range(5))  # a run may end before its actor is killed
    output = next(folder for folder in attempts if is_killed_while_scoring(data, folder, monkeypatch))
    assert content(output) == content(tmp_path / "local")


def is_killed_while_scoring(data, output, monkeypatch):
    """Score on Ray and kill an actor after the first part. Whether there was one to kill."""
    home = f"{output} home"
    monkeypatch.setenv("MMEVAL_HOME", home)
    killed = []

    def kill():
        while not list((output / "scores").glob("part-*.parquet")):
            time.sleep(0.01)
        for process in processes("ray::_ModelActor", home)[:1]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    evaluate(data, metrics=["clip_score"], output=output, engine=Engine("ray", workers=2))
    thread.join()
    return bool(killed)
