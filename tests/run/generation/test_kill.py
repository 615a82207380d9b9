from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from multimodal_eval import evaluate
from tests.run.generation import kill_and_resume
from tests.run.generation.counting_server import Client, CountingServer


@pytest.mark.parametrize(
    ("kills", "more"),
    [
        pytest.param(2, (), id="2-answers"),
        pytest.param(3, ("until",), id="3-until", marks=pytest.mark.slow),
        pytest.param(3, ("judges",), id="3-judges", marks=pytest.mark.slow),  # `.ci/long kills`: 200 of each
    ],
)
def test_killed_runs_resume_to_identical_folders(kills, more, capsys):
    kill_and_resume.main(kills, 3, *more)
    assert "every resumed run identical" in capsys.readouterr().out


def test_a_server_with_many_faults_answers_every_sample(tmp_path: Path):
    data = tmp_path / "data.jsonl"
    rows = [{"id": f"s{n}", "question": f"question {n}", "references": [f"answer {n}"]} for n in range(500)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    generation = {"model": "client", "use_cache": False}
    with CountingServer(latency=0.001, faults=0.3) as server:
        run = evaluate(data, model=Client(server.port), metrics=["exact_match"], generation=generation, progress=False)
    assert run.info.generation is not None
    assert run.info.generation.statuses == {"ok": 500}
    assert server.answered == 500
    assert run["exact_match"]["value"] == 1.0


@pytest.mark.slow
def test_samples_that_are_done_need_no_memory():
    # From 20,000 samples on, the peak is about 350 MB. Prompts and replies that are kept take 6 kB per sample.
    command = [sys.executable, "-m", "tests.run.generation.peak_memory", "50000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) < 600
